"""Calls that contradict the bases: a V or J gene that hardly makes a junction which other genes make easily.

Given its V gene, a junction s has the probability P(s | V, J) with the J that is called, and P(s | V) with any.  Of
junctions that V and J make, those with P(s | V, J) < ε P(s | V) have at most the probability ε, whatever the model: the
sum of P(s | V, J) over them is less than ε times that of P(s | V), which is at most 1.  The same holds for V, and for
both.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.depth import Floats
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import kinds_of

CONTRADICTED = 1e-5
"""ε: at most so many of the junctions that a model makes seem to contradict a right call."""

LIKELIEST = 10
"""With other genes, a junction is at most so many times as probable as the most probable draw with its own: calls that
are not that improbable against it are not compared with other genes."""

FALSE_ALARM = 1e-3
"""The share of tables with right calls in which some are said to be wrong, at most."""

SIDES = ("", "V", "J", "V and J")
"""Which calls of a junction contradict its bases, by number."""


def suspicious(p: Floats, of_drawn: Floats) -> NDArray[np.int64]:
    """Junctions, ascending, whose calls may contradict their bases: the others are too probable for that.

    p         float64 [junctions]: their probabilities
    of_drawn  float64 [draws]: those of what the model makes
    """
    return np.flatnonzero(p < CONTRADICTED * LIKELIEST * of_drawn.max(initial=0.0))


def more_than_chance(number: int, compared: int) -> bool:
    """Whether so many calls that seem to contradict their bases, of those compared, are more than right calls make."""
    from scipy.stats import poisson

    return bool(poisson.sf(number - 1, (len(SIDES) - 1) * CONTRADICTED * compared) < FALSE_ALARM)


def with_other_genes(own: Repertoire, model: Model) -> list[Repertoire]:
    """Junctions with any V gene, with any J gene, and with any V and J gene: in the order of `SIDES`."""
    any_v, any_j = model.alleles("V"), model.alleles("J")
    others = [(any_v, j) for _, j in own.pairs], [(v, any_j) for v, _ in own.pairs], [(any_v, any_j) for _ in own.pairs]
    return [Repertoire(own.words, own.lengths, pairs, own.offsets, own.letters) for pairs in others]


def contradicted(
    own: Repertoire, p: Floats, with_others: Sequence[Floats], model: Model, smallest: float
) -> NDArray[np.int8]:
    """Which call of each junction contradicts its bases, int8 [junctions], as the place in `SIDES`.

    own          junctions by genes
    p            float64 [junctions]: their probabilities
    with_others  those with other genes, as of `with_other_genes`
    smallest     a smaller probability with other genes explains a junction no better: the model lacks something then
    """
    choice = model.p_choice.sum(axis=1) if model.has_d else model.p_vj
    kind, prior = kinds_of(own), _prior(choice, own.pairs)
    found = np.zeros(len(own), dtype=np.int8)
    for side, (other, with_any) in enumerate(zip(with_other_genes(own, model), with_others, strict=True), start=1):
        # p / prior < ε with_any / prior of any, without a division by 0 for genes that are never chosen.
        less = p * _prior(choice, other.pairs)[kind] < CONTRADICTED * with_any * prior[kind]
        found[(found == 0) & less & (with_any >= smallest)] = side
    return found


def _prior(choice: Floats, pairs: list[tuple[Alleles, Alleles]]) -> Floats:
    """P(V, J) of each pair of sets of alleles, float64 [pairs]."""
    return np.array([choice[np.ix_(v.places, j.places)].sum() for v, j in pairs])
