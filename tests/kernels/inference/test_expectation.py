"""Expected counts against the definition: the posterior probability of each scenario, added up event by event."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.kernels.inference.expectation_cpu import ExpectationKernel
from hpcvdj.kernels.inference.layout import LEAST, Expected
from hpcvdj.kernels.inference.method import Expectation, InferenceProblem
from hpcvdj.kernels.method import everything
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.scenarios import BASES, pgen, scenarios
from tests.kernels.pgen.models import Junction, mutated, problem_of, random_model, sample

seeds = st.integers(0, 10**6)

ROUNDING = 2.0**-30
"""What counts of a few rows differ by at most: they are multiples of 2^-40, one for each row and node."""


def random_rows(model: Model, rng: np.random.Generator, number: int) -> list[Junction]:
    """Drawn, mutated and random junctions, the shortest among them; V and J given, lists of them, or not."""
    rows: list[Junction] = []
    for _ in range(number):
        drawn = sample(model, rng)
        text = drawn.junction or "".join(rng.choice(list(BASES), rng.integers(0, 12)))
        text = mutated(text, rng) if text and rng.random() < 0.3 else text
        masks = []
        for segment, own in (("V", drawn.v), ("J", drawn.j)):
            places = model.contributing(segment)
            given_one = (own,) if own in places else places[:1]
            masks.append([None, given_one, places[:2]][rng.integers(3)])
        rows.append((text, *masks))
    return rows


def problem(
    model: Model, rows: list[Junction], weights: np.ndarray | None = None
) -> tuple[InferenceProblem, np.ndarray]:
    """The problem of some junctions, and the row of each in its repertoire."""
    own, row_of = problem_of(model, rows)
    row_weights = np.ones(len(rows), dtype=np.uint32)
    if weights is not None:
        row_weights[row_of] = weights
    return InferenceProblem(own.repertoire, row_weights, model), row_of


def counted(problem: InferenceProblem, kernel: type = ExpectationKernel, cuts: tuple[int, ...] = ()) -> Expected:
    """The kernel's counts, in parts that are cut at some rows."""
    (unit,) = Expectation().units(problem, 0, everything)
    own = kernel(problem, 1)
    ends = sorted({0, *cuts, len(problem.repertoire)})
    parts = [own(unit, first, last).copy() for first, last in pairwise(ends)]
    return problem.layout.expected(np.sum(parts, axis=0)[0], problem.model, problem.rows)


def by_definition(model: Model, rows: list[Junction], weights: np.ndarray) -> Expected:
    """The same, scenario by scenario."""
    choices = np.zeros_like(model.p_v if model.has_d else model.p_vj)
    dj, v, j, d = (np.zeros_like(own) for own in (model.p_dj, model.v_deletions, model.j_deletions, model.d_deletions))
    lengths = [np.zeros_like(own.lengths) for own in model.insertions]
    first, steps = ([np.zeros(shape) for _ in model.insertions] for shape in (4, (4, 4)))
    logs, lost = np.zeros(2), [0, 0]
    for (text, v_mask, j_mask), weight in zip(rows, weights, strict=True):
        masks = (
            model.contributing("V") if v_mask is None else v_mask,
            model.contributing("J") if j_mask is None else j_mask,
        )
        total = pgen(model, text, *masks)
        held = int(weight == 0)
        logs[held] += np.log(max(total, LEAST)) * max(weight, 1)
        lost[held] += (total == 0) * max(int(weight), 1)
        if held or total == 0:
            continue
        for own in scenarios(model, text, *masks):
            z = weight * own.probability / total
            choices[own.v if model.has_d else (own.v, own.j)] += z
            v[own.v, own.v_deleted] += z
            j[own.j, own.j_deleted] += z
            if model.has_d:
                dj[own.d, own.j] += z
                d[(own.d, *own.d_deleted)] += z
            for number, bases in enumerate(own.inserted):
                bases = bases[::-1] if number else bases
                lengths[number][len(bases)] += z
                places = [BASES.index(base) for base in bases]
                if places:
                    first[number][places[0]] += z
                for before, after in pairwise(places):
                    steps[number][after, before] += z
    return Expected(
        choices, dj, v, j, d, tuple(lengths), tuple(first), tuple(steps), logs[0], lost[0], logs[1], lost[1]
    )


def require_equal(a: Expected, b: Expected) -> None:
    for name, own in vars(a).items():
        others = vars(b)[name]
        for x, y in zip(own, others, strict=True) if isinstance(own, tuple) else [(own, others)]:
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=ROUNDING, err_msg=name)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_counts_are_those_of_the_scenarios(seed, has_d):
    model, rng = random_model(seed, has_d), np.random.default_rng(seed)
    rows = random_rows(model, rng, 6)
    weights = rng.integers(0, 4, len(rows))
    require_equal(counted(problem(model, rows, weights)), by_definition(model, rows, weights))
