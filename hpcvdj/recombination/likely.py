"""The most likely scenarios of a junction under a recombination model, and their posterior probabilities.

`hpcvdj.recombination.models` says what the probability of a scenario is.  The posterior probability is that probability
divided by the generation probability of the junction, which is the sum over all scenarios.

In a locus with D genes, a scenario is a D form at a position of the junction, with a left and a right side.  The
possible sides are lists, sorted by probability.  A cell is a form, a position and a J allele; with P(V, D, J) also a V
allele.  The best scenario of a cell is the product of the first items of its two lists.  A heap of such products gives
the scenarios in order, and no others are formed.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from typing import Any

import numpy as np

from hpcvdj.recombination.models import BASES, Array, Insertion, Model, Template
from hpcvdj.recombination.parts import Parts

Side = list[tuple[float, int, int]]
"""(probability, index of the allele, bases kept) of V or J forms with the insertion behind them, best first."""

Cell = tuple[int, tuple[int, int], float, Side, Side, int, int]
"""D, its deletions, the probability of both choices, the left and right sides, the first base of D, the last + 1."""

_DESCRIBED = (
    "v_trim", "p3v_length", "n1", "d_form", "d_trim_5", "d_trim_3", "p5d_length", "p3d_length", "n2", "p5j_length",
    "j_trim",
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """One way to make a junction.

    v, d, j       indices of the alleles in the model; `d` is None for a locus without D genes
    v_deleted, …  bases missing from the extended segments
    inserted      the inserted bases in the order of the junction: of VD and DJ, or of VJ
    probability   the probability of the scenario
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
    """Return P(inserting these bases), which are in the order in which the Markov chain adds them."""
    if len(bases) >= len(insertion.lengths):
        return 0.0
    probability = float(insertion.lengths[len(bases)])
    for position, base in enumerate(bases):
        to = BASES.index(base)
        probability *= float(
            insertion.first[to] if position == 0 else insertion.transitions[to, BASES.index(bases[position - 1])]
        )
    return probability


def kept_lengths(template: Template, deletions: Array, junction: str, *, at_start: bool) -> Iterator[tuple[int, float]]:
    """Yield (bases kept, P(deletion)) of the forms of a V or J segment that fit the junction.

    A form has at least one base.
    """
    extended = template.extended
    for kept in range(1, min(len(extended), len(junction)) + 1):
        deleted = len(extended) - kept
        fits = junction.startswith(extended[:kept]) if at_start else junction.endswith(extended[deleted:])
        if fits and deleted < len(deletions):
            yield kept, float(deletions[deleted])


def most_likely(model: Model, junction: str, v: Iterable[int], j: Iterable[int], number: int) -> list[Scenario]:
    """Return the `number` most likely scenarios of a junction, the most likely first.

    junction  bases A, C, G, T in upper case, including the codons of Cys 104 and Phe/Trp 118
    v, j      indices of the alleles in the model
    """
    if not model.has_d:
        every = _without_d(model, junction, v, j)
        return heapq.nlargest(number, every, key=lambda scenario: scenario.probability)
    return list(islice(_in_order(model, junction, list(v), list(j), number), number))


def _without_d(model: Model, junction: str, v: Iterable[int], j: Iterable[int]) -> Iterator[Scenario]:
    """Yield all scenarios with P > 0 of a locus without D genes."""
    (insertion,) = model.insertions
    lefts, rights = (
        [
            (k, len(templates[k].extended) - kept, kept, chance)
            for k in alleles
            for kept, chance in kept_lengths(templates[k], deletions[k], junction, at_start=at_start)
        ]
        for alleles, templates, deletions, at_start in (
            (v, model.v, model.v_deletions, True), (j, model.j, model.j_deletions, False),
        )
    )  # fmt: skip
    for (v_allele, v_lost, v_kept, p_v), (j_allele, j_lost, j_kept, p_j) in product(lefts, rights):
        if v_kept + j_kept <= len(junction):
            inserted = junction[v_kept : len(junction) - j_kept]
            choice = float(model.p_vj[v_allele, j_allele])
            probability = p_v * p_j * (choice * insertion_probability(inserted, insertion))
            if probability > 0:
                yield Scenario(v_allele, None, j_allele, v_lost, None, j_lost, (inserted,), probability)


def _in_order(model: Model, junction: str, v: list[int], j: list[int], number: int) -> Iterator[Scenario]:
    """Yield the scenarios, the most likely first; scenarios after the first `number` may be missing."""
    length = len(junction)
    cells = _best_cells(model, junction, v, j, number)
    # (- probability, cell, index in `left`, index in `right`): the largest probability is popped first.
    heap = [(-cell[2] * cell[3][0][0] * cell[4][0][0], k, 0, 0) for k, cell in enumerate(cells)]
    heapq.heapify(heap)
    while heap:
        probability, k, a, b = heapq.heappop(heap)
        d, deleted, factor, left, right, start, stop = cells[k]
        (_, v_allele, v_kept), (_, j_allele, j_kept) = left[a], right[b]
        inserted = junction[v_kept:start], junction[stop : length - j_kept]
        v_lost, j_lost = len(model.v[v_allele].extended) - v_kept, len(model.j[j_allele].extended) - j_kept
        yield Scenario(v_allele, d, j_allele, v_lost, deleted, j_lost, inserted, -probability)
        # To reach each pair of indices once, move along `left` only from the beginning of `right`.
        for c, e in ((a, b + 1), (a + 1, b))[: 1 if b else 2]:
            if c < len(left) and e < len(right):
                heapq.heappush(heap, (-factor * left[c][0] * right[e][0], k, c, e))


