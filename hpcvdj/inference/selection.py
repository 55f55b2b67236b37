"""The inference of the selection factor of a model, by regression of real against generated productive junctions.

An individual has a distinct junction once, however often its cells made it.  Junctions are nucleotides, or amino acids
if only these are known.  So the real junctions are the distinct ones of each individual, and generated junctions count
as often as individuals of the same sizes would have them without selection.  See `hpcvdj.inference.regression`.  A
constant makes the mean of Q over further draws 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.dealing import Dealt
from hpcvdj.chance.depth import Draws, Holders, recombinations_of
from hpcvdj.chance.draws import Chance
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.errors import TooFewError, few, log
from hpcvdj.inference.distinct import SingleGeneJunctions, of_individuals
from hpcvdj.inference.regression import Regression, fit
from hpcvdj.inference.settings import FEWEST_JUNCTIONS, SelectionSettings
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.exclusions import Exclusion
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import with_factor
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import Counts, Floats, Genes, SelectionFactor, features, genes_of
from hpcvdj.recombination.sonia import read_sonia
from hpcvdj.repertoires.genes import as_read, has_nucleotides
from hpcvdj.repertoires.tally import Tally
from hpcvdj.runs.run import Run

MOST_UNCERTAINTY = 0.1
"""The cost of the uncertainty of the weights without a penalty, in nats per junction, from which on there is a warning.

With p features and n real junctions, the cost is at least p / 2n: half the mean variance of ln Q, which is p divided by
the sum of P (1 - P) over all junctions.  P is the probability that a junction is real, so this sum is at most n.
"""

FRESH = 300_000
"""The smallest number of draws that are compared, and of the further draws that make the mean of Q 1."""

FEWEST_OF_CLASS = 100
"""The number of draws with a V and a J gene that a mean of Q over them needs."""

PARTS = 10
"""The number of parts of the distinct junctions: one part is held out, and one decides the penalty."""

HELD_OUT, JUDGING = 0, 1

LEAST_GAIN = 2
"""The number of standard errors from which on a gain is significant."""

MOST_OFF = 0.1
"""The largest difference of the mean of Q of SONIA from 1 without a warning."""

SMALLEST = 1e-300
"""The probability that stands for that of a junction that the model cannot make."""


@dataclass(frozen=True)
class SelectionFit:
    """An inferred selection factor.

    model     the model with the factor
    rows      the numbers of distinct junctions that the factor was inferred from, and that were held out
    individuals  the number of individuals with real junctions
    gain      nats that the factor adds to the log-likelihood of a held-out distinct junction of an individual
    error     the standard error of the gain
    auc       the probability that a held-out real junction has a larger Q than a generated one
    left_out  the number of rows that did not take part, by the reason
    warnings  what to know before using the factor
    rows_read, excluded  the number of rows of the tables, and of those that could not be read
    reasons   why rows could not be read, and their numbers
    """

    model: Model
    rows: tuple[int, int]
    individuals: int
    gain: float
    error: float
    auc: float
    left_out: dict[str, int]
    warnings: tuple[str, ...]
    rows_read: int
    excluded: int
    reasons: list[tuple[Exclusion, int]]

    @property
    def selection(self) -> SelectionFactor:
        """The factor."""
        assert self.model.selection is not None
        return self.model.selection

    @property
    def explains(self) -> bool:
        """Whether the factor explains more of the held-out junctions than chance does."""
        return self.gain >= LEAST_GAIN * self.error


@dataclass(frozen=True)
class _Real:
    """The real junctions that take part, out of `distinct` ones, and the number of those of each individual."""

    taken: SingleGeneJunctions
    distinct: int
    of_individual: Counts
    names: list[str]
    left_out: dict[str, int]
    tally: Tally


def infer_selection(
    dealt: Dealt, model: Model, plan: SelectionSettings, backend_name: str = AUTO, fits: ModelFit = UNCHECKED
) -> SelectionFit | None:
    """Infer the selection factor of a model from the ranks' rows; return it on root, None on the other ranks.

    An individual is a sample of the rows, and equal junctions are on one rank.  Genes that `fits` finds broken are left
    out.  Raises InputError if there are too few junctions.
    """
    run = dealt.run
    real = _real(dealt, model, plan, fits.broken)
    number = run.from_root(lambda: max(len(real.taken), FRESH) if real is not None else 0)
    # Other seeds than that of `hpcvdj generate`, so that generated tables are never compared with themselves.
    seeds = np.random.SeedSequence([plan.seed, 1]).generate_state(2, np.uint64).tolist()
    chances = [Chance(model, number, seed, backend_name, strict_binding=False) for seed in seeds]
    nucleotides = run.from_root(lambda: real is None or has_nucleotides(real.taken.repertoire))
    draws = [chance.drawn(run) for chance in chances]
    parts: list[SingleGeneJunctions | None] = [None] * 3
    if real is not None:
        generated, fresh = (
            SingleGeneJunctions.drawn(as_read(drawn, real.taken.repertoire), fits.broken)
            for drawn in draws
            if drawn is not None
        )
        parts = [real.taken, generated, fresh.take(np.flatnonzero(fresh.lots(PARTS, plan.seed) == HELD_OUT))]
    names = PGEN_COLUMNS[:1] if nucleotides else PGEN_COLUMNS[1:2]
    p = [chances[0].among_productive(part.repertoire if part is not None else None, names, run) for part in parts]

    def fitted(real: _Real) -> SelectionFit:
        # Without broken genes, the probabilities of the other genes add up to this share.
        share = int(generated.times.sum() + fresh.times.sum()) / (2 * number)
        samples = [_Sample.of(*sample, share) for sample in zip(parts, p, strict=True)]
        return _fitted(real, samples, fresh, model, plan, fits.broken)

    return run.on_root(fitted, real)


def _real(dealt: Dealt, model: Model, plan: SelectionSettings, broken: frozenset[str]) -> _Real | None:
    """Gather the real junctions of all ranks on root; draw some of them if there are too many."""
    run = dealt.run
    junctions, of_individual, left_out = of_individuals(dealt, model, broken)
    distinct = int(run.sum(np.array([len(junctions)]))[0])
    run.on_root(lambda: _require_enough(distinct, left_out))
    parts = run.gather(junctions.take(_drawn(junctions.scattered(plan.seed, 3), plan.max_junctions, run)))
    if parts is None:
        return None
    assert dealt.tally is not None
    taken = SingleGeneJunctions.joined(parts)
    return _Real(taken, distinct, of_individual, dealt.samples or ["the table"], left_out, dealt.tally)


def _require_enough(distinct: int, left_out: dict[str, int]) -> None:
    if distinct < FEWEST_JUNCTIONS:
        reasons = "".join(f", {number:,} {reason}" for reason, number in left_out.items() if number)
        raise TooFewError(
            f"{distinct:,} distinct productive junctions{reasons}: too few to infer selection, which needs "
            f"{FEWEST_JUNCTIONS:,}, better 100,000; give more tables"
        )


def _drawn(numbers: NDArray[np.uint64], most: int, run: Run) -> Counts:
    """Return the indices of this rank's random numbers that are among the `most` smallest of all ranks, ascending."""
    parts = run.gather(np.sort(numbers)[:most]) or []
    largest = run.from_root(lambda: int(np.sort(np.concatenate(parts))[:most][-1]))
    return np.flatnonzero(numbers <= np.uint64(largest))


