"""Inferring the selection factor of a model: regression of real against generated productive junctions.

An individual has a distinct junction once, however often its cells made it; in nucleotides, or in amino acids if no
more is known.  So the real junctions are the distinct
ones of each individual, and generated ones count as often as individuals of the same sizes would have them if nothing
was selected.  See `hpcvdj.inference.regression`.  A constant makes the mean of Q over further draws 1.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.check import UNCHECKED, ModelFit
from hpcvdj.chance.dealing import Dealt
from hpcvdj.chance.depth import Draws, Holders, recombinations_of
from hpcvdj.chance.draws import Chance
from hpcvdj.errors import TooFewError
from hpcvdj.inference.distinct import DistinctJunctions, of_individuals
from hpcvdj.inference.regression import Regression, fit
from hpcvdj.inference.settings import FEWEST_JUNCTIONS, SelectionSettings
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.exclusions import Exclusion
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import Counts, Floats, Genes, Selection, features
from hpcvdj.repertoires.genes import as_read, has_nucleotides
from hpcvdj.repertoires.tally import Tally
from hpcvdj.runs.run import Run

log = logging.getLogger(__name__)

MOST_UNCERTAINTY = 0.1
"""Nats per junction that the uncertainty of the weights may cost without a penalty before there is a warning.

With p features and n real junctions, it costs p / 2n at least: half the mean variance of ln Q, which is p over the sum
of P (1 - P) of all junctions.  P is the probability that a junction is real, so this sum is at most that of P, n.
"""

FRESH = 300_000
"""Draws from the model to compare with, at least, and as many others that make the mean of Q 1."""

FEWEST_OF_CLASS = 100
"""Draws with a V and a J gene that the mean of Q over them needs."""

PARTS = 10
"""The different junctions are divided into so many parts: one is held out, and one says how large the penalty is."""

HELD_OUT, JUDGING = 0, 1

LEAST_GAIN = 2
"""Standard errors from which a gain is one."""

SMALLEST = 1e-300
"""What counts as the probability of a junction that the model cannot make."""


@dataclass(frozen=True)
class SelectionFit:
    """An inferred selection factor.

    model     with the factor
    rows      distinct junctions that the factor was inferred from, and how many were held out
    individuals  that have real junctions
    gain      nats that the factor adds to the log-likelihood of a distinct junction of an individual that was held out
    error     its standard error
    auc       the probability that a real junction that was held out has a larger Q than a generated one
    left_out  rows that did not take part, by the reason
    warnings  what to know of it
    rows_read, excluded  rows of the tables, and those that could not be read
    reasons   why these could not, and how many
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
    def selection(self) -> Selection:
        """The factor."""
        assert self.model.selection is not None
        return self.model.selection

    @property
    def explains(self) -> bool:
        """Whether the factor explains more of junctions that were held out than chance does."""
        return self.gain >= LEAST_GAIN * self.error


@dataclass(frozen=True)
class _Real:
    """The real junctions: those that take part, and of how many; how many each individual has; what is left out."""

    taken: DistinctJunctions
    distinct: int
    of_individual: Counts
    names: list[str]
    left_out: dict[str, int]
    tally: Tally


def infer_selection(
    dealt: Dealt,
    model: Model,
    plan: SelectionSettings,
    backend_name: str = AUTO,
    fits: ModelFit = UNCHECKED,
) -> SelectionFit | None:
    """Infer the factor of a model from the ranks' rows, and others that the model makes; None on other ranks than root.

    An individual is a sample of the rows, of which equal junctions are on one rank.  Genes that `fits` finds broken are
    left out.  InputError if there are too few.
    """
    run = dealt.run
    real = _real(dealt, model, plan, fits.broken)
    number = run.from_root(lambda: max(len(real.taken), FRESH) if real is not None else 0)
    # Other seeds than that of `hpcvdj generate`, so that generated tables are never compared with themselves.
    seeds = np.random.SeedSequence([plan.seed, 1]).generate_state(2, np.uint64).tolist()
    chances = [Chance(model, number, seed, backend_name, strict_binding=False) for seed in seeds]
    known = run.from_root(lambda: real is None or has_nucleotides(real.taken.repertoire))
    generated, fresh = (
        DistinctJunctions.drawn(as_read(drawn, real.taken.repertoire), fits.broken)
        if drawn is not None and real is not None
        else None
        for drawn in (chance.drawn(run) for chance in chances)
    )
    held = fresh.take(np.flatnonzero(fresh.lots(PARTS, plan.seed) == HELD_OUT)) if fresh is not None else None
    parts = [real.taken if real is not None else None, generated, held]
    spelled = [part.repertoire if part is not None else None for part in parts]
    names = PGEN_COLUMNS[:1] if known else PGEN_COLUMNS[1:2]
    p = [chances[0].among_productive(repertoire, names, run) for repertoire in spelled]

    def fitted() -> SelectionFit:
        assert real is not None
        assert generated is not None
        assert fresh is not None
        # Without broken genes, the others share what recombination makes.
        share = int(generated.times.sum() + fresh.times.sum()) / (2 * number)
        return _fitted(real, [_Sample.of(*sample, share) for sample in zip(parts, p, strict=True)], fresh, model, plan)

    return run.on_root(fitted)


