"""The exact probability that a recombination is productive, without a list of junctions.

A productive junction has complete codons and no stop.  Its first codon codes for Cys 104, its last one for the residue
at 118.  An automaton reads a junction base by base and knows after each base whether the junction can still become
productive.  The weights of all forms and insertions are summed over its states instead of over junctions.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.alphabet import AMINO_ACIDS
from hpcvdj.recombination.models import BASES, Alleles, Array, Insertion, Model, kept_with_model
from hpcvdj.recombination.selection import Genes, SelectionFactor, genes_of
from hpcvdj.recombination.symbols import PRODUCTIVE_ENDS

Rows = Literal["productive", "all"]
"""Which rows of a table to use."""

FIRST, LAST = "C", PRODUCTIVE_ENDS
"""Possible residues 104 and 118 of a productive junction, as in OLGA's anchors."""

_CODON = "([ACG][ACGT][ACGT]|T[CT][ACGT]|TA[CT]|TG[CGT])"

PRODUCTIVE = {
    "junction": rf"^\s*TG[CT]{_CODON}*(TT[CT]|GT[ACGT]|TGG)\s*$",
    "junction_aa": rf"^\s*[{FIRST}][^*_~?]*[{LAST}]\s*$",
}
"""Regular expressions for pyarrow that productive junctions match in either case, by AIRR field.

Programs write `*` for a stop, `_` or `~` for a shift of the frame, and `?` for an incomplete codon.
"""


def productive_probability(model: Model) -> float:
    """Return P(a recombination of the model is productive)."""
    return float(productive_choice(model).sum())


@kept_with_model
def productive_choice(model: Model) -> Array:
    """Return P(V, J, and the recombination is productive), float64 [V, J]; computed once for each model."""
    steps, accepted = _automaton()
    left, right = _sums_of_v(model, steps), _sums_of_j(model, steps, accepted)
    first, *further = model.insertions
    left = _inserted(left, [step.T for step in steps.values()], first)
    if not further:
        return np.asarray(model.p_vj * (left @ right.T))
    # The DJ insertion is read from J leftwards, so its steps are not transposed.
    right = _inserted(right, list(steps.values()), further[0])
    chances = model.p_choice
    of_d = (_sum_of_d(model, allele, steps) for allele in range(len(model.d)))
    return np.asarray(sum(chances[:, allele] * (left @ forms @ right.T) for allele, forms in enumerate(of_d)))


def productive_of(model: Model, pairs: Sequence[tuple[Alleles, Alleles]]) -> Array:
    """Return P(V and J are of a pair, and the recombination is productive), float64 [pairs]."""
    choice = productive_choice(model)
    return np.array([choice[np.ix_(v.places, j.places)].sum() for v, j in pairs])


@kept_with_model
def _by_gene(model: Model) -> dict[Genes, float]:
    """Return P(V, J, and the recombination is productive) for each V and J gene."""
    total: dict[Genes, float] = defaultdict(float)
    for (v, j), chance in np.ndenumerate(productive_choice(model)):
        total[genes_of(model.v[v].allele), genes_of(model.j[j].allele)] += float(chance)
    return dict(total)


def _usage(model: Model, genes: Genes) -> float:
    return _by_gene(model).get(genes, 0.0)


def with_factor(model: Model, factor: SelectionFactor) -> Model:
    """Return the model with a selection factor, whose mean over several genes is weighted as the model makes them."""
    return replace(model, selection=replace(factor, usage=partial(_usage, replace(model, selection=None))))


def given_productive(model: Model) -> Model:
    """Return the model with all probabilities divided by P(productive).

    The probability of a productive junction is then that among productive recombinations.
    """
    chance = productive_probability(model)
    if chance == 0:
        raise InputError(f"{model.name}: makes no productive junction; leave out {option('normalize', 'productive')}")
    p_vdj = None if model.p_vdj is None else model.p_vdj / chance
    return replace(model, p_v=model.p_v / chance, p_vj=model.p_vj / chance, p_vdj=p_vdj)


def _automaton() -> tuple[dict[str, Array], Array]:
    """Return the steps between states by base, float64 [states, states], and which states accept a productive junction.

    A state is a pair.  The first item stands for the complete codons: "" if there are none, "end" if the last one can
    end the junction, otherwise "on".  The second item is the bases of the incomplete codon.  If a base leads from a
    state to none, the row of the state has zeros only.
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
    """Yield the steps of reading 0, 1, 2, … bases of a text, float64 [states, states]."""
    read = np.eye(len(steps["A"]))
    yield read
    for base in text:
        read = read @ steps[base]
        yield read


def _sums_of_v(model: Model, steps: dict[str, Array]) -> Array:
    """Return float64 [V, states]: P(deletion) summed over the forms of a V that end in a state."""
    sums = np.zeros((len(model.v), len(steps["A"])))
    for allele in model.contributing("V"):
        text, deletions = model.v[allele].extended, model.v_deletions[allele]
        for kept, read in enumerate(_read(steps, text)):
            if kept and len(text) - kept < len(deletions):
                sums[allele] += deletions[len(text) - kept] * read[0]
    return sums


def _sums_of_j(model: Model, steps: dict[str, Array], accepted: Array) -> Array:
    """Return float64 [J, states]: P(deletion) summed over forms of a J that end productively from a state."""
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
    """Return float64 [states, states]: P(deletions) summed over forms of a D that lead from a state to another."""
    text, deletions = model.d[allele].extended, model.d_deletions[allele]
    total = np.zeros_like(steps["A"])
    for left, of_left in enumerate(deletions[: len(text) + 1]):
        for kept, read in enumerate(_read(steps, text[left:])):
            right = len(text) - left - kept
            if right < len(of_left):
                total += of_left[right] * read
    return total


def _inserted(begun: Array, steps: list[NDArray[np.float64]], insertion: Insertion) -> Array:
    """Return the sums [..., states] on the other side of an insertion, summed over all insertions.

    steps  of each base: transposed to read an insertion forwards after V, as they are to read it backwards from J
    """
    total = insertion.lengths[0] * begun
    last = np.zeros((4, *begun.shape))
    for length, chance in enumerate(insertion.lengths[1:]):
        before = np.tensordot(insertion.transitions, last, 1) if length else np.multiply.outer(insertion.first, begun)
        last = np.stack([of_base @ step.T for of_base, step in zip(before, steps, strict=True)])
        total = total + chance * last.sum(axis=0)
    return np.asarray(total)
