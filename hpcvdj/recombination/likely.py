"""The most likely scenarios of one junction under a recombination model, and their posterior probabilities.

The posterior of a scenario is its probability, as `hpcvdj.recombination.scenarios` defines it, divided by the
generation probability of the junction, which is the sum over all scenarios.

A scenario of a locus with D genes is a D form at a place of the junction, what is left of it and what is right of it.
Both sides are lists, sorted by probability.  A cell is a form, a place and a J allele; with P(V, D, J) also a V allele.
Its best scenario is the product of the first items, and a heap of such products gives all scenarios in order, without
forming the others.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from hpcvdj.recombination.models import Array, Insertion, Model, Template
from hpcvdj.recombination.parts import Parts
from hpcvdj.recombination.scenarios import Scenario, insertion_probability, kept_lengths, scenarios

Side = list[tuple[float, int, int]]
"""(probability, place of the allele, bases kept) of V or J forms with the insertion behind them, the largest first."""

Cell = tuple[int, tuple[int, int], float, Side, Side, int, int]
"""D, its deletions, the probability of both choices, what can be left and right of it, where it begins and stops."""

_DESCRIBED = (
    "v_trim", "p3v_length", "n1", "d_form", "d_trim_5", "d_trim_3", "p5d_length", "p3d_length", "n2", "p5j_length",
    "j_trim",
)  # fmt: skip


def most_likely(model: Model, junction: str, v: Iterable[int], j: Iterable[int], number: int) -> list[Scenario]:
    """The `number` most likely of `scenarios`, the most likely first; arguments as there."""
    if not model.has_d:
        return heapq.nlargest(number, scenarios(model, junction, v, j), key=lambda scenario: scenario.probability)
    return list(islice(_in_order(model, junction, list(v), list(j), number), number))


def _in_order(model: Model, junction: str, v: list[int], j: list[int], number: int) -> Iterator[Scenario]:
    """The scenarios in their order; after the first `number`, some may be missing."""
    length = len(junction)
    cells = _best_cells(model, junction, v, j, number)
    # (- probability, cell, place in `left`, place in `right`): the largest is popped first.
    heap = [(-cell[2] * cell[3][0][0] * cell[4][0][0], k, 0, 0) for k, cell in enumerate(cells)]
    heapq.heapify(heap)
    while heap:
        probability, k, a, b = heapq.heappop(heap)
        d, deleted, factor, left, right, start, stop = cells[k]
        (_, v_place, v_kept), (_, j_place, j_kept) = left[a], right[b]
        inserted = junction[v_kept:start], junction[stop : length - j_kept]
        lost = len(model.v[v_place].extended) - v_kept, len(model.j[j_place].extended) - j_kept
        yield Scenario(v_place, d, j_place, lost[0], deleted, lost[1], inserted, -probability)
        # Each pair of places is reached once: along `left` from its beginning only.
        for c, e in ((a, b + 1), (a + 1, b))[: 1 if b else 2]:
            if c < len(left) and e < len(right):
                heapq.heappush(heap, (-factor * left[c][0] * right[e][0], k, c, e))


def _best_cells(model: Model, junction: str, v: list[int], j: list[int], number: int) -> list[Cell]:
    """The `number` cells with the most likely best scenarios, in a fixed order: others cannot have one of `number`."""
    length = len(junction)
    vd, dj = model.insertions
    # P(D, J) couples J with D, and P(V, D, J) also V: alleles that are coupled with D have lists of their own.
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
    # (probability of the best scenario, - order, cell): the smallest is first.
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
    """For each number of bases from an end, the V or J forms with the insertion behind them that end there.

    alleles  (place in the model, probability, template, P(deletions)) of each
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
    """(D, its deletions, their probability, first base, one past the last) of each D form where the junction has it."""
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
    """The most likely scenarios of a junction, in their order.

    junction   in upper-case A, C, G, T, with the codons of Cys 104 and Phe/Trp 118
    pgen       its generation probability with the V and J alleles in question, the sum over all scenarios
    scenarios  the most likely ones
    """

    model: Model
    junction: str
    pgen: float
    scenarios: list[Scenario]

    def posterior(self, scenario: Scenario) -> float:
        """The probability of the scenario, given the junction."""
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
        """One letter for each base of the junction, as of `Parts.track`."""
        return self._parts(scenario).track()

    def describe(self, scenario: Scenario) -> dict[str, Any]:
        """A scenario in words, as of `Parts.describe`; None where there is no D."""
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
        """Everything, of the types that JSON has."""
        return {
            "junction": self.junction,
            "model": self.model.name,
            "pgen_nt": self.pgen,
            "shown": self.shown,
            "scenarios": list(map(self.describe, self.scenarios)),
        }
