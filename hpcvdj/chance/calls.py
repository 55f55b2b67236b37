"""Calls that contradict the bases: a V or J gene that hardly makes a junction which other genes make easily.

Given its V gene, a junction s has the probability P(s | V, J) with the J that is called, and P(s | V) with any.  Of
junctions that V and J make, those with P(s | V, J) < ε P(s | V) have at most the probability ε, whatever the model: the
sum of P(s | V, J) over them is less than ε times that of P(s | V), which is at most 1.  The same holds for V, and for
both; and for the alleles of the genes that are called: an individual may have an allele that the model hardly ever
chooses, and all junctions that this allele alone makes are then too improbable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.depth import Floats
from hpcvdj.kernels.pgen.tables import kept
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of

CONTRADICTED = 1e-5
"""ε: at most so many of the junctions that a model makes seem to contradict a right call."""

RARE = 1e-2
"""ε of alleles: one is rare if the model chooses it for at most this share of its gene."""

LIKELIEST = 10
"""With other genes, a junction is at most so many times as probable as the most probable draw with the genes that are
called: calls that are not that improbable against it are not compared with other genes."""

FALSE_ALARM = 1e-3
"""The share of tables with right calls in which calls are said to be wrong, at most."""

SIDES = ("", "V", "J", "V and J", "rare V allele", "rare J allele")
"""Which calls of a junction contradict its bases, by number, or that only a rare allele of its genes makes it."""

SEGMENTS: tuple[SegmentType, SegmentType] = ("V", "J")

RARE_ALLELE = SIDES.index("rare V allele")
"""The first of the sides that are alleles, those of `SEGMENTS`."""


@dataclass(frozen=True)
class Others:
    """Junctions with other genes, or with one allele of theirs.

    side  its number in `SIDES`
    """

    side: int
    repertoire: Repertoire


def suspicious(junctions: Repertoire, p: Floats, of_likeliest: float, model: Model) -> NDArray[np.int64]:
    """Junctions, ascending, whose calls may contradict their bases: the others are too probable for that.

    p             float64 [junctions]: their probabilities
    of_likeliest  the largest of those of what the model makes
    """
    rare = np.array([bool(_rare(model, "V", v.places) or _rare(model, "J", j.places)) for v, j in junctions.pairs])
    largest = LIKELIEST * of_likeliest
    of_rare = rare[kinds_of(junctions)] if len(rare) else np.zeros(len(junctions), dtype=bool)
    return np.flatnonzero((p < CONTRADICTED * largest) | (of_rare & (p < RARE * largest)))


def with_other_genes(junctions: Repertoire, model: Model) -> list[Others]:
    """Junctions with any V gene, any J gene, any V and J gene, and with each rare allele of their genes."""
    any_v, any_j = model.alleles("V"), model.alleles("J")
    pairs = [
        [(any_v, j) for _, j in junctions.pairs],
        [(v, any_j) for v, _ in junctions.pairs],
        [(any_v, any_j) for _ in junctions.pairs],
    ]
    sides = [1, 2, 3]
    none = Alleles("none", ())
    for side, segment in enumerate(SEGMENTS):
        rare = [_rare(model, segment, pair[side].places) for pair in junctions.pairs]
        for k in range(max(map(len, rare), default=0)):
            alleles = [model.alleles(segment, places[k : k + 1]) if places[k:] else none for places in rare]
            changed = zip(alleles, junctions.pairs, strict=True)
            pairs.append([(allele, j) if side == 0 else (v, allele) for allele, (v, j) in changed])
            sides.append(RARE_ALLELE + side)
    return [
        Others(side, Repertoire(junctions.words, junctions.lengths, other, junctions.offsets, junctions.letters))
        for side, other in zip(sides, pairs, strict=True)
    ]


def contradicted(
    junctions: Repertoire, p: Floats, others: Sequence[tuple[Others, Floats]], model: Model, smallest: float
) -> NDArray[np.int8]:
    """Which call of each junction contradicts its bases, int8 [junctions], by its number in `SIDES`.

    junctions  by genes
    p          float64 [junctions]: their probabilities
    others     as of `with_other_genes`, with the probabilities, float64 [junctions]
    smallest   a smaller probability with other genes explains a junction no better: the model lacks something then
    """
    kind, prior = kinds_of(junctions), _priors(model, junctions.pairs)
    sides = np.zeros(len(junctions), dtype=np.int8)
    for other, with_any in others:
        of_other = _priors(model, other.repertoire.pairs)[kind]
        threshold, least = CONTRADICTED, np.full(len(junctions), smallest)
        if other.side >= RARE_ALLELE:
            # As probable as it would be if the individual had this allele alone.
            threshold, least = RARE, smallest * of_other / np.where(prior > 0, prior, 1.0)[kind]
        # p / prior < ε with_any / prior of any, without a division by 0 for genes that are never chosen.
        less = p * of_other < threshold * with_any * prior[kind]
        sides[(sides == 0) & less & (with_any >= least) & (with_any > 0)] = other.side
    return sides


def more_than_chance(number: int, compared: int) -> bool:
    """Whether so many calls that seem to contradict their bases, of those compared, are more than right calls make."""
    if not number:
        return False
    from scipy.special import gammainc

    # The chance of so many or more under Poisson's distribution.
    return bool(gammainc(number, 3 * CONTRADICTED * compared) < FALSE_ALARM)


def rare_alleles(model: Model, segment: SegmentType, gene: str) -> list[str]:
    """The rare alleles of a gene that make other junctions than its common ones."""
    alleles = _rare(model, segment, model.find(segment, gene) or ())
    return [model.templates(segment)[allele].allele for allele in alleles]


@kept
def _rare(model: Model, segment: SegmentType, places: tuple[int, ...]) -> tuple[int, ...]:
    """Those of some alleles that are rare, and differ in the junction from those that are not."""
    chance, templates = model.p_segment(segment), model.templates(segment)
    alleles = list(places)
    total = chance[alleles].sum()
    common = {templates[allele].segment for allele in alleles if chance[allele] >= RARE * total}
    rare = [allele for allele in alleles if 0 < chance[allele] < RARE * total]
    return tuple(allele for allele in rare if templates[allele].segment not in common)


def _priors(model: Model, pairs: list[tuple[Alleles, Alleles]]) -> Floats:
    """P(V, J) of each pair of sets of alleles, float64 [pairs]."""
    return np.array([_prior(model, v.places, j.places) for v, j in pairs])


@kept
def _prior(model: Model, v: tuple[int, ...], j: tuple[int, ...]) -> float:
    return float(_choice(model)[np.ix_(v, j)].sum())


@kept
def _choice(model: Model) -> Floats:
    """P(V, J) of the alleles, float64 [V, J]."""
    return model.p_choice.sum(axis=1) if model.has_d else model.p_vj
