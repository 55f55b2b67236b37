"""The E step on a GPU against the CPU kernel.  Skipped without a GPU.

python -m pytest tests/gpu/test_inference.py
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import hpcvdj
from hpcvdj.kernels.backends import gpu_count
from hpcvdj.kernels.inference import expectation_cpu
from hpcvdj.kernels.inference.layout import unit_of
from hpcvdj.kernels.inference.method import Expectation
from tests.kernels.inference.cases import (
    GIVEN,
    counts_of,
    every_length,
    largest_differences,
    long_insertions,
    on_cpu,
    problem,
    problem_with,
)
from tests.kernels.inference.test_expectation import random_rows
from tests.kernels.pgen.models import random_model
from tests.kernels.pgen.problems import OLGA_MODELS, olga_model, small_model

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")

BOTH = pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])

ALLOWED = 2.0**-30
"""Of a row: what counts and log-likelihoods may differ by.  Multiplications and additions are fused on a GPU, and a row
is rounded once for each count, to 2^-31 or less for 10^7 rows."""


def kernel_of(own, threads=128):
    from hpcvdj.kernels.inference import errors_cuda, expectation_cuda

    return (errors_cuda.ErrorsKernel if own.errors else expectation_cuda.ExpectationKernel)(own, threads)


def on_gpu(own, threads=128, cuts=()):
    return counts_of(kernel_of(own, threads), own, cuts)


def require_same(own, counts, expected):
    """The same counts, but for `ALLOWED` in each row."""
    assert expected.any()
    units = dict.fromkeys(differences := largest_differences(own, counts, expected), unit_of(own.rows)[0])
    units["logs"] = unit_of(own.rows)[1]
    relative = {part: difference / units[part] / own.rows for part, difference in differences.items()}
    print({part: f"{value:.1e}" for part, value in relative.items()})
    assert max(relative.values()) <= ALLOWED, relative


@BOTH
def test_random_models(has_d):
    for seed in range(10):
        model, rng = random_model(seed, has_d), np.random.default_rng(seed)
        own = problem(model, random_rows(model, rng, 300), rng.integers(0, 4, 300))
        require_same(own, on_gpu(own), on_cpu(own))


@pytest.mark.parametrize("given", GIVEN)
@BOTH
def test_small_models(has_d, given):
    for seed in range(10):
        own = problem_with(small_model(seed, has_d=has_d), given, 3000, seed=seed)
        require_same(own, on_gpu(own), on_cpu(own))


@pytest.mark.parametrize("longest", [64, 128])
@BOTH
def test_every_length(has_d, longest):
    """Insertions that go on for more than two words of bases."""
    own = problem_with(long_insertions(has_d, 90), "lists", 1000, longest, extra=every_length(longest))
    require_same(own, on_gpu(own), on_cpu(own))


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", OLGA_MODELS)
def test_models_of_olga(name, given):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    own = problem_with(model, given, 300 if given == "none" else 3000, 128 if name == "human_igh" else 64, 3)
    require_same(own, on_gpu(own), on_cpu(own))


@pytest.mark.parametrize("name", ["small", *OLGA_MODELS])
def test_runs_ranges_and_blocks_do_not_change_a_bit(name, monkeypatch):
    model = small_model(2) if name == "small" else olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    for given in GIVEN:
        own = problem_with(model, given, 1000, 128, 6)
        expected = on_gpu(own)
        for threads, cuts in product((1, 32, 64, 1024), ((), (1, 2, 70), (999,))):
            assert np.array_equal(on_gpu(own, threads, cuts), expected)
        # A thread takes several in turn; few nodes are counted in shared memory, or none.
        for most, rows in ((1024, 100), (3, 1 << 18), (0, 300)):
            with monkeypatch.context() as patch:
                patch.setattr("hpcvdj.kernels.inference.expectation_cuda.MOST_HERE", most)
                patch.setattr("hpcvdj.kernels.inference.expectation_cuda.ROWS_OF_A_TURN", rows)
                assert np.array_equal(on_gpu(own), expected)


@BOTH
def test_another_model(has_d):
    """`take` may come while the counts of the model before it are being collected."""
    own = problem_with(small_model(3, has_d=has_d), "lists", 3000)
    other = replace(own.model, insertions=small_model(4, has_d=has_d).insertions)
    (unit,) = Expectation().units(own, 0, range(0))
    kernel, reference = kernel_of(own), expectation_cpu.ExpectationKernel(own, 1)
    pending = []
    for model in (own.model, other):
        kernel.take(model)
        pending.append(kernel.start(unit, 0, len(own.repertoire)))
    first, second = (wait()[0].copy() for wait in pending)
    require_same(own, first, counts_of(reference, own))
    reference.take(other)
    require_same(own, second, counts_of(reference, own))


@pytest.mark.parametrize("rate", [1e-3, 0.2, 0.9])
@BOTH
def test_errors_in_random_models(has_d, rate):
    for seed in range(5):
        model, rng = replace(random_model(seed, has_d), error_rate=rate), np.random.default_rng(seed)
        own = problem(model, random_rows(model, rng, 300), rng.integers(0, 4, 300), errors=True)
        require_same(own, on_gpu(own), on_cpu(own))


@pytest.mark.parametrize("longest", [64, 128])
@BOTH
def test_errors_at_every_length(has_d, longest):
    model = replace(long_insertions(has_d, 90), error_rate=0.01)
    own = problem_with(model, "lists", 300, longest, extra=every_length(longest), errors=True)
    require_same(own, on_gpu(own), on_cpu(own))


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", OLGA_MODELS)
def test_errors_in_models_of_olga(name, given):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    count = 30 if given == "none" or name == "human_igh" else 1000
    own = problem_with(
        replace(model, error_rate=0.001), given, count, 128 if name == "human_igh" else 64, 3, errors=True
    )
    require_same(own, on_gpu(own), on_cpu(own))


def test_errors_with_ranges_and_blocks_do_not_change_a_bit():
    own = problem_with(replace(small_model(2), error_rate=0.01), "lists", 3000, errors=True)
    expected = on_gpu(own)
    for threads, cuts in product((1, 32, 64, 1024), ((), (1, 2, 70), (2999,))):
        assert np.array_equal(on_gpu(own, threads, cuts), expected)


def test_a_model_with_errors_is_that_of_cpu_cores():
    """After three iterations, in which small differences may grow."""
    rows = hpcvdj.generate("human_trb_m15", 3000, seed=2)
    cpu, cuda = (
        hpcvdj.infer(rows, "human_trb_m15", errors=True, rows="all", iterations=3, backend=backend)
        for backend in ("cpu", "cuda")
    )
    assert cuda.model.error_rate == pytest.approx(cpu.model.error_rate, rel=1e-6)
    assert cuda.model.p_v == pytest.approx(cpu.model.p_v, abs=1e-8)
    assert cuda.best.log_likelihood == pytest.approx(cpu.best.log_likelihood, abs=1e-8)
