"""Inferring the selection factor of a model: logistic regression of real against generated productive junctions.

With as many of both, the log-odds that a junction is real are ln Q, up to a constant: a density ratio.  The constant
makes the mean of Q over further generated junctions 1.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.counting.tables import productive_reading
from hpcvdj.errors import InputError, require_integer
from hpcvdj.generation.generate import Generation, generate
from hpcvdj.kernels.backends import AUTO, Backend
from hpcvdj.kernels.generation.letters import RESIDUES
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.kernels.text import translate_rows
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.selection import Counts, Floats, Genes, Selection, features, genes_of
from hpcvdj.repertoires.junctions import Junctions, read_table
from hpcvdj.results.frames import require
from hpcvdj.runs.run import Run

log = logging.getLogger(__name__)

MOST_ROWS = 300_000
"""Junctions of each kind that take part, by default: more change little, and take longer."""

FEWEST_ROWS = 1_000
"""Real junctions without which no factor is inferred."""

MOST_UNCERTAINTY = 0.1
"""Nats per junction that the uncertainty of the weights may cost without a warning.

With p features and as many real as generated junctions, n, that is p / n at most: half the mean variance of ln Q, which
is p over the sum of P (1 - P), at most 1/4, of all 2 n.
"""

FRESH = 300_000
"""Generated junctions that make the mean of Q 1, at least."""

FEWEST_OF_CLASS = 100
"""Generated junctions of a V and a J gene that the mean of Q over them needs."""

HELD_OUT = 10
"""One junction in so many is held out."""

RIDGE = 1.0
"""The penalty is half of it times the sum of the squared weights."""

_TOLERANCE, _ITERATIONS = 1e-5, 1_000


@dataclass(frozen=True)
class SelectionPlan:
    """How a selection factor is inferred.

    rows  junctions that take part at most, of the real and of the generated ones
    seed  of the junctions that are drawn
    """

    rows: int = MOST_ROWS
    seed: int = 0

    def __post_init__(self) -> None:
        if require_integer("rows", self.rows, "give a whole number") < FEWEST_ROWS:
            raise InputError(f"--rows {self.rows}: give at least {FEWEST_ROWS:,}")
        if not 0 <= require_integer("seed", self.seed, "give a whole number") < 1 << 63:
            raise InputError(f"--seed {self.seed}: must be a number from 0 to 2^63 - 1")


@dataclass(frozen=True)
class SelectionFit:
    """An inferred selection factor.

    model     with the factor
    rows      distinct junctions that the factor was inferred from, and how many were held out
    gain      the mean of ln Q over real junctions that were held out: nats that the factor adds to the log-likelihood
              of a junction
    error     its standard error
    auc       the probability that a real junction that was held out has a larger Q than a generated one
    left_out  rows that did not take part, by the reason
    warnings  what to know of it
    """

    model: Model
    rows: tuple[int, int]
    gain: float
    error: float
    auc: float
    left_out: dict[str, int]
    warnings: tuple[str, ...]

    @property
    def selection(self) -> Selection:
        """The factor."""
        assert self.model.selection is not None
        return self.model.selection


@dataclass(frozen=True)
class Spelled:
    """Distinct productive junctions, sorted by genes, length and bases.

    genes    of each class
    pair     int64 [junctions]: the class of each
    letters  uint8 [junctions, width]: the amino acids as ASCII, padded with zeros
    lengths  int64 [junctions]: how many
    times    int64 [junctions]: rows that have it
    """

    genes: list[Genes]
    pair: Counts
    letters: NDArray[np.uint8]
    lengths: Counts
    times: Counts

    def __len__(self) -> int:
        return len(self.pair)

    def take(self, rows: Counts) -> "Spelled":
        """Some of them."""
        return Spelled(self.genes, self.pair[rows], self.letters[rows], self.lengths[rows], self.times[rows])

    def log_factor(self, selection: Selection) -> Floats:
        """ln Q of each."""
        v, j = ([own[k] for own in self.genes] for k in (0, 1))
        return selection.log_factor(v, j, self.pair, self.letters, self.lengths)


def distinct(junctions: Junctions) -> tuple[Spelled, dict[str, int]]:
    """The distinct junctions with one V and one J gene that the model can choose; rows that are left out, by reason."""
    own = junctions.repertoire
    genes = [(genes_of(v.allele), genes_of(j.allele)) for v, j in own.pairs]
    several = np.array(["," in v + j for v, j in genes], dtype=bool)
    never = np.array([not (v.places and j.places) for v, j in own.pairs], dtype=bool)
    classes = sorted({name for name, no in zip(genes, several | never, strict=True) if not no})
    number = {name: place for place, name in enumerate(classes)}
    sizes = np.diff(own.offsets)
    kind = np.repeat(np.array([number.get(name, -1) for name in genes], dtype=np.int64), sizes)
    kind[np.repeat(several | never, sizes)] = -1
    keep = np.flatnonzero(kind >= 0)
    first, group = groups(own.words[keep], own.lengths[keep].astype(np.int64), kind[keep])
    times, rows = np.bincount(group, minlength=len(first)), keep[first]
    codons = own.lengths[rows].astype(np.int64) // 3
    width = int(codons.max(initial=1))
    letters = np.zeros((len(rows), width), dtype=np.uint8)
    translate_rows(own.words[rows], codons, RESIDUES, np.arange(len(rows)) * width, letters.reshape(-1))
    left_out = {
        "with several V or J genes": int(sizes[several].sum()),
        "with genes that the model never chooses": int(sizes[never & ~several].sum()),
        "that another row repeats": len(keep) - len(first),
    }
    return Spelled(classes, kind[rows], letters, codons, times), left_out


def infer_selection(
    junctions: Junctions | None, model: Model, plan: SelectionPlan, run: Run, backend_name: str = AUTO
) -> SelectionFit | None:
    """Infer the factor of a model from root's junctions, with as many that the model makes; None on the other ranks.

    InputError if there are too few, and without scikit-learn.
    """

    def real() -> tuple[Spelled, dict[str, int], int]:
        require("sklearn", "selection")
        assert junctions is not None
        own, left_out = distinct(junctions)
        if len(own) < FEWEST_ROWS:
            said = "".join(f", {number:,} {reason}" for reason, number in left_out.items() if number)
            raise InputError(
                f"{len(own):,} distinct productive junctions{said}: too few to infer selection, which needs "
                f"{FEWEST_ROWS:,}, better 100,000; give more tables"
            )
        return own, left_out, min(len(own), plan.rows)

    found = run.on_root(real)
    number = run.from_root(lambda: found[2] if found is not None else 0)
    drawn = _drawn(model, number, plan.seed, run.bind(backend_name), run)

    def fit() -> SelectionFit:
        assert found is not None
        return _fit(found[0], found[1], number, drawn, model, plan)

    return run.on_root(fit)


def _drawn(model: Model, number: int, seed: int, backend: Backend, run: Run) -> pa.Table | None:
    """Generated junctions on root: `number` to infer from, and others for the mean of Q."""
    # Another seed than that of `hpcvdj generate`, so that generated tables are never compared with themselves.
    other = int(np.random.SeedSequence([seed, 1]).generate_state(1, np.uint64)[0])
    plan = Generation(number + max(number, FRESH), other, productive=True)
    batches = [batch.select(["v_call", "j_call", "junction"]) for batch in generate(model, plan, backend, run)]
    return pa.Table.from_batches(batches) if run.is_root else None


def _fit(
    real: Spelled, left_out: dict[str, int], number: int, drawn: pa.Table, model: Model, plan: SelectionPlan
) -> SelectionFit:
    generated, fresh = (
        distinct(read_table(part, model, productive_reading()))[0]
        for part in (drawn.slice(0, number), drawn.slice(number))
    )
    kept, held = zip(*(_split(own, number, plan.seed) for own in (real, generated)), strict=True)
    selection = normalised(_regression(*kept), fresh)
    logs = [own.log_factor(selection) for own in held]
    gain, error = float(logs[0].mean()), float(logs[0].std(ddof=1) / np.sqrt(len(logs[0])))
    auc = _auc(*logs)
    warnings = []
    weights, cost = len(selection.weights), len(selection.weights) / len(kept[0])
    if cost > MOST_UNCERTAINTY:
        warnings.append(
            f"too few rows: {weights:,} weights from {len(kept[0]):,} junctions, whose uncertainty costs up to "
            f"{cost:.2f} nats per junction; give {math.ceil(weights / MOST_UNCERTAINTY):,} or more"
        )
    if gain < 2 * error:
        warnings.append(
            f"the factor explains no more of junctions that were held out than chance ({gain:+.4f} ± {error:.4f} "
            "nats): there is no selection to be seen, or too few rows"
        )
    facts = {
        "rows": len(kept[0]), "generated": len(kept[1]), "held_out": len(held[0]), "fresh": int(fresh.times.sum()),
        "ridge": RIDGE, "seed": plan.seed, "gain_nats": gain, "gain_standard_error": error, "auc": auc,
        "warnings": warnings, "scikit_learn": version("scikit-learn"),
    }  # fmt: skip
    with_factor = replace(model, selection=replace(selection, facts=facts))
    rows = len(kept[0]), len(held[0])
    return SelectionFit(with_factor, rows, gain, error, auc, left_out, tuple(warnings))


def _split(own: Spelled, number: int, seed: int) -> tuple[Spelled, Spelled]:
    """At most `number` junctions, drawn: those to infer from, and those that are held out."""
    chosen = np.random.default_rng([seed, 2]).permutation(len(own))[:number]
    held = len(chosen) // HELD_OUT
    return own.take(np.sort(chosen[held:])), own.take(np.sort(chosen[:held]))


def design(parts: Sequence[Spelled]) -> tuple[list[str], Any]:
    """The features of junctions: names, and a sparse matrix [junctions, features] of 1 where a junction has one."""
    from scipy.sparse import csr_matrix

    width = max(own.letters.shape[1] for own in parts)
    offsets = np.cumsum([0, *(len(own.genes) for own in parts)])
    pair = np.concatenate([own.pair + offset for own, offset in zip(parts, offsets, strict=False)])
    letters = np.concatenate([np.pad(own.letters, ((0, 0), (0, width - own.letters.shape[1]))) for own in parts])
    lengths = np.concatenate([own.lengths for own in parts])
    number: dict[str, int] = {}
    columns = []
    for names, place in features([name for own in parts for name in own.genes], pair, letters, lengths):
        column = np.full(len(names) + 1, -1, dtype=np.int32)
        for used in np.unique(place[place >= 0]).tolist():
            column[used] = number.setdefault(names[used], len(number))
        columns.append(column[place])
    of_row = np.stack(columns, axis=1)
    there = of_row >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    matrix = csr_matrix((np.ones(ends[-1]), of_row[there], ends), shape=(len(of_row), len(number)))
    return list(number), matrix


def _regression(real: Spelled, generated: Spelled) -> Selection:
    """The weights, with the log-odds as they come; their range is that of these junctions."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    names, matrix = design((real, generated))
    is_real = np.repeat([1, 0], [len(real), len(generated)])
    regression = LogisticRegression(C=1 / RIDGE, tol=_TOLERANCE, max_iter=_ITERATIONS)
    # A sum over several threads would depend on their number.
    with threadpool_limits(1):
        regression.fit(matrix, is_real)
    if regression.n_iter_[0] >= _ITERATIONS:
        log.warning("the regression stopped after %s iterations, before it converged", f"{_ITERATIONS:,}")
    weights, intercept = regression.coef_[0], float(regression.intercept_[0])
    odds = matrix @ weights + intercept
    return Selection(dict(zip(names, weights.tolist(), strict=True)), intercept, float(odds.min()), float(odds.max()))


def normalised(selection: Selection, fresh: Spelled) -> Selection:
    """The factor with mean 1 over generated junctions, and its means over those of each V and J gene."""
    values = np.exp(fresh.log_factor(selection)) * fresh.times
    mean = values.sum() / fresh.times.sum()
    sums, number = (np.bincount(fresh.pair, own, len(fresh.genes)) for own in (values, fresh.times))
    shift = float(np.log(mean))
    return replace(
        selection,
        intercept=selection.intercept - shift,
        smallest=selection.smallest - shift,
        largest=selection.largest - shift,
        means={
            name: float(total / count / mean)
            for name, total, count in zip(fresh.genes, sums, number, strict=True)
            if count >= FEWEST_OF_CLASS
        },
    )


def _auc(of_real: Floats, of_generated: Floats) -> float:
    """P(a real junction has a larger value than a generated one), ties counted half (Mann and Whitney)."""
    from scipy.stats import rankdata

    n = len(of_real)
    ranks = rankdata(np.concatenate([of_real, of_generated]))[:n].sum()
    return float((ranks - n * (n + 1) / 2) / (n * len(of_generated)))
