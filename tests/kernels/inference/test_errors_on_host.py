"""The CUDA kernel of the E step with sequencing errors executed on the CPU, against the CPU kernel.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hpcvdj.errors import MachineError
from hpcvdj.kernels.inference.errors_cpu import ErrorsKernel
from hpcvdj.kernels.inference.layout import unit_of
from tests.kernels.host import fake_cupy
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

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")

BOTH = pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])

ALLOWED = 2.0**-44
"""Of a row: what counts and log-likelihoods may differ by.  The largest difference seen is 2^-48: a count is rounded
for each D gene and word of a junction, to 2^-49 for these numbers of rows."""

AFTER_A_COLLECTIVE = (0, 3, 4, 5, 6, 10)
"""Barriers of a warp that a sum or a shuffle comes before.  On a GPU, these do not order what lanes write, as here."""


def kernel_of(own, threads=32):
    from hpcvdj.kernels.inference.errors_cuda import ErrorsKernel

    return ErrorsKernel(own, threads)


def on_host(own, threads=32, cuts=()):
    return counts_of(kernel_of(own, threads), own, cuts)


def require_same(own, counts, expected):
    """The same counts, but for `ALLOWED` in each row."""
    assert expected.any()
    unit, log_unit = unit_of(own.rows)
    for part, difference in largest_differences(own, counts, expected).items():
        assert difference <= ALLOWED * own.rows * (log_unit if part == "logs" else unit), (part, difference, own.rows)


def at_rate(model, rate=0.01):
    return replace(model, error_rate=rate)


@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@BOTH
def test_random_models(cuda_on_host, has_d, order):
    cuda_on_host.order = order
    for seed, rate in enumerate([1e-3, 0.2, 0.9]):
        model, rng = at_rate(random_model(seed, has_d), rate), np.random.default_rng(seed)
        own = problem(model, random_rows(model, rng, 20), rng.integers(0, 4, 20), errors=True)
        require_same(own, on_host(own), on_cpu(own))


@pytest.mark.parametrize("given", GIVEN)
@BOTH
def test_small_models(cuda_on_host, has_d, given):
    for seed in range(2):
        own = problem_with(at_rate(small_model(seed, has_d=has_d)), given, seed=seed, errors=True)
        require_same(own, on_host(own, 64, (1, 30)), on_cpu(own))


@pytest.mark.parametrize("longest", [64, 128])
@BOTH
def test_every_length(cuda_on_host, has_d, longest):
    """Insertions that go on for more than two words of bases."""
    own = problem_with(
        at_rate(long_insertions(has_d, 90)), "lists", longest=longest, extra=every_length(longest), errors=True
    )
    assert own.repertoire.longest == longest
    require_same(own, on_host(own), on_cpu(own))


@pytest.mark.slow
@BOTH
def test_ranges_blocks_and_orders_do_not_change_a_bit(cuda_on_host, monkeypatch, has_d):
    own = problem_with(at_rate(small_model(2, has_d=has_d)), "lists", count=50, errors=True)
    expected = on_host(own)
    for blocks in (1, 32):
        monkeypatch.setattr("hpcvdj.kernels.inference.errors_cuda.BLOCKS", blocks)
        for threads, cuts in product((1, 64, 1024), ((), (1, 2, 30), (49,))):
            assert np.array_equal(on_host(own, threads, cuts), expected)
    for cuda_on_host.order in fake_cupy.ORDERS:
        assert np.array_equal(on_host(own, 96), expected)


def test_another_model(cuda_on_host):
    """`take` changes the error rate as well."""
    own = problem_with(at_rate(small_model(3)), "lists", errors=True)
    other = at_rate(replace(own.model, insertions=small_model(4).insertions), 0.2)
    kernel, reference = kernel_of(own), ErrorsKernel(own, 1)
    before = counts_of(kernel, own)
    for each in (kernel, reference):
        each.take(other)
    require_same(own, counts_of(kernel, own), counts_of(reference, own))
    kernel.take(own.model)
    assert np.array_equal(counts_of(kernel, own), before)


def test_nothing_to_count(cuda_on_host):
    """No rows, only rows that are held out, and a pair without alleles that contribute."""
    own = problem_with(at_rate(small_model(3)), "both", errors=True)
    for repertoire in (own.repertoire, own.repertoire.subset(np.arange(0))):
        held = replace(own, repertoire=repertoire, row_weights=np.zeros(len(repertoire), np.uint32))
        assert np.abs(on_host(held) - on_cpu(held)).max() <= len(repertoire)
    pairs = own.repertoire.pairs
    pairs[0], pairs[1] = (own.model.alleles("V", ()), pairs[0][1]), (pairs[1][0], own.model.alleles("J", ()))
    own = replace(own)
    require_same(own, on_host(own), on_cpu(own))


def test_junctions_that_are_too_long(cuda_on_host):
    own = problem_with(at_rate(small_model(3)), "both", extra=("ACGTTGCA" * 16 + "A",), errors=True)
    with pytest.raises(MachineError, match=r"129 bases.*at most 128.*backend='cpu'"):
        kernel_of(own)


@pytest.mark.slow
@pytest.mark.parametrize("name", OLGA_MODELS)
def test_models_of_olga(cuda_on_host, name):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    own = problem_with(at_rate(model), "lists", 4, 128 if name == "human_igh" else 64, 3, errors=True)
    require_same(own, on_host(own), on_cpu(own))


@pytest.mark.exhaustive
def test_a_missing_barrier_shows(cuda_on_host):
    """Taken away one by one, each changes the counts in some order of the threads."""
    own = problem_with(at_rate(small_model(2)), "lists", 40, errors=True)
    expected = on_host(own, 64)
    unseen = []
    for barrier, number in (*product(["__syncwarp(ALL);"], range(11)), *product(["__syncthreads();"], range(2))):
        cuda_on_host.change = fake_cupy.without_barrier(number, barrier)
        same = []
        for cuda_on_host.order in fake_cupy.ORDERS:
            with suppress(MachineError):
                same.append(np.array_equal(on_host(own, 64), expected))
        if len(same) == len(fake_cupy.ORDERS) and all(same):
            unseen.append(number)
    assert tuple(unseen) == AFTER_A_COLLECTIVE
