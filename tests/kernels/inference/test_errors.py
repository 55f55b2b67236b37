"""Expected counts with sequencing errors: against the definition, and against the kernel without errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.inference.parameters import PARAMETERS, maximised, mixed
from hpcvdj.kernels.inference.errors_cpu import ErrorsKernel
from hpcvdj.kernels.inference.errors_layout import Weights
from hpcvdj.kernels.inference.layout import Expected
from hpcvdj.recombination.models import Model
from tests.kernels.inference.cases import counts_of, problem
from tests.kernels.inference.test_expectation import by_definition, counted, random_rows, require_equal
from tests.kernels.pgen.models import Junction, random_model, sample
from tests.recombination.definition import pgen, scenarios

seeds = st.integers(0, 10**6)


def with_errors(model: Model, rows: list[Junction], weights: np.ndarray, rate: float) -> Expected:
    """The kernel's counts at an error rate."""
    return counted(problem(replace(model, error_rate=rate), rows, weights, errors=True), ErrorsKernel)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans(), rate=st.sampled_from([1e-3, 0.2, 0.9]))
def test_counts_are_those_of_the_scenarios(seed, has_d, rate):
    model, rng = random_model(seed, has_d, longest_insertion=3, longest=4), np.random.default_rng(seed)
    rows = random_rows(model, rng, 4)
    weights = rng.integers(0, 4, len(rows))
    require_equal(
        with_errors(model, rows, weights, rate), by_definition(replace(model, error_rate=rate), rows, weights)
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_without_errors_counts_are_those_of_the_other_kernel(seed, has_d):
    model, rng = random_model(seed, has_d), np.random.default_rng(seed)
    rows = random_rows(model, rng, 20)
    weights = rng.integers(0, 4, len(rows))
    found, other = with_errors(model, rows, weights, 0.0), counted(problem(model, rows, weights))
    assert found.errors[0] == 0
    require_equal(replace(found, errors=np.zeros(2)), other)


@pytest.mark.parametrize("has_d", [True, False])
def test_all_texts_of_a_length_have_the_probability_of_the_length(has_d):
    """Errors move probability between texts of the same length, and lose none."""
    model = random_model(24, has_d, longest_insertion=1, longest=3)
    texts = ["".join(bases) for bases in product("ACGT", repeat=4)]
    without, found = (sum(pgen(model, text, error_rate=rate) for text in texts) for rate in (0.0, 0.3))
    assert without > 0
    assert found == pytest.approx(without, rel=1e-12)


def test_a_scenario_says_which_bases_are_misread():
    """Those without a misread base are those without errors, in the same order, and less likely than these."""
    model = random_model(24, True, longest_insertion=2, longest=4)
    text = sample(model, np.random.default_rng(24)).junction
    sets = model.contributing("V"), model.contributing("J")
    without = list(scenarios(model, text, *sets))
    found = list(scenarios(model, text, *sets, 0.25))
    exact = [own for own in found if not own.misread]
    assert len(found) > len(exact) > 0
    assert [replace(own, probability=0.0) for own in exact] == [replace(own, probability=0.0) for own in without]
    for own, other in zip(exact, without, strict=True):
        bases = len(text) - len("".join(own.inserted))
        assert own.probability == pytest.approx(other.probability * 0.75**bases, rel=1e-13)


@pytest.mark.parametrize("has_d", [True, False])
def test_parts_and_threads_do_not_change_a_bit(has_d):
    model, rng = replace(random_model(5, has_d), error_rate=0.01), np.random.default_rng(5)
    own = problem(model, random_rows(model, rng, 700), rng.integers(0, 3, 700), errors=True)
    whole = counts_of(ErrorsKernel(own, 1), own)
    assert np.array_equal(whole, counts_of(ErrorsKernel(own, 1), own, (1, 256, 257, 600)))
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert np.array_equal(whole, counts_of(ErrorsKernel(own, 1), own))
    finally:
        numba.set_num_threads(threads)


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_the_likelihood_never_falls(seed, has_d):
    model, rng = mixed(random_model(seed, has_d), 0.05), np.random.default_rng(seed)
    model = replace(model, error_rate=0.05)
    rows = random_rows(model, rng, 40)
    weights = np.ones(len(rows), dtype=np.uint32)
    last, rates = -np.inf, set()
    for _ in range(8):
        own = problem(model, rows, weights, errors=True)
        found = counted(own, ErrorsKernel)
        # Log-likelihoods are multiples of 2^-46.
        assert found.log_likelihood >= last - 1e-9
        last = found.log_likelihood
        rates.add(model.error_rate)
        model = maximised(model, found, frozenset(PARAMETERS))
    assert len(rates) == 8


@pytest.mark.parametrize("has_d", [True, False])
def test_the_kernel_is_compiled_once(has_d):
    """Arrays of one layout, however the model's were read: each other layout takes 30 s of compiling."""
    model = random_model(5, has_d)
    sides = {name: np.asfortranarray(getattr(model, name)) for name in ("v_deletions", "j_deletions", "d_deletions")}
    if has_d:
        sides["p_dj"] = np.asfortranarray(model.p_dj)
    own = Weights.of(replace(model, **sides))
    for name in ("v_choice", "j_choice", "v", "j", "d"):
        array = getattr(own, name)
        assert (array.dtype, array.flags.c_contiguous) == (np.dtype(np.float64), True), name