@dataclass(frozen=True)
class _Sample:
    """Distinct junctions, real or drawn.

    log_p  float64 [junctions]: natural logarithm of the probability among productive recombinations of these genes
    times  float64 [junctions]: how often each junction counts
    """

    junctions: SingleGeneJunctions
    log_p: Floats
    times: Floats

    @staticmethod
    def of(junctions: SingleGeneJunctions | None, p: Floats | None, share: float = 1.0) -> "_Sample":
        """Build a sample from p, float64 [junctions, 1], among productive recombinations; its genes have a share."""
        assert junctions is not None
        assert p is not None
        return _Sample(junctions, np.log(np.maximum(p[:, 0] / share, SMALLEST)), junctions.times.astype(np.float64))

    def held_by(self, holders: Holders) -> "_Sample":
        """Let drawn junctions count per draw as often as individuals are expected to have them per recombination."""
        once = np.exp(holders.expected(self.log_p)[0] - self.log_p) / holders.recombinations
        return replace(self, times=self.times * once)

    def take(self, chosen: NDArray[np.bool_]) -> "_Sample":
        return _Sample(self.junctions.take(np.flatnonzero(chosen)), self.log_p[chosen], self.times[chosen])

    def mean(self, values: Floats) -> tuple[float, float]:
        """Return the mean of values of the junctions, and its standard error."""
        total, rows = self.times.sum(), len(values)
        mean = float((self.times * values).sum() / total)
        # A junction of several individuals is drawn once, not once for each of them.
        squares = float(((self.times * (values - mean)) ** 2).sum() / total**2)
        return mean, math.sqrt(squares * rows / (rows - 1))


