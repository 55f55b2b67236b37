"""Calls that contradict the bases: a V or J gene that hardly makes a junction which other genes make easily.

Given its V gene, a junction s has the probability P(s | V, J) with the J that is called, and P(s | V) with any J.  Of
the junctions that V and J make, those with P(s | V, J) < ε P(s | V) have at most the total probability ε in any model:
the sum of P(s | V, J) over them is less than ε times that of P(s | V), which is at most 1.  The same holds for V, for
both genes, and for the alleles of a gene: an individual may have an allele that the model hardly ever chooses, and all
junctions that only this allele makes are then too improbable.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Floats, poisson_tail
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Alleles, Model, kept_with_model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of

CONTRADICTED = 1e-5
"""ε: the largest share of the junctions that a model makes that seem to contradict a right call."""

RARE = 1e-2
"""ε of alleles: one is rare if the model chooses it for at most this share of its gene."""

LIKELIEST = 10
"""A bound on how many times as probable as the most probable draw a junction is with other genes.  Calls that are not
improbable against this bound are not compared with other genes."""

FALSE_ALARM = 1e-3
"""The largest share of tables with right calls in which calls are reported as wrong."""

SIDES = ("", "V", "J", "V and J", "rare V allele", "rare J allele")
"""The calls of a junction that contradict its bases, by number, or the rare allele that alone makes it."""

SEGMENTS: tuple[SegmentType, SegmentType] = ("V", "J")

RARE_ALLELE = SIDES.index("rare V allele")
"""The first of the sides that are alleles, those of `SEGMENTS`."""


Others = list[tuple[int, Repertoire]]
"""Junctions with other genes, or with one allele of their genes; and what differs, as the index in `SIDES`."""


def suspicious(
    junctions: Repertoire, p: Floats, of_likeliest: float, model: Model, epsilon: float = CONTRADICTED
) -> NDArray[np.int64]:
    """Select the junctions whose calls may contradict their bases; the others are too probable for that.

    p             float64 [junctions]: probabilities
    of_likeliest  the largest probability of the junctions that the model makes
    epsilon       as for `contradicted`
    """
    rare = np.array([bool(_rare(model, "V", v.places) or _rare(model, "J", j.places)) for v, j in junctions.pairs])
    largest = LIKELIEST * of_likeliest
    of_rare = rare[kinds_of(junctions)] if len(rare) else np.zeros(len(junctions), dtype=bool)
    return np.flatnonzero((p < epsilon * largest) | (of_rare & (p < RARE * largest)))


def with_other_genes(junctions: Repertoire, model: Model) -> Others:
    """Give junctions any V gene, any J gene, any V and J gene, and each rare allele of their genes."""
    any_v, any_j, none = model.alleles("V"), model.alleles("J"), Alleles("none", ())
    pairs_of_sides = [
        (1, [(any_v, j) for _, j in junctions.pairs]),
        (2, [(v, any_j) for v, _ in junctions.pairs]),
        (3, [(any_v, any_j) for _ in junctions.pairs]),
    ]
    for side, segment in enumerate(SEGMENTS):
        rare = [_rare(model, segment, pair[side].places) for pair in junctions.pairs]
        for k in range(max(map(len, rare), default=0)):
            alleles = [model.alleles(segment, places[k : k + 1]) if places[k:] else none for places in rare]
            changed = zip(alleles, junctions.pairs, strict=True)
            pairs = [(allele, j) if side == 0 else (v, allele) for allele, (v, j) in changed]
            pairs_of_sides.append((RARE_ALLELE + side, pairs))
    return [(side, replace(junctions, pairs=pairs)) for side, pairs in pairs_of_sides]


def contradicted(
    junctions: Repertoire, p: Floats, others: Others, p_others: Sequence[Floats], model: Model,
    smallest: float | Floats, epsilon: float = CONTRADICTED,
) -> NDArray[np.int8]:  # fmt: skip
    """Find the call of each junction that contradicts its bases, int8 [junctions], as the index in `SIDES`.

    junctions  by genes
    p          float64 [junctions]: probabilities
    others     the result of `with_other_genes`, and their probabilities, float64 [junctions] each
    smallest   other genes do not explain a junction if its probability with them is smaller than this, or than its own
               value, float64 [junctions]
    epsilon    ε, the largest share of right calls that are found as well; that of alleles is `RARE`
    """
    kind, prior = kinds_of(junctions), _priors(model, junctions.pairs)
    sides = np.zeros(len(junctions), dtype=np.int8)
    for (side, other), with_any in zip(others, p_others, strict=True):
        of_other = _priors(model, other.pairs)[kind]
        threshold, least = epsilon, smallest
        if side >= RARE_ALLELE:
            # `smallest` scales as if the individual had only this allele.
            threshold, least = RARE, smallest * of_other / np.where(prior > 0, prior, 1.0)[kind]
        # p / prior < ε with_any / prior of any, without a division by 0 for genes that are never chosen.
        less = p * of_other < threshold * with_any * prior[kind]
        sides[(sides == 0) & less & (with_any >= least) & (with_any > 0)] = side
    return sides


def sides_of(
    junctions: Repertoire, p: Floats, limits: tuple[float, float | Floats], model: Model,
    probabilities: Callable[[list[Repertoire]], list[Floats]], epsilon: float = CONTRADICTED,
) -> NDArray[np.int8]:  # fmt: skip
    """Find the call of each junction that contradicts its bases, int8 [junctions], as the index in `SIDES`.

    junctions      by genes
    p              float64 [junctions]: their probabilities
    limits         the largest probability of what the model makes, and the smallest that explains a junction: of all,
                   or of each, float64 [junctions]
    probabilities  computes those of other repertoires; if ranks share this work, all of them call it once
    epsilon        as for `contradicted`
    """
    largest, smallest = limits
    rows = suspicious(junctions, p, largest, model, epsilon)
    part = junctions.subset(rows)
    others = with_other_genes(part, model)
    values = probabilities([other for _, other in others])
    smallest = np.broadcast_to(smallest, len(junctions))[rows]
    sides = np.zeros(len(junctions), dtype=np.int8)
    sides[rows] = contradicted(part, p[rows], others, values, model, smallest, epsilon)
    return sides


def more_than_chance(number: int, compared: int) -> bool:
    """Return whether more calls seem to contradict the bases than if all calls that were compared were right."""
    return bool(poisson_tail(number, 3 * CONTRADICTED * compared) < FALSE_ALARM)


def rare_alleles(model: Model, segment: SegmentType, gene: str) -> list[str]:
    """Name the rare alleles of a gene that make other junctions than its common alleles do."""
    alleles = _rare(model, segment, model.find(segment, gene) or ())
    return [model.templates(segment)[allele].allele for allele in alleles]


@kept_with_model
def _rare(model: Model, segment: SegmentType, places: tuple[int, ...]) -> tuple[int, ...]:
    """Select the alleles that are rare and differ in the junction from those that are not."""
    chance, templates = model.p_segment(segment), model.templates(segment)
    alleles = list(places)
    total = chance[alleles].sum()
    common = {templates[allele].segment for allele in alleles if chance[allele] >= RARE * total}
    rare = [allele for allele in alleles if 0 < chance[allele] < RARE * total]
    return tuple(allele for allele in rare if templates[allele].segment not in common)


def _priors(model: Model, pairs: list[tuple[Alleles, Alleles]]) -> Floats:
    """Return P(V, J) of each pair of sets of alleles, float64 [pairs]."""
    return np.array([_prior(model, v.places, j.places) for v, j in pairs])


@kept_with_model
def _prior(model: Model, v: tuple[int, ...], j: tuple[int, ...]) -> float:
    return float(_choice(model)[np.ix_(v, j)].sum())


@kept_with_model
def _choice(model: Model) -> Floats:
    """Return P(V, J) of the alleles, float64 [V, J]."""
    return model.p_choice.sum(axis=1) if model.has_d else model.p_vj
