"""How many recombinations made the distinct junctions of each class.

There are more recombinations than distinct junctions where diversity is small, because junctions repeat.  Let p(σ) be
the probability of the junction σ among those with the genes of a class.  Then n recombinations make D(n) distinct
junctions on average, with D(n) = Σ (1 - (1 - p)^n).  This is the mean of (1 - (1 - p)^n) / p over junctions that are
drawn.  The estimate is the n for which D(n) is the number of distinct junctions in a sample.  A class has few draws, so
the draws of all classes also count for it: given their genes, junctions of different classes repeat nearly alike.
"""

from dataclasses import dataclass, replace

import numpy as np

from hpcvdj.annotation.statistics import chance_of, times_made
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.productive import productive_of, productive_probability
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.repertoires.genes import kinds_of, merged
from hpcvdj.runs.run import Run

DRAWN = 40_000
"""Junctions that are drawn to find out how often they repeat."""

PRIOR = 50
"""The number of draws from all classes that are added to those of each class."""

MOST_REPEATED = 1e3
"""The largest ratio of recombinations and distinct junctions."""

_BINS = 2000
"""Bins of log p in which the draws of all classes are counted."""

_POINTS = 128
"""Numbers of recombinations per factor of e at which the distinct junctions of all classes are computed."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Depth:
    """Junctions drawn from a model.

    pairs   V and J genes of the draws
    kind    int64 [draws]: the pair
    p       float64 [draws]: probability among the junctions of the pair, after selection
    weight  float64 [draws]: by how much selection makes a draw more common among those of its pair
    """

    pairs: list[Pair]
    kind: Counts
    p: Floats
    weight: Floats

    def recombinations(self, distinct: Counts, genes: list[Pair]) -> Floats:
        """The number of recombinations that made the distinct junctions of each pair of genes, float64 [genes].

        distinct  int64 [genes]: how many distinct junctions
        """
        row_of = {pair: row for row, pair in enumerate(genes)}
        # The row of each draw's pair in `genes`; draws of other pairs are left out.
        row = np.array([row_of.get(pair, -1) for pair in self.pairs], dtype=np.int64)[self.kind]
        draws = np.flatnonzero(row >= 0)
        row, p, weight = row[draws], self.p[draws], self.weight[draws]
        size = np.bincount(row, weight, len(genes)) + PRIOR
        wanted = np.maximum(distinct, 1).astype(np.float64)
        grid, of_all = self._of_all(float(wanted.max(initial=1.0)) * MOST_REPEATED)
        low, high = np.log(wanted), np.log(wanted * MOST_REPEATED)
        # Computed once: logarithms take longer than all else in the steps below.
        of_one = times_made(np.ones(1), p)
        for _ in range(50):
            middle = (low + high) / 2
            n = np.exp(middle)
            of_class = np.bincount(row, weight * chance_of(n[row] * of_one, 1.0) / p, len(genes))
            too_few = of_class + PRIOR * np.exp(np.interp(middle, grid, of_all)) < wanted * size
            low, high = np.where(too_few, middle, low), np.where(too_few, high, middle)
        return np.where(distinct > 0, np.exp(high), 0.0)

    def _of_all(self, most: float) -> tuple[Floats, Floats]:
        """ln n and ln D(n) of the draws of all classes, float64 [grid]."""
        log_p = np.log(self.p)
        edges = np.linspace(log_p.min(), log_p.max() + 1e-9, _BINS + 1)
        of_bin = np.searchsorted(edges, log_p, side="right") - 1
        weight = np.bincount(of_bin, self.weight, _BINS)
        mean = np.bincount(of_bin, self.weight * self.p, _BINS)[weight > 0] / weight[weight > 0]
        share = weight[weight > 0] / weight.sum()
        of_one = times_made(np.ones(1), mean)
        # The points do not depend on `most`, so that no class changes the numbers of others.
        grid = np.arange(np.ceil(np.log(most) * _POINTS) + 1) / _POINTS
        return grid, np.log([(share * chance_of(n * of_one, 1.0) / mean).sum() for n in np.exp(grid)])


def depth_of(
    model: Model, *, nucleotides: bool, selection: bool, genes: Genes, chance: Chance, run: Run
) -> Depth | None:
    """The draws of a model, on root; None on the other ranks, which take part in drawing.

    nucleotides  whether junctions are nucleotides, not amino acids
    genes        whether junctions have V and J calls; if not, all are of one pair, of any genes
    """
    drawn = chance.drawn(run)
    if drawn is not None and genes == "any":
        any_genes = model.alleles("V"), model.alleles("J")
        drawn, _ = merged([replace(drawn, pairs=[any_genes] * len(drawn.pairs))])
    p = chance.among_productive(drawn, PGEN_COLUMNS[:1] if nucleotides else PGEN_COLUMNS[1:2], run)
    if drawn is None or p is None:
        return None
    factor = model.selection if selection else None
    kind = kinds_of(drawn)
    pairs = [(v.allele, j.allele) for v, j in drawn.pairs]
    log_q = log_factors(factor, drawn)
    if factor is not None:
        log_q = factor.relative(log_q, [v for v, _ in pairs], [j for _, j in pairs], kind)
    of_pair = productive_of(model, drawn.pairs) / productive_probability(model)
    p_of_genes = p[:, 0] * np.exp(log_q) / of_pair[kind]
    possible = p_of_genes > 0
    return Depth(pairs, kind[possible], np.minimum(p_of_genes[possible], 1.0), np.exp(log_q)[possible])