def _fitted(
    real: _Real, samples: Sequence[_Sample], fresh: SingleGeneJunctions, model: Model, plan: SelectionSettings,
    broken: frozenset[str],
) -> SelectionFit:  # fmt: skip
    """Fit the factor.

    samples  the real junctions, the draws to compare them with, and held-out draws
    fresh    draws for the mean of Q
    broken   genes that none of these have
    """
    taken, drawn, further = samples
    draws = drawn.times.sum()
    on_grid = Draws(drawn.log_p, drawn.times / draws).on_grid(0.0)
    holders = Holders.of(recombinations_of(real.of_individual, on_grid, real.names))
    share = len(taken.junctions) / real.distinct
    log_ratio = math.log(share * holders.recombinations / draws)
    compared = taken, drawn.held_by(holders)
    lots = [sample.junctions.lots(PARTS, plan.seed) for sample in compared]
    inferring = [sample.take(lot != HELD_OUT) for sample, lot in zip(compared, lots, strict=True)]
    judging = np.concatenate([lot[lot != HELD_OUT] == JUDGING for lot in lots])
    selection, ridge = _regression(inferring[0], inferring[1], holders, log_ratio, judging)
    held = taken.take(lots[0] == HELD_OUT), further.held_by(holders)
    gain, error = _gain(*held, selection, holders)
    auc = _auc(*held, selection)
    rows, individuals = (len(inferring[0].log_p), len(held[0].log_p)), int((real.of_individual > 0).sum())
    warnings = _warnings(len(selection.weights), rows[0], gain, error)
    left_out = broken & {genes_of(template.allele) for template in (*model.v, *model.j)}
    if left_out:
        warnings.append(f"Q of {few(sorted(left_out))} is 1, as the model makes these genes wrongly")
    facts = {
        "rows": rows[0], "held_out": rows[1], "individuals": individuals,
        "recombinations": round(holders.recombinations), "generated": round(draws), "fresh": int(fresh.times.sum()),
        "ridge": ridge, "seed": plan.seed, "gain_nats": gain, "gain_standard_error": error, "auc": auc,
        "warnings": warnings,
    }  # fmt: skip
    selected = with_factor(model, replace(normalised(selection, fresh), left_out=left_out, facts=facts))
    return SelectionFit(
        selected, rows, individuals, gain, error, auc, real.left_out, tuple(warnings), real.tally.rows_read,
        sum(number for _, number in real.tally.excluded), real.tally.excluded,
    )  # fmt: skip


def _gain(real: _Sample, generated: _Sample, selection: SelectionFactor, holders: Holders) -> tuple[float, float]:
    """Return the gain in log-likelihood per real junction through the factor, and its standard error.

    The factor changes the expected number of individuals that have a junction.  The likelihood of a junction is its
    share of the sum of these numbers, which is estimated from generated junctions.
    """
    logs = [
        holders.expected(sample.log_p + sample.junctions.log_factor(selection))[0] - holders.expected(sample.log_p)[0]
        for sample in (real, generated)
    ]
    gain, error = real.mean(logs[0])
    total, error_of_total = generated.mean(np.exp(logs[1]))
    return gain - math.log(total), math.hypot(error, error_of_total / total)


def _auc(real: _Sample, generated: _Sample, selection: SelectionFactor) -> float:
    """Return P(a real junction has a larger Q than a generated one); ties count half (Mann and Whitney)."""
    values, others = (sample.junctions.log_factor(selection) for sample in (real, generated))
    order = np.argsort(others, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(generated.times[order])])
    ranks = [np.searchsorted(others[order], values, side) for side in ("left", "right")]  # type: ignore[call-overload]
    smaller = (below[ranks[0]] + below[ranks[1]]) / 2
    return float((real.times * smaller).sum() / (real.times.sum() * below[-1]))


def _warnings(weights: int, rows: int, gain: float, error: float) -> list[str]:
    warnings = []
    cost = weights / (2 * rows)
    if cost > MOST_UNCERTAINTY:
        warnings.append(
            f"too few rows: {weights:,} weights from {rows:,} junctions. Without the penalty, their uncertainty would "
            f"cost at least {cost:.2f} nats per junction; with it, the factor is smaller than it should be. Give "
            f"{math.ceil(weights / (2 * MOST_UNCERTAINTY)):,} or more"
        )
    if gain < LEAST_GAIN * error:
        warnings.append(
            f"the factor explains no more of junctions that were held out than chance ({gain:+.4f} ± {error:.4f} "
            "nats): there is no selection to be seen, or too few rows"
        )
    return warnings