def _best_cells(model: Model, junction: str, v: list[int], j: list[int], number: int) -> list[Cell]:
    """Return the `number` cells with the best first scenarios, in a fixed order.

    No other cell has one of the `number` best scenarios.
    """
    length = len(junction)
    vd, dj = model.insertions
    # P(D, J) couples J with D, and P(V, D, J) also couples V.  Each allele that is coupled with D has its own list.
    if model.joint:
        groups, choice = [[(k, 1.0)] for k in v], model.p_choice[v][:, :, j]
    else:
        groups, choice = [[(k, float(model.p_v[k])) for k in v]], model.p_dj[np.newaxis, :, j]
    lefts = [
        _sides(junction, [(k, p, model.v[k], model.v_deletions[k]) for k, p in group], vd, at_start=True)
        for group in groups
    ]
    rights = [_sides(junction, [(k, 1.0, model.j[k], model.j_deletions[k])], dj, at_start=False) for k in j]
    best_left, best_right = (
        np.array([[side[0][0] if side else 0.0 for side in sides] for sides in lists]).reshape(len(lists), length + 1)
        for lists in (lefts, rights)
    )
    # (probability of the best scenario, - order, cell): the smallest probability is first.
    kept: list[tuple[float, int, Cell]] = []
    order = 0
    for d, deleted, chance, start, stop in _placements(model, junction):
        factors = chance * choice[:, d]
        best = factors * best_left[:, start, np.newaxis] * best_right[:, length - stop]
        least = kept[0][0] if kept and len(kept) == number else 0.0
        for group, k in np.argwhere(best > least).tolist():
            left, right = lefts[group][start], rights[k][length - stop]
            order += 1
            cell = d, deleted, float(factors[group, k]), left, right, start, stop
            push = heapq.heappush if len(kept) < number else heapq.heappushpop
            push(kept, (float(best[group, k]), -order, cell))
    return [cell for *_, cell in sorted(kept, key=lambda item: -item[1])]


def _sides(
    junction: str, alleles: list[tuple[int, float, Template, Array]], insertion: Insertion, *, at_start: bool
) -> list[Side]:
    """Return, by number of bases from an end of the junction, the V or J forms that end there with their insertion.

    alleles  (index in the model, probability, template, P(deletions)) of each allele
    """
    letters = junction if at_start else junction[::-1]

    @cache
    def inserted(first: int, last: int) -> float:
        return insertion_probability(letters[first:last], insertion)

    sides: list[Side] = [[] for _ in range(len(junction) + 1)]
    for allele, chance, template, deletions in alleles:
        for kept, deletion in kept_lengths(template, deletions, junction, at_start=at_start):
            for end in range(kept, min(len(junction), kept + len(insertion.lengths) - 1) + 1):
                probability = chance * deletion * inserted(kept, end)
                if probability > 0:
                    sides[end].append((probability, allele, kept))
    return [sorted(side, key=lambda item: -item[0]) for side in sides]


def _placements(model: Model, junction: str) -> Iterator[tuple[int, tuple[int, int], float, int, int]]:
    """Yield (D, its deletions, their probability, first base, last base + 1) of each D form that the junction has."""
    for d, template in enumerate(model.d):
        length = len(template.extended)
        for left, right in zip(*model.d_deletions[d].nonzero(), strict=True):
            form = template.extended[left : length - right]
            if left + right > length:
                continue
            for start in range(len(junction) - len(form) + 1):
                if junction.startswith(form, start):
                    deleted = int(left), int(right)
                    yield d, deleted, float(model.d_deletions[d, left, right]), start, start + len(form)


@dataclass(frozen=True)
class LikelyScenarios:
    """The most likely scenarios of a junction, the most likely first.

    junction   bases A, C, G, T in upper case, with the codons of Cys 104 and Phe/Trp 118
    pgen       the generation probability of the junction with these V and J alleles: the sum over all scenarios
    scenarios  the most likely ones
    """

    model: Model
    junction: str
    pgen: float
    scenarios: list[Scenario]

    def posterior(self, scenario: Scenario) -> float:
        """Return the probability of a scenario, given the junction."""
        return scenario.probability / self.pgen

    @property
    def shown(self) -> float:
        """The posterior probability of all `scenarios` together."""
        return sum(map(self.posterior, self.scenarios))

    def _parts(self, scenario: Scenario) -> Parts:
        model = self.model
        v, j = model.v[scenario.v].letters("V"), model.j[scenario.j].letters("J")
        ends = self.junction, v, len(v) - scenario.v_deleted, j, len(j) - scenario.j_deleted
        if scenario.d is None or scenario.d_deleted is None:
            return Parts(*ends)
        d, (left, right) = model.d[scenario.d].letters("D"), scenario.d_deleted
        return Parts(*ends, d, slice(left, len(d) - right), len(v) - scenario.v_deleted + len(scenario.inserted[0]))

    def track(self, scenario: Scenario) -> str:
        """Return one letter for each base of the junction: see `Parts.track`."""
        return self._parts(scenario).track()

    def describe(self, scenario: Scenario) -> dict[str, Any]:
        """Return a scenario in words: see `Parts.describe`.  Values about D are None if there is no D."""
        facts = self._parts(scenario).describe()
        return {
            "posterior": self.posterior(scenario),
            "probability": scenario.probability,
            "v_call": self.model.v[scenario.v].allele,
            "d_call": None if scenario.d is None else self.model.d[scenario.d].allele,
            "j_call": self.model.j[scenario.j].allele,
            **{name: facts.get(name) for name in _DESCRIBED},
            "track": self.track(scenario),
        }

    def as_json(self) -> dict[str, Any]:
        """Return all facts, as JSON values."""
        return {
            "junction": self.junction,
            "model": self.model.name,
            "pgen_nt": self.pgen,
            "shown": self.shown,
            "scenarios": list(map(self.describe, self.scenarios)),
        }
