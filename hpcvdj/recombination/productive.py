"""The probability that a recombination is productive: exact, without a list of junctions.

A productive junction has whole codons, none of them a stop; the first codes for Cys 104, the last for the residue at
118.  An automaton reads a junction base by base and knows after each whether it can still become one.  The weight of
all forms and insertions is summed over its states instead of over junctions.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.models import Array, Insertion, Model
from hpcvdj.recombination.scenarios import BASES

Rows = Literal["productive", "all"]
"""Which rows of a table are used."""

FIRST, LAST = "C", "FVW"
"""Residues 104 and 118 of a productive junction, as in OLGA's anchors."""

_CODON = "([ACG][ACGT][ACGT]|T[CT][ACGT]|TA[CT]|TG[CGT])"

PRODUCTIVE = {
    "junction": rf"^\s*TG[CT]{_CODON}*(TT[CT]|GT[ACGT]|TGG)\s*$",
    "junction_aa": rf"^\s*[{FIRST}][^*_~?]*[{LAST}]\s*$",
}
"""What productive junctions match, by AIRR field, in either case; for pyarrow.

Programs write `*` for a stop, `_` or `~` where the frame shifts, `?` for a codon that is not whole.
"""


def productive_probability(model: Model) -> float:
    """P(a recombination is productive) under a model."""
    return float(productive_choice(model).sum())


def productive_choice(model: Model) -> Array:
    """P(V, J, and the recombination is productive), float64 [V, J]; computed once for each model."""
    # As functools.cached_property does it; a model with other probabilities is another object.
    computed: dict[str, Array] = vars(model)
    if "_productive_choice" not in computed:
        computed["_productive_choice"] = _productive_choice(model)
    return computed["_productive_choice"]


def _productive_choice(model: Model) -> Array:
    steps, accepted = _automaton()
    of_v = _sums_of_v(model, steps)
    of_j = _sums_of_j(model, steps, accepted)
    first, *further = model.insertions
    if not further:
        inserted = _after_insertion(of_v, steps, first)
        return np.asarray(model.p_vj * (inserted @ of_j.T))
    left, right = _after_insertion(of_v, steps, first), _before_insertion(of_j, steps, further[0])
    chances = model.p_choice
    of_d = (_sum_of_d(model, allele, steps) for allele in range(len(model.d)))
    return np.asarray(sum(chances[:, allele] * (left @ forms @ right.T) for allele, forms in enumerate(of_d)))


def given_productive(model: Model) -> Model:
    """The model with all its probabilities divided by P(productive).

    A productive junction then has its probability among productive recombinations.
    """
    chance = productive_probability(model)
    if chance == 0:
        raise InputError(f"{model.name}: makes no productive junction; leave out {option('normalize', 'productive')}")
    p_vdj = None if model.p_vdj is None else model.p_vdj / chance
    return replace(model, p_v=model.p_v / chance, p_vj=model.p_vj / chance, p_vdj=p_vdj)


def _automaton() -> tuple[dict[str, Array], Array]:
    """The steps of the states by base, float64 [states, states], and which states are at a productive junction's end.

    A state is whether the codons before are none, the first one, or more, and among them the last residue's; and the
    bases of the codon under way.  A step into nothing is a row of zeros.
    """
    partial = ["".join(bases) for size in range(3) for bases in product(BASES, repeat=size)]
    states = [("", bases) for bases in partial] + [("end", ""), ("on", ""), *(("on", bases) for bases in partial[1:])]
    number = {state: index for index, state in enumerate(states)}
    steps = {base: np.zeros((len(states), len(states))) for base in BASES}
    for (before, bases), base in product(states, BASES):
        codon = bases + base
        following = ("" if not before else "on", codon)
        if len(codon) == 3:
            residue = AMINO_ACIDS[codon]
            if residue == "*" or (not before and residue not in FIRST):
                continue
            following = ("end" if before and residue in LAST else "on", "")
        steps[base][number[before, bases], number[following]] = 1.0
    accepted = np.zeros(len(states))
    accepted[number["end", ""]] = 1.0
    return steps, accepted


def _read(steps: dict[str, Array], text: str) -> Iterable[Array]:
    """What reading 0, 1, 2, … bases of a text does to the states."""
    read = np.eye(len(steps["A"]))
    yield read
    for base in text:
        read = read @ steps[base]
        yield read


def _sums_of_v(model: Model, steps: dict[str, Array]) -> Array:
    """float64 [V, states]: P(deletion) summed over the forms of a V that end in a state."""
    sums = np.zeros((len(model.v), len(steps["A"])))
    for allele in model.contributing("V"):
        text, deletions = model.v[allele].extended, model.v_deletions[allele]
        for kept, read in enumerate(_read(steps, text)):
            if kept and len(text) - kept < len(deletions):
                sums[allele] += deletions[len(text) - kept] * read[0]
    return sums


def _sums_of_j(model: Model, steps: dict[str, Array], accepted: Array) -> Array:
    """float64 [J, states]: P(deletion) summed over the forms of a J that end productively if they begin in a state."""
    sums = np.zeros((len(model.j), len(accepted)))
    for allele in model.contributing("J"):
        text, deletions = model.j[allele].extended, model.j_deletions[allele]
        value = accepted
        for deleted in range(len(text) - 1, -1, -1):
            value = steps[text[deleted]] @ value
            if deleted < len(deletions):
                sums[allele] += deletions[deleted] * value
    return sums


def _sum_of_d(model: Model, allele: int, steps: dict[str, Array]) -> Array:
    """float64 [states, states]: P(deletions) summed over the forms of a D that lead from one state to another."""
    text, deletions = model.d[allele].extended, model.d_deletions[allele]
    total = np.zeros_like(steps["A"])
    for left, of_left in enumerate(deletions[: len(text) + 1]):
        for kept, read in enumerate(_read(steps, text[left:])):
            right = len(text) - left - kept
            if right < len(of_left):
                total += of_left[right] * read
    return total


def _after_insertion(begun: Array, steps: dict[str, Array], insertion: Insertion) -> Array:
    """The states, [..., states], after an insertion that is read forwards."""
    return _inserted(begun, [step.T for step in steps.values()], insertion)


def _before_insertion(following: Array, steps: dict[str, Array], insertion: Insertion) -> Array:
    """The value of states, [..., states], before an insertion that is read from its end."""
    return _inserted(following, list(steps.values()), insertion)


def _inserted(begun: Array, steps: list[NDArray[np.float64]], insertion: Insertion) -> Array:
    total = insertion.lengths[0] * begun
    last = np.zeros((4, *begun.shape))
    for length, chance in enumerate(insertion.lengths[1:]):
        before = np.tensordot(insertion.transitions, last, 1) if length else np.multiply.outer(insertion.first, begun)
        last = np.stack([of_base @ step.T for of_base, step in zip(before, steps, strict=True)])
        total = total + chance * last.sum(axis=0)
    return np.asarray(total)