def _real(dealt: Dealt, model: Model, plan: SelectionSettings, broken: frozenset[str]) -> _Real | None:
    """Those of all ranks, on root."""
    run = dealt.run
    own, of_individual, left_out = of_individuals(dealt, model, broken)
    distinct = int(run.sum(np.array([len(own)]))[0])
    run.on_root(lambda: _require_enough(distinct, left_out))
    parts = run.gather(own.take(_drawn(own.scattered(plan.seed, 3), plan.max_junctions, run)))
    if parts is None:
        return None
    assert dealt.tally is not None
    taken = DistinctJunctions.joined(parts)
    return _Real(taken, distinct, of_individual, dealt.samples or ["the table"], left_out, dealt.tally)


def _require_enough(distinct: int, left_out: dict[str, int]) -> None:
    if distinct < FEWEST_JUNCTIONS:
        said = "".join(f", {number:,} {reason}" for reason, number in left_out.items() if number)
        raise TooFewError(
            f"{distinct:,} distinct productive junctions{said}: too few to infer selection, which needs "
            f"{FEWEST_JUNCTIONS:,}, better 100,000; give more tables"
        )


def _drawn(numbers: NDArray[np.uint64], most: int, run: Run) -> Counts:
    """The places of those of this rank's random numbers that are among the `most` smallest of all ranks, ascending."""
    parts = run.gather(np.sort(numbers)[:most])

    def largest() -> int:
        assert parts is not None
        smallest = np.sort(np.concatenate(parts))[:most]
        return int(smallest[-1])

    return np.flatnonzero(numbers <= np.uint64(run.from_root(largest)))


@dataclass(frozen=True)
class _Sample:
    """Distinct junctions, real or drawn.

    log_p  float64 [junctions]: natural logarithm of the probability among productive recombinations of these genes
    times  float64 [junctions]: how often each counts
    """

    junctions: DistinctJunctions
    log_p: Floats
    times: Floats

    @staticmethod
    def of(junctions: DistinctJunctions | None, p: Floats | None, share: float = 1.0) -> "_Sample":
        """Those of probabilities p, float64 [junctions, 1], among all productive recombinations; a share is left."""
        assert junctions is not None
        assert p is not None
        return _Sample(junctions, np.log(np.maximum(p[:, 0] / share, SMALLEST)), junctions.times.astype(np.float64))

    def held_by(self, holders: Holders) -> "_Sample":
        """Drawn junctions that count, for each draw, as often as individuals have them for each recombination."""
        once = np.exp(holders.expected(self.log_p)[0] - self.log_p) / holders.recombinations
        return replace(self, times=self.times * once)

    def take(self, chosen: NDArray[np.bool_]) -> "_Sample":
        """Those that are chosen."""
        return _Sample(self.junctions.take(np.flatnonzero(chosen)), self.log_p[chosen], self.times[chosen])

    def mean(self, values: Floats) -> tuple[float, float]:
        """The mean of a number that each junction has, and its standard error."""
        total, rows = self.times.sum(), len(values)
        mean = float((self.times * values).sum() / total)
        # What individuals have in common is not drawn for each of them.
        squares = float(((self.times * (values - mean)) ** 2).sum() / total**2)
        return mean, math.sqrt(squares * rows / (rows - 1))


