"""The CUDA kernel of the E step executed on the CPU, against the CPU kernel.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hpcvdj.errors import MachineError
from hpcvdj.kernels.inference import expectation_cpu
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


@pytest.fixture
def host(kernels, monkeypatch):
    """The CUDA backend on the host."""
    fake = fake_cupy.Fake(kernels)
    with fake.installed(monkeypatch):
        yield fake


def kernel_of(own, threads=32):
    from hpcvdj.kernels.inference.expectation_cuda import ExpectationKernel

    return ExpectationKernel(own, threads)


def on_host(own, threads=32, cuts=()):
    return counts_of(kernel_of(own, threads), own, cuts)


def require_same(own, counts, expected):
    """The same integers, but for those that are summed in another order, or are logarithms: one unit for each row."""
    assert expected.any()
    for part, difference in largest_differences(own, counts, expected).items():
        assert difference <= (own.rows if part.endswith(("steps", "logs")) else 0), (part, difference)


@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@BOTH
def test_random_models(host, has_d, order):
    host.order = order
    for seed in range(3):
        model, rng = random_model(seed, has_d), np.random.default_rng(seed)
        own = problem(model, random_rows(model, rng, 60), rng.integers(0, 4, 60))
        require_same(own, on_host(own), on_cpu(own))


@pytest.mark.parametrize("given", GIVEN)
@BOTH
def test_small_models(host, has_d, given):
    for seed in range(2):
        own = problem_with(small_model(seed, has_d=has_d), given, seed=seed)
        require_same(own, on_host(own, 64), on_cpu(own))


@pytest.mark.parametrize("longest", [64, 128])
@BOTH
def test_every_length(host, has_d, longest):
    """Insertions that go on for more than two words of bases."""
    model = long_insertions(has_d, 90)
    own = problem_with(model, "lists", longest=longest, extra=every_length(longest))
    assert own.repertoire.longest == longest
    require_same(own, on_host(own), on_cpu(own))


@pytest.mark.slow
@BOTH
def test_ranges_blocks_and_orders_do_not_change_a_bit(host, monkeypatch, has_d):
    own = problem_with(small_model(2, has_d=has_d), "lists", count=150)
    expected = on_host(own)
    for threads, cuts in product((1, 64, 1024), ((), (1, 2, 70), (149,))):
        assert np.array_equal(on_host(own, threads, cuts), expected)
    for host.order in fake_cupy.ORDERS:
        assert np.array_equal(on_host(own, 96), expected)
    # A thread takes several in turn; few nodes are counted in shared memory, or none.
    for most, rows in ((1024, 20), (3, 1000), (0, 30)):
        monkeypatch.setattr("hpcvdj.kernels.inference.expectation_cuda.MOST_HERE", most)
        monkeypatch.setattr("hpcvdj.kernels.inference.expectation_cuda.ROWS_OF_A_TURN", rows)
        assert np.array_equal(on_host(own), expected)


@BOTH
def test_another_model(host, has_d):
    """`take` counts under it as the CPU kernel does, and what was started before stays."""
    own = problem_with(small_model(3, has_d=has_d), "lists")
    other = small_model(4, has_d=has_d)
    names = ("v_deletions", "d_deletions", "p_v", "p_dj", "p_vj")
    other = replace(own.model, insertions=other.insertions, **{name: getattr(other, name) for name in names})
    kernel, reference = kernel_of(own), expectation_cpu.ExpectationKernel(own, 1)
    before = counts_of(kernel, own)
    for each in (kernel, reference):
        each.take(other)
    require_same(own, counts_of(kernel, own), counts_of(reference, own))
    assert not np.array_equal(counts_of(kernel, own), before)
    kernel.take(own.model)
    assert np.array_equal(counts_of(kernel, own), before)


def test_nothing_to_count(host):
    """No rows, only rows that are held out, and pairs without alleles that contribute."""
    own = problem_with(small_model(3), "both")
    for repertoire in (own.repertoire, own.repertoire.subset(np.arange(0))):
        held = replace(own, repertoire=repertoire, row_weights=np.zeros(len(repertoire), np.uint32))
        assert np.array_equal(on_host(held), on_cpu(held))
    pairs = own.repertoire.pairs
    pairs[0], pairs[1] = (own.model.alleles("V", ()), pairs[0][1]), (pairs[1][0], own.model.alleles("J", ()))
    own = replace(own)
    assert own.layout.groups.first[2] == 0
    require_same(own, on_host(own), on_cpu(own))


def test_junctions_that_are_too_long(host):
    own = problem_with(small_model(3), "both", extra=("ACGTTGCA" * 16 + "A",))
    with pytest.raises(MachineError, match=r"129 bases.*at most 128.*backend='cpu'"):
        kernel_of(own)


@pytest.mark.slow
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", OLGA_MODELS)
def test_models_of_olga(host, name, given):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    own = problem_with(model, given, 12 if given == "none" else 40, 128 if name == "human_igh" else 64, 3)
    require_same(own, on_host(own), on_cpu(own))


@pytest.mark.slow
def test_a_missing_barrier_shows(host, monkeypatch):
    """Taken away one by one, each changes the counts in some order of the threads."""
    monkeypatch.setattr("hpcvdj.kernels.inference.expectation_cuda.ROWS_OF_A_TURN", 20)
    own = problem_with(small_model(2), "none")
    expected = on_host(own, 64)
    unseen = []
    for number in range(BARRIERS):
        host.change = fake_cupy.without_barrier(number)
        same = []
        for host.order in fake_cupy.ORDERS:
            with suppress(MachineError):
                same.append(np.array_equal(on_host(own, 64), expected))
        if len(same) == len(fake_cupy.ORDERS) and all(same):
            unseen.append(number)
    assert unseen == []


BARRIERS = 3
