"""How many recombinations made the distinct junctions of each class: more than these where diversity is small.

Of n recombinations with the genes of a class, whose junctions σ have the probability p(σ) among them, there are
D(n) = Σ (1 - (1 - p)^n) distinct junctions, which is the mean of (1 - (1 - p)^n) / p over junctions that are drawn.
n is where D(n) is the number that a sample has.  A class has few draws, so those of all classes are taken for its own
to some extent: conditional on their genes they repeat nearly alike.
"""

from dataclasses import dataclass

import numpy as np

from hpcvdj.annotation.statistics import chance_of, times_made
from hpcvdj.chance.draws import Chance, log_factors
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.productive import productive_choice
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.selection import Selection
from hpcvdj.repertoires.genes import amino_acids, kinds_of
from hpcvdj.runs.run import Run

DRAWN = 40_000
"""Junctions that are drawn to find out how often they repeat."""

PRIOR = 50
"""A class counts as if it had so many draws more, which repeat as those of all classes."""

MOST_REPEATED = 1e3
"""How many times as many recombinations as distinct junctions are believed."""

_TABULATED = 2048
"""Numbers of recombinations for which the repeats of all classes are computed, equally far apart in their logarithm."""

_BINS = 2000
"""Bins of log p in which the draws of all classes are counted."""

_HALVINGS = 50

Genes = tuple[str, str]


@dataclass(frozen=True)
class Depth:
    """Draws of a model.

    pairs   V and J genes of the draws
    kind    int64 [draws]: the pair
    p       float64 [draws]: probability among the junctions of the pair, after selection
    weight  float64 [draws]: by how much selection makes a draw more common among those of its pair
    """

    pairs: list[Genes]
    kind: Counts
    p: Floats
    weight: Floats

    def recombinations(self, distinct: Counts, genes: list[Genes]) -> Floats:
        """Recombinations that made so many distinct junctions of each pair of genes, float64 [genes].

        distinct  int64 [genes]
        """
        names = {pair: number for number, pair in enumerate(self.pairs)}
        pair = np.array([names.get(own, -1) for own in genes], dtype=np.int64)
        # For each draw, where its pair is among the genes; those of other pairs are left out.
        asked = np.full(len(self.pairs) + 1, -1, dtype=np.int64)
        asked[pair] = np.arange(len(genes))
        asked[-1] = -1
        draws = np.flatnonzero(asked[self.kind] >= 0)
        at, p, weight = asked[self.kind[draws]], self.p[draws], self.weight[draws]
        size = np.bincount(at, weight, len(genes)) + PRIOR
        wanted = np.maximum(distinct, 1).astype(np.float64)
        grid, of_all = self._of_all(float(wanted.max(initial=1.0)) * MOST_REPEATED)
        low, high = np.log(wanted), np.log(wanted * MOST_REPEATED)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            n = np.exp(middle)
            made = np.bincount(at, weight * chance_of(times_made(n[at], p), 1.0) / p, len(genes))
            made = made + PRIOR * np.exp(np.interp(middle, grid, of_all))
            more = made < wanted * size
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return np.where(distinct > 0, np.exp(high), 0.0)

    def _of_all(self, most: float) -> tuple[Floats, Floats]:
        """ln D(n) with the draws of all classes, and ln n, float64 [tabulated]."""
        log_p = np.log(self.p)
        edges = np.linspace(log_p.min(), log_p.max() + 1e-9, _BINS + 1)
        of_bin = np.searchsorted(edges, log_p, side="right") - 1
        weight = np.bincount(of_bin, self.weight, _BINS)
        mean = np.bincount(of_bin, self.weight * self.p, _BINS)[weight > 0] / weight[weight > 0]
        share = weight[weight > 0] / weight.sum()
        grid = np.linspace(0.0, np.log(most), _TABULATED)
        return grid, np.log([(share * chance_of(times_made(n, mean), 1.0) / mean).sum() for n in np.exp(grid)])


def depth_of(model: Model, *, nucleotides: bool, selection: bool, chance: Chance, run: Run) -> Depth | None:
    """On root; all ranks draw.

    nucleotides  whether junctions are known in nucleotides, or as amino acids only
    """
    drawn = chance.drawn(run)
    p = chance.among_productive(drawn, PGEN_COLUMNS[:1] if nucleotides else PGEN_COLUMNS[1:2], run)
    if drawn is None or p is None:
        return None
    factor = model.selection if selection else None
    kind = kinds_of(drawn)
    log_q = log_factors(factor, drawn, *amino_acids(drawn, np.arange(len(drawn))))
    log_q = log_q - _log_mean(factor, drawn.pairs, log_q, kind)
    choice = productive_choice(model)
    of_pair = np.array([choice[np.ix_(v.places, j.places)].sum() for v, j in drawn.pairs]) / choice.sum()
    given = p[:, 0] * np.exp(log_q) / of_pair[kind]
    made = given > 0
    pairs = [(v.allele, j.allele) for v, j in drawn.pairs]
    return Depth(pairs, kind[made], np.minimum(given[made], 1.0), np.exp(log_q)[made])


def _log_mean(factor: Selection | None, pairs: list[tuple[Alleles, Alleles]], log_q: Floats, kind: Counts) -> Floats:
    """ln of the mean of Q over what the model makes with the genes of each draw; if unknown, ln Q of the draw."""
    if factor is None:
        return np.zeros(len(kind))
    mean = factor.log_mean([v.allele for v, _ in pairs], [j.allele for _, j in pairs])[kind]
    return np.where(np.isnan(mean), log_q, mean)