def _fitted(
    real: _Real, samples: Sequence[_Sample], fresh: DistinctJunctions, model: Model, plan: SelectionSettings
) -> SelectionFit:
    """The factor.

    samples  the real junctions, drawn ones to compare with, and others of the part that is held out
    fresh    drawn, for the mean of Q
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
    facts = {
        "rows": rows[0], "held_out": rows[1], "individuals": individuals,
        "recombinations": round(holders.recombinations), "generated": round(draws), "fresh": int(fresh.times.sum()),
        "ridge": ridge, "seed": plan.seed, "gain_nats": gain, "gain_standard_error": error, "auc": auc,
        "warnings": warnings,
    }  # fmt: skip
    with_factor = replace(model, selection=replace(normalised(selection, fresh), facts=facts))
    return SelectionFit(
        with_factor, rows, individuals, gain, error, auc, real.left_out, tuple(warnings), real.tally.rows_read,
        sum(number for _, number in real.tally.excluded), real.tally.excluded,
    )  # fmt: skip


def _gain(real: _Sample, generated: _Sample, selection: Selection, holders: Holders) -> tuple[float, float]:
    """The mean, over real junctions, of the logarithm of how much more likely the factor makes each; standard error.

    The factor changes how many individuals are expected to have a junction, and these numbers as shares of their sum,
    which is that over generated junctions.
    """
    logs = [
        holders.expected(sample.log_p + sample.junctions.log_factor(selection))[0] - holders.expected(sample.log_p)[0]
        for sample in (real, generated)
    ]
    gain, error = real.mean(logs[0])
    total, error_of_total = generated.mean(np.exp(logs[1]))
    return gain - math.log(total), math.hypot(error, error_of_total / total)


def _auc(real: _Sample, generated: _Sample, selection: Selection) -> float:
    """P(a real junction has a larger Q than a generated one), ties counted half (Mann and Whitney)."""
    values, others = (sample.junctions.log_factor(selection) for sample in (real, generated))
    order = np.argsort(others, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(generated.times[order])])
    ranks = [np.searchsorted(others[order], values, side) for side in ("left", "right")]  # type: ignore[call-overload]
    smaller = (below[ranks[0]] + below[ranks[1]]) / 2
    return float((real.times * smaller).sum() / (real.times.sum() * below[-1]))


def _warnings(weights: int, rows: int, gain: float, error: float) -> list[str]:
    """What to know of a factor."""
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


def design(parts: Sequence[DistinctJunctions]) -> tuple[list[str], Any]:
    """The features of junctions: names, and a sparse matrix [junctions, features] of 1 where a junction has one."""
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
) -> tuple[Selection, float]:
    """The weights as they come, and their penalty; the range is that of these junctions.

    log_ratio  of how often real and generated junctions are expected where Q is 1
    judging    bool [real and generated junctions]: those that say how large the penalty is
    """
    from scipy.sparse import hstack

    names, matrix = design((real.junctions, generated.junctions))
    matrix = hstack((np.ones((matrix.shape[0], 1)), matrix), format="csr")
    times = np.concatenate([real.times, generated.times])
    log_p = np.concatenate([real.log_p, generated.log_p])
    is_real = np.arange(len(log_p)) < len(real.log_p)
    weights, ridge = fit(Regression(matrix, is_real, times, log_p, holders, log_ratio), judging)
    logs, (intercept, *others) = matrix @ weights, weights.tolist()
    return Selection(dict(zip(names, others, strict=True)), intercept, float(logs.min()), float(logs.max())), ridge


def averages(selection: Selection, fresh: DistinctJunctions) -> tuple[float, dict[Genes, float]]:
    """The mean of a factor over generated junctions, and over those of each V and J gene."""
    values = np.exp(fresh.log_factor(selection)) * fresh.times
    sums, number = (np.bincount(fresh.pair, weights, len(fresh.genes)) for weights in (values, fresh.times))
    of_genes = {
        name: float(total / count)
        for name, total, count in zip(fresh.genes, sums, number, strict=True)
        if count >= FEWEST_OF_CLASS
    }
    return float(values.sum() / fresh.times.sum()), of_genes


def normalised(selection: Selection, fresh: DistinctJunctions) -> Selection:
    """The factor with mean 1 over generated junctions, and its means over those of each V and J gene."""
    mean, of_genes = averages(selection, fresh)
    shift = float(np.log(mean))
    return replace(
        selection,
        intercept=selection.intercept - shift,
        smallest=selection.smallest - shift,
        largest=selection.largest - shift,
        means={name: of_pair / mean for name, of_pair in of_genes.items()},
    )
