"""The definition of generation probability: the sum over all scenarios that spell a junction, one by one.

Nothing here is fast; the kernels are tested against it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpcvdj.recombination.models import Array, Insertion, Model, Template

BASES = "ACGT"
"""The order of bases in the arrays of a model."""


@dataclass(frozen=True)
class Scenario:
    """One way to make a junction.

    v, d, j          places of the alleles in the model; `d` is None for a locus without D genes
    v_deleted, …     bases missing from the extended segments
    inserted         the inserted bases as they stand in the junction: of VD and DJ, or of VJ
    probability      of the scenario
    """

    v: int
    d: int | None
    j: int
    v_deleted: int
    d_deleted: tuple[int, int] | None
    j_deleted: int
    inserted: tuple[str, ...]
    probability: float


def insertion_probability(bases: str, insertion: Insertion) -> float:
    """P(an insertion of these bases), in the order in which the chain adds them."""
    if len(bases) >= len(insertion.lengths):
        return 0.0
    probability = float(insertion.lengths[len(bases)])
    for place, base in enumerate(bases):
        to = BASES.index(base)
        probability *= float(
            insertion.first[to] if place == 0 else insertion.transitions[to, BASES.index(bases[place - 1])]
        )
    return probability


def scenarios(model: Model, junction: str, v: Iterable[int], j: Iterable[int]) -> Iterator[Scenario]:
    """Every scenario with P > 0 that spells `junction`, with the V and J alleles at these places of the model.

    junction  in upper-case A, C, G, T, the codons of Cys 104 and Phe/Trp 118 included
    """
    j = list(j)
    for v_place in v:
        for kept_v, p_v in kept_lengths(model.v[v_place], model.v_deletions[v_place], junction, at_start=True):
            for j_place in j:
                for kept_j, p_j in kept_lengths(model.j[j_place], model.j_deletions[j_place], junction, at_start=False):
                    if kept_v + kept_j > len(junction):
                        continue
                    middle = junction[kept_v : len(junction) - kept_j]
                    deleted = len(model.v[v_place].extended) - kept_v, len(model.j[j_place].extended) - kept_j
                    for d, d_deleted, inserted, p_middle in _middles(model, middle, v_place, j_place):
                        probability = p_v * p_j * p_middle
                        if probability > 0:
                            yield Scenario(
                                v_place, d, j_place, deleted[0], d_deleted, deleted[1], inserted, probability
                            )


def pgen(model: Model, junction: str, v: Iterable[int] | None = None, j: Iterable[int] | None = None) -> float:
    """The generation probability of a junction: the sum over its scenarios, all alleles by default."""
    v = model.contributing("V") if v is None else v
    j = model.contributing("J") if j is None else j
    return sum(scenario.probability for scenario in scenarios(model, junction, v, j))


def kept_lengths(template: Template, deletions: Array, junction: str, *, at_start: bool) -> Iterator[tuple[int, float]]:
    """(bases kept, P(deletion)) of the forms of a V or J segment that fit the junction; at least one base is kept."""
    extended = template.extended
    for kept in range(1, min(len(extended), len(junction)) + 1):
        deleted = len(extended) - kept
        fits = junction.startswith(extended[:kept]) if at_start else junction.endswith(extended[deleted:])
        if fits and deleted < len(deletions):
            yield kept, float(deletions[deleted])


def _middles(
    model: Model, middle: str, v: int, j: int
) -> Iterator[tuple[int | None, tuple[int, int] | None, tuple[str, ...], float]]:
    """(D, its deletions, insertions, probability, P(V) … included) of what can be between V and J."""
    if not model.has_d:
        yield None, None, (middle,), float(model.p_vj[v, j]) * insertion_probability(middle, model.insertions[0])
        return
    vd, dj = model.insertions
    chances = model.p_choice[v, :, j]
    for place, template in enumerate(model.d):
        chance = float(chances[place])
        length = len(template.extended)
        for left in range(model.d_deletions.shape[1]):
            for right in range(model.d_deletions.shape[2]):
                kept = length - left - right
                p_deletions = float(model.d_deletions[place, left, right])
                if kept < 0 or p_deletions == 0:
                    continue
                form = template.extended[left : length - right]
                for start in range(len(middle) - kept + 1):
                    if middle.startswith(form, start):
                        before, after = middle[:start], middle[start + kept :]
                        inserted = insertion_probability(before, vd) * insertion_probability(after[::-1], dj)
                        yield place, (left, right), (before, after), chance * p_deletions * inserted
