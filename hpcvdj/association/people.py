"""Whether two times are of one person: large clonotypes of one time are then at the other one, too.

Two people also share clonotypes, by chance.  So only improbable ones count, which chance hardly puts into both.
Samples of naive cells, or of few cells that are amplified unequally, share none of these even if they are of one
person.  So times seem to be of two people only if other times, or replicates, of the cohort share many.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hpcvdj.association.expansion import Expansion, Pair
from hpcvdj.chance.draws import Chance
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.improbable import SELECTION
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import has_nucleotides
from hpcvdj.runs.run import Run

COMPARED = 20
"""The number of large improbable clonotypes of each time that are looked for at the other time; with fewer, times are
not compared."""

FEW, MANY = 2, 10
"""Two people share at most the first number of those, as 0.2 or fewer are expected.  Samples of one person share more
even if most clones are new or are gone, and usually the second number or more."""

BY_CHANCE = 0.01
"""The largest chance, with selection, that another person has an improbable clonotype."""

CELLS = 10
"""A clonotype is large if it has this many times the reads of the median clonotype, at its own time and, if its share
does not change, at the other one.  The median clonotype is about one cell, however many reads a cell has.  So a sample
of few cells has no large clonotypes, and a deep one has none that a shallow one would miss."""

MOST_TRIED = 500
"""The number of the largest clonotypes of each time whose probabilities are computed."""


def compared(expansion: Expansion, model: Model, run: Run) -> Expansion:
    """Return the expansion with `largest_shared` of its pairs, computed on this rank alone, of which `run` is."""
    repertoire, pairs = expansion.cohort.repertoire, [*expansion.pairs, *expansion.replicated]
    ways = [(pair, *reads, _large(*reads)) for pair in pairs for reads in _both_ways(pair)]
    rows = np.unique(np.concatenate([pair.clonotypes[large] for pair, *_, large in ways]))
    column = PGEN_COLUMNS[0 if has_nucleotides(repertoire) else 1]
    p = Chance(model, 0, 0, "cpu", False).of_ranks([repertoire.subset(rows)], (column,), run)[0][:, 0]
    shared = [_shared(other, large, p[np.searchsorted(rows, pair.clonotypes[large])])
              for pair, _, other, _, large in ways]  # fmt: skip
    counted = [
        replace(pair, largest_shared=None if before is None or after is None else (before, after))
        for pair, before, after in zip(pairs, shared[::2], shared[1::2], strict=True)
    ]
    number = len(expansion.pairs)
    return replace(expansion, pairs=counted[:number], replicated=counted[number:])


def of_two_people(expansion: Expansion) -> list[Pair]:
    """Return the pairs of times that seem to be of two people; none unless others of the cohort are of one."""
    most = [max(pair.largest_shared or (-1,)) for pair in (*expansion.pairs, *expansion.replicated)]
    if max(most) < MANY:
        return []
    return [pair for pair, shared in zip(expansion.pairs, most, strict=False) if 0 <= shared <= FEW]


def _both_ways(pair: Pair) -> Iterator[tuple[Counts, Counts, float]]:
    """Yield, for both times, the reads at it and at the other one, int64 [clonotypes], and the depth ratio."""
    counted = pair.counted
    after = counted.after[counted.of]
    before = counted.total[counted.of] - after
    yield before, after, counted.ratio
    yield after, before, 1 / counted.ratio


def _large(own: Counts, other: Counts, ratio: float) -> Counts:
    """Return the indices of the large clonotypes of a time, int64 [at most MOST_TRIED], the largest first."""
    cells = own * min(1 / np.median(own[own > 0]), ratio / np.median(other[other > 0]))
    order = np.argsort(-own, kind="stable")[:MOST_TRIED]
    return order[cells[order] >= CELLS]


def _shared(other: Counts, large: Counts, p: Floats) -> int | None:
    """Count the largest improbable clonotypes that the other time has; None if there are too few to compare.

    large  int64: the indices of large clonotypes
    p      float64 [large clonotypes]: their probabilities
    """
    improbable = large[(p > 0) & (SELECTION * p * (other > 0).sum() <= BY_CHANCE)][:COMPARED]
    return int((other[improbable] > 0).sum()) if len(improbable) == COMPARED else None
