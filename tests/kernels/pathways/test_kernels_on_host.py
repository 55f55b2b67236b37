"""The CUDA backend executed on the CPU, against the reference: logic that a machine without a GPU can check.

g++ compiles the kernels (tests/kernels/host); their host code runs unchanged on a stand-in for cupy.  What only a
GPU shows (memory models, speed, its compiler) is for tests/gpu.
"""

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcvdj.counting.verify import reference
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.germline import from_sequences, read_germline
from hpcvdj.recombination.repertoire import Problem
from tests.conftest import SMALL, TABLES
from tests.gpu.test_kernels import random_rows
from tests.kernels.host import fake_cupy
from tests.problems import METHODS, cases, count_with, method_named, repertoire_of_file, repertoire_of_rows, sample

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")

SETTINGS = settings(
    max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def on_host(problem, method, **options):
    return count_with(problem, method, backend="cuda", **{"threads_per_block": 32, **options})


@pytest.mark.parametrize("kind", ["paper", "distinct"])
@pytest.mark.parametrize("method", METHODS)
@SETTINGS
@given(case=cases(), ranks=st.integers(1, 4), order=st.sampled_from(list(fake_cupy.ORDERS)))
def test_random_and_hostile_problems(cuda_on_host, method, kind, case, ranks, order):
    cuda_on_host.order = order
    problem = case.problem(3, kind)
    assert on_host(problem, method, ranks=ranks).tolist() == reference(problem).tolist()


@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@pytest.mark.parametrize("threads", [32, 64, 128])
@pytest.mark.parametrize("method", METHODS)
def test_blocks_and_tiles(cuda_on_host, paper_germline, method, threads, order):
    """Pairs of one sequence, and one of several tiles."""
    cuda_on_host.order = order
    rows = random_rows(paper_germline, 8, 40, 1)
    v, j, _ = rows[0]
    rows += [(v, j, text) for _, _, text in random_rows(paper_germline, 80, 40, 2)]
    problem = Problem(repertoire_of_rows(paper_germline, rows, longest=60), paper_germline, 1)
    assert np.array_equal(on_host(problem, method, threads_per_block=threads), count_with(problem, "direct"))


@pytest.mark.slow_others
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_locus_and_length(cuda_on_host, path):
    germline = read_germline(path)
    problem = Problem(repertoire_of_rows(germline, random_rows(germline, 140, 128, 7)), germline, 128)
    assert np.array_equal(on_host(problem, "direct"), count_with(problem, "direct"))
    short = repertoire_of_rows(germline, random_rows(germline, 12, 60, 8), longest=60)
    for method in ("bitwise", "baseline"):
        problem = Problem(short, germline, 1)
        assert np.array_equal(on_host(problem, method), count_with(problem, "direct"))


@pytest.mark.slow
def test_d_forms_that_take_several_loads_of_constant_memory(cuda_on_host, paper_germline, monkeypatch):
    from hpcvdj.kernels.pathways.enumerating_cuda import BaselineKernel, BitwiseKernel

    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    problem = Problem(sample(whole, 12), paper_germline, 2)
    for kernel, method in ((BitwiseKernel, "bitwise"), (BaselineKernel, "baseline")):
        monkeypatch.setitem(kernel.constants, "MOST_D_FORMS", 100)
        assert np.array_equal(on_host(problem, method), reference(problem))


def test_a_grid_of_more_tiles_than_fit(cuda_on_host, paper_germline, monkeypatch):
    monkeypatch.setattr("hpcvdj.kernels.pathways.enumerating_cuda.MOST_GRID_Y", 3)
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    problem = Problem(sample(whole, 20), paper_germline, 1)
    for method in ("bitwise", "baseline"):
        assert np.array_equal(on_host(problem, method), reference(problem))


def test_two_units_under_way_at_a_time(cuda_on_host, paper_germline):
    """The counters of a unit stay while the next is started."""
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    problem = Problem(sample(whole, 30), paper_germline, 1)
    for method in METHODS:
        chosen = method_named(method)
        kernel = open_backend("cuda").load(chosen, problem, 32)
        units = list(chosen.units(problem, 40, range(problem.columns)))
        expected = count_with(problem, "direct")
        before = kernel.start(units[0], 0, units[0].tasks)
        for last, unit in zip(units, [*units[1:], None], strict=True):
            after = kernel.start(unit, 0, unit.tasks) if unit else None
            rows, columns = slice(last.rows.start, last.rows.stop), slice(last.n_lengths.start, last.n_lengths.stop)
            assert np.array_equal(before(), expected[rows, columns])
            before = after


@pytest.mark.parametrize("method", METHODS)
def test_page_locked_memory_comes_in_few_sizes(cuda_on_host, paper_germline, method, monkeypatch):
    """cupy gives none of it back, and uses it again for arrays of the very same size only."""
    cuda, asked = sys.modules["cupy"].cuda, []
    monkeypatch.setattr(cuda, "alloc_pinned_memory", lambda size: asked.append(size) or bytearray(size))
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    for count in range(33, 65):
        problem = Problem(sample(whole, count), paper_germline, 0)
        assert np.array_equal(on_host(problem, method), count_with(problem, "direct"))
    assert len(asked) >= 32
    assert len(set(asked)) <= 2


@pytest.mark.parametrize("method", METHODS)
def test_a_gpu_that_falls_off_is_one_line(cuda_on_host, paper_germline, method, monkeypatch):
    from hpcvdj.errors import MachineError

    def lost(self):
        raise fake_cupy.CUDAError("cudaErrorDevicesUnavailable")

    monkeypatch.setattr(fake_cupy._Event, "synchronize", lost)
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    with pytest.raises(MachineError, match=r"the GPU failed \(cudaErrorDevicesUnavailable\): check it with nvidia-smi"):
        on_host(Problem(sample(whole, 5), paper_germline, 1), method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_missing_barrier_shows(cuda_on_host, method):
    """Taken away one by one, each changes the counters in some order of the threads."""
    germline = from_sequences(["ACGTAC"], ["GGGACA", "TT"], ["TTGCA"], max_p=2)
    rows = [("V1", "J1", "ACGT" + "ACGT"[k % 4] * (k % 5) + "GGAC" + "TGCA") for k in range(40)]
    problem = Problem(repertoire_of_rows(germline, rows), germline, 3)
    expected = reference(problem)
    unseen = []
    for barrier in range(BARRIERS[method]):
        cuda_on_host.change = fake_cupy.without_barrier(barrier)
        same = []
        for order in fake_cupy.ORDERS:
            cuda_on_host.order = order
            same.append(np.array_equal(on_host(problem, method, threads_per_block=64), expected))
        if all(same):
            unseen.append(barrier)
    assert unseen == UNSEEN[method]


BARRIERS = {"direct": 2, "bitwise": 7, "baseline": 3}

UNSEEN: dict[str, list[int]] = {"direct": [], "bitwise": [0, 3], "baseline": []}
"""The first is implied by the one after it; without the fourth only a stale head that agrees in 16 bases would show."""
