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
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of

CONTRADICTED = 1e-5
"""ε: at most so many of the junctions that a model makes seem to contradict a right call."""

RARE = 1e-2
"""ε of alleles: one is rare if the model chooses it for at most this share of its gene."""

LIKELIEST = 10
"""With other genes, a junction is at most so many times as probable as the most probable draw with its own: calls that
are not that improbable against it are not compared with other genes."""

FALSE_ALARM = 1e-3
"""The share of tables with right calls in which some are said to be wrong, at most."""

SIDES = ("", "V", "J", "V and J", "rare V allele", "rare J allele")
"""Which calls of a junction contradict its bases, by number, or that only a rare allele of its genes makes it."""

SEGMENTS: tuple[SegmentType, SegmentType] = ("V", "J")

RARE_ALLELE = SIDES.index("rare V allele")
"""The first of the sides that are alleles, those of `SEGMENTS`."""


@dataclass(frozen=True)
class Others:
    """Junctions with other genes, or with one allele of theirs.

    side  as the place in `SIDES`
    """

    side: int
    repertoire: Repertoire


def suspicious(own: Repertoire, p: Floats, of_drawn: Floats, model: Model) -> NDArray[np.int64]:
    """Junctions, ascending, whose calls may contradict their bases: the others are too probable for that.

    p         float64 [junctions]: their probabilities
    of_drawn  float64 [draws]: those of what the model makes
    """
    rare = np.array([any(_rare(model, *side) for side in _sides(pair)) for pair in own.pairs], dtype=bool)
    largest = LIKELIEST * of_drawn.max(initial=0.0)
    of_rare = rare[kinds_of(own)] if len(rare) else np.zeros(len(own), dtype=bool)
    return np.flatnonzero((p < CONTRADICTED * largest) | (of_rare & (p < RARE * largest)))


def with_other_genes(own: Repertoire, model: Model) -> list[Others]:
    """Junctions with any V gene, any J gene, any V and J gene, and with each rare allele of their genes."""
    any_v, any_j = model.alleles("V"), model.alleles("J")
    pairs = [
        [(any_v, j) for _, j in own.pairs],
        [(v, any_j) for v, _ in own.pairs],
        [(any_v, any_j) for _ in own.pairs],
    ]
    sides = [1, 2, 3]
    none = Alleles("none", ())
    for place, segment in enumerate(SEGMENTS):
        rare = [_rare(model, segment, pair[place]) for pair in own.pairs]
        for k in range(max(map(len, rare), default=0)):
            alleles = [model.alleles(segment, found[k : k + 1]) if found[k:] else none for found in rare]
            pairs.append([(one, j) if place == 0 else (v, one) for one, (v, j) in zip(alleles, own.pairs, strict=True)])
            sides.append(RARE_ALLELE + place)
    return [
        Others(side, Repertoire(own.words, own.lengths, other, own.offsets, own.letters))
        for side, other in zip(sides, pairs, strict=True)
    ]


def contradicted(
    own: Repertoire, p: Floats, others: Sequence[tuple[Others, Floats]], model: Model, smallest: float
) -> NDArray[np.int8]:
    """Which call of each junction contradicts its bases, int8 [junctions], as the place in `SIDES`.

    own       junctions by genes
    p         float64 [junctions]: their probabilities
    others    as of `with_other_genes`, with the probabilities, float64 [junctions]
    smallest  a smaller probability with other genes explains a junction no better: the model lacks something then
    """
    choice = model.p_choice.sum(axis=1) if model.has_d else model.p_vj
    kind, prior = kinds_of(own), _prior(choice, own.pairs)
    found = np.zeros(len(own), dtype=np.int8)
    for other, with_any in others:
        of_other = _prior(choice, other.repertoire.pairs)[kind]
        threshold, least = CONTRADICTED, np.full(len(own), smallest)
        if other.side >= RARE_ALLELE:
            # As probable as it would be if the individual had this allele alone.
            threshold, least = RARE, smallest * of_other / np.where(prior > 0, prior, 1.0)[kind]
        # p / prior < ε with_any / prior of any, without a division by 0 for genes that are never chosen.
        less = p * of_other < threshold * with_any * prior[kind]
        found[(found == 0) & less & (with_any >= least) & (with_any > 0)] = other.side
    return found


def more_than_chance(number: int, compared: int) -> bool:
    """Whether so many calls that seem to contradict their bases, of those compared, are more than right calls make."""
    if not number:
        return False
    from scipy.special import gammainc

    # The chance of so many or more under Poisson's distribution.
    return bool(gammainc(number, 3 * CONTRADICTED * compared) < FALSE_ALARM)


def rare_alleles(model: Model, segment: SegmentType, gene: str) -> list[str]:
    """The rare alleles of a gene that make other junctions than its common ones."""
    places = model.find(segment, gene) or ()
    return [model.templates(segment)[place].allele for place in _rare(model, segment, Alleles(gene, places))]


def _sides(pair: tuple[Alleles, Alleles]) -> tuple[tuple[SegmentType, Alleles], tuple[SegmentType, Alleles]]:
    return ("V", pair[0]), ("J", pair[1])


def _rare(model: Model, segment: SegmentType, own: Alleles) -> list[int]:
    """The places of alleles of a call that are rare, and differ in the junction from those that are not."""
    chance, templates = model.p_segment(segment), model.templates(segment)
    places = list(own.places)
    total = chance[places].sum()
    common = {templates[place].segment for place in places if chance[place] >= RARE * total}
    return [place for place in places if 0 < chance[place] < RARE * total and templates[place].segment not in common]


def _prior(choice: Floats, pairs: list[tuple[Alleles, Alleles]]) -> Floats:
    """P(V, J) of each pair of sets of alleles, float64 [pairs]."""
    return np.array([choice[np.ix_(v.places, j.places)].sum() for v, j in pairs])
