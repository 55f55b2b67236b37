"""Expected counts against the definition: the posterior probability of each scenario, added up event by event."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.kernels.inference.expectation_cpu import ExpectationKernel
from hpcvdj.kernels.inference.layout import LEAST, Expected
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.recombination.models import BASES, Model
from tests.kernels.inference.cases import counts_of, on_cpu, problem
from tests.kernels.pgen.models import Junction, mutated, random_model, sample
from tests.recombination.definition import pgen, scenarios

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


def counted(own: InferenceProblem, kernel: type = ExpectationKernel) -> Expected:
    """The kernel's counts."""
    return own.layout.expected(counts_of(kernel(own, 1), own), own.model, own.rows)


def by_definition(model: Model, rows: list[Junction], weights: np.ndarray) -> Expected:
    """The same, scenario by scenario; with misread bases if the model has an error rate."""
    choices = np.zeros_like(model.p_v if model.has_d else model.p_vj)
    dj, v, j, d = (np.zeros_like(own) for own in (model.p_dj, model.v_deletions, model.j_deletions, model.d_deletions))
    lengths = [np.zeros_like(own.lengths) for own in model.insertions]
    first, steps = ([np.zeros(shape) for _ in model.insertions] for shape in (4, (4, 4)))
    logs, lost, errors = np.zeros(2), [0, 0], np.zeros(2)
    for (text, v_mask, j_mask), weight in zip(rows, weights, strict=True):
        masks = (
            model.contributing("V") if v_mask is None else v_mask,
            model.contributing("J") if j_mask is None else j_mask,
        )
        total = pgen(model, text, *masks, model.error_rate)
        held = int(weight == 0)
        logs[held] += np.log(max(total, LEAST)) * max(weight, 1)
        lost[held] += (total == 0) * max(int(weight), 1)
        if held or total == 0:
            continue
        for own in scenarios(model, text, *masks, model.error_rate):
            z = weight * own.probability / total
            if model.error_rate:
                errors += z * np.array([own.misread, len(text) - len("".join(own.inserted)) - own.misread])
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
        choices, dj, v, j, d, tuple(lengths), tuple(first), tuple(steps), logs[0], lost[0], logs[1], lost[1],
        errors,
    )  # fmt: skip


def require_equal(a: Expected, b: Expected) -> None:
    for name, own in vars(a).items():
        others = vars(b)[name]
        for x, y in zip(own, others, strict=True) if isinstance(own, tuple) else [(own, others)]:
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=ROUNDING, err_msg=name)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_counts_are_those_of_the_scenarios(seed, has_d):
    model, rng = random_model(seed, has_d), np.random.default_rng(seed)
    rows = random_rows(model, rng, 6)
    weights = rng.integers(0, 4, len(rows))
    require_equal(counted(problem(model, rows, weights)), by_definition(model, rows, weights))


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_counts_are_derivatives_of_the_likelihood(seed, has_d):
    """t · d log P / d t of each probability t, by central differences of the definition."""
    model, rng = random_model(seed, has_d), np.random.default_rng(seed)
    rows = [row for row in random_rows(model, rng, 4) if probability(model, row) > 0]
    if not rows:
        return
    found = counted(problem(model, rows, np.ones(len(rows))))
    arrays = {"v_deletions": found.v, "j_deletions": found.j, "d_deletions": found.d, "p_dj": found.dj}
    arrays["p_v" if has_d else "p_vj"] = found.choices
    for name, counts in arrays.items():
        require_derivatives(
            getattr(model, name), counts, lambda values, name=name: replace(model, **{name: values}), rows
        )
    for number, own in enumerate(model.insertions):
        for name in ("lengths", "first", "transitions"):

            def changed(values, number=number, own=own, name=name):
                insertions = list(model.insertions)
                insertions[number] = replace(own, **{name: values})
                return replace(model, insertions=tuple(insertions))

            require_derivatives(getattr(own, name), getattr(found, name)[number], changed, rows)


def probability(model: Model, row: Junction) -> float:
    text, v, j = row
    return pgen(model, text, v, j)


STEP = 1e-5
"""Relative; the error of a central difference is about its square, and 1e-15 over it."""


def require_derivatives(values: np.ndarray, counts: np.ndarray, changed, rows: list[Junction]) -> None:
    """Some of `counts` against differences; `changed` is the model with other values."""
    places = np.argwhere(values > 0)
    for place in map(tuple, places[:: max(1, len(places) // 4)]):
        logs = []
        for sign in (1, -1):
            other = values.copy()
            other[place] *= 1 + sign * STEP
            logs.append(sum(np.log(probability(changed(other), row)) for row in rows))
        assert (logs[0] - logs[1]) / (2 * STEP) == pytest.approx(counts[place], rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("has_d", [True, False])
def test_parts_and_threads_do_not_change_a_bit(has_d):
    model, rng = random_model(5, has_d), np.random.default_rng(5)
    own = problem(model, random_rows(model, rng, 700), rng.integers(0, 3, 700))
    whole = on_cpu(own)
    assert np.array_equal(whole, counts_of(ExpectationKernel(own, 1), own, cuts=(1, 256, 257, 600)))
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert np.array_equal(whole, on_cpu(own))
    finally:
        numba.set_num_threads(threads)


def test_many_rows_stay_below_64_bits():
    """Counts of a row, as often as a uint32 says and no more than the unit allows."""
    model, rng = random_model(3, True), np.random.default_rng(3)
    rows = [row for row in random_rows(model, rng, 8) if probability(model, row) > 0]
    weights = np.full(len(rows), 2**31, dtype=np.uint32)
    once, often = (counted(problem(model, rows, own)) for own in (np.ones(len(rows), np.uint32), weights))
    assert often.log_likelihood == pytest.approx(once.log_likelihood * 2.0**31, rel=1e-6)
    np.testing.assert_allclose(often.v / 2.0**31, once.v, atol=2.0**-18)