def design(parts: Sequence[SingleGeneJunctions]) -> tuple[list[str], Any]:
    """Return the names of features, and a sparse matrix [junctions, features] with 1 where a junction has a feature."""
    from scipy.sparse import csr_matrix

    texts = [part.amino_acids for part in parts]
    width = max(letters.shape[1] for letters, _ in texts)
    letters = np.concatenate([np.pad(block, ((0, 0), (0, width - block.shape[1]))) for block, _ in texts])
    lengths = np.concatenate([numbers for _, numbers in texts])
    offsets = np.cumsum([0, *(len(part.genes) for part in parts)])
    pair = np.concatenate([part.pair + offset for part, offset in zip(parts, offsets, strict=False)])
    number: dict[str, int] = {}
    columns = []
    for names, feature in features([name for part in parts for name in part.genes], pair, letters, lengths):
        column = np.full(len(names) + 1, -1, dtype=np.int32)
        for used in np.flatnonzero(np.bincount(feature[feature >= 0])).tolist():
            column[used] = number.setdefault(names[used], len(number))
        columns.append(column[feature])
    of_row = np.stack(columns, axis=1)
    there = of_row >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    matrix = csr_matrix((np.ones(ends[-1]), of_row[there], ends), shape=(len(of_row), len(number)))
    return list(number), matrix


def _regression(
    real: _Sample, generated: _Sample, holders: Holders, log_ratio: float, judging: NDArray[np.bool_]
) -> tuple[SelectionFactor, float]:
    """Return the factor before its normalisation, with the range of Q of these junctions, and the penalty.

    log_ratio  natural logarithm of the expected ratio of real to generated junctions where Q is 1
    judging    bool [real and generated junctions]: the junctions that decide the penalty
    """
    from scipy.sparse import hstack

    names, matrix = design((real.junctions, generated.junctions))
    matrix = hstack((np.ones((matrix.shape[0], 1)), matrix), format="csr")
    times = np.concatenate([real.times, generated.times])
    log_p = np.concatenate([real.log_p, generated.log_p])
    is_real = np.arange(len(log_p)) < len(real.log_p)
    weights, ridge = fit(Regression(matrix, is_real, times, log_p, holders, log_ratio), judging)
    logs, (intercept, *others) = matrix @ weights, weights.tolist()
    by_name = dict(zip(names, others, strict=True))
    return SelectionFactor(by_name, intercept, float(logs.min()), float(logs.max())), ridge


def averages(selection: SelectionFactor, fresh: SingleGeneJunctions) -> tuple[float, dict[Genes, float]]:
    """Return the mean of a factor over generated junctions, and over those of each V and J gene."""
    values = np.exp(fresh.log_factor(selection)) * fresh.times
    sums, number = (np.bincount(fresh.pair, weights, len(fresh.genes)) for weights in (values, fresh.times))
    of_genes = {
        name: float(total / count)
        for name, total, count in zip(fresh.genes, sums, number, strict=True)
        if count >= FEWEST_OF_CLASS
    }
    return float(values.sum() / fresh.times.sum()), of_genes


def normalised(selection: SelectionFactor, fresh: SingleGeneJunctions) -> SelectionFactor:
    """Return the factor with mean 1 over generated junctions, and its means for each V and J gene."""
    mean, of_genes = averages(selection, fresh)
    shift = float(np.log(mean))
    return replace(
        selection,
        intercept=selection.intercept - shift,
        smallest=selection.smallest - shift,
        largest=selection.largest - shift,
        means={name: of_pair / mean for name, of_pair in of_genes.items()},
    )


def sonia_model(folder: Path, backend: str = AUTO) -> Model:
    """Read the recombination model in a folder of SONIA, with its selection factor.

    Z is that of the folder.  The means of Q are computed from productive draws.  Raises InputError for other folders.
    """
    model = read_sonia(folder)
    selection = model.require_selection()
    # Another seed than that of `hpcvdj generate`, so that generated tables are not compared with themselves.
    seed = int(np.random.SeedSequence([0, 2]).generate_state(1, np.uint64)[0])
    drawn = Chance(model, FRESH, seed, backend, strict_binding=False).drawn(Run())
    assert drawn is not None
    mean, means = averages(selection, SingleGeneJunctions.drawn(drawn))
    if abs(mean - 1) > MOST_OFF:
        log.warning(
            "%s: the mean of Q over %s productive draws from its model is %.3g, not 1: Z is not that of this model, "
            "and the sum of all probabilities after selection is this number", folder, f"{FRESH:,}", mean,
        )  # fmt: skip
    facts = {**selection.facts, "fresh": FRESH, "mean_of_q": mean}
    return replace(model, selection=replace(selection, means=means, facts=facts))
