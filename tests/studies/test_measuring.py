"""hpcvdj.studies: what is measured is what the reference counts, and a part is the first of equal block ranges."""

from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.errors import MachineError
from hpcvdj.kernels.backends import open_backend
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.run import Run
from hpcvdj.studies import memory, throughput
from hpcvdj.studies.measuring import SAME_PATHWAYS, Methods, first_part, measure
from hpcvdj.studies.pairs import pair_rows
from hpcvdj.studies.tables import same
from hpcvdj.studies.throughput import PackedSet
from tests.conftest import SMALL
from tests.kernels.host import fake_cupy
from tests.problems import METHODS, count_with, method_named, repertoire_of_file, sample


@pytest.fixture(scope="module")
def problem(paper_germline):
    return Problem(sample(repertoire_of_file(SMALL, paper_germline, PAPER_LONGEST_CDR3), 20), paper_germline, 1)


@pytest.fixture(scope="module")
def small_problem(paper_germline):
    """Five sequences, n-lengths to 4."""
    return Problem(sample(repertoire_of_file(SMALL, paper_germline, PAPER_LONGEST_CDR3), 5), paper_germline, 4)


def measured(problem, method="bitwise", threads=64):
    return measure(
        problem, 500, Config(max_n=1, method=method, backend="cpu", threads_per_block=threads), Run(), range(2), 2
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_measurement_counts_what_the_reference_counts(problem, method):
    rows = measured(problem, method)
    expected = reference(problem).sum(axis=0)
    assert [(row.m, row.repeat, row.pathways) for row in rows] == [
        (m, repeat, int(expected[m])) for m in (0, 1) for repeat in (0, 1)
    ]
    for row in rows:
        assert 0 < row.kernel <= row.wall == row.scaled
        assert (row.ranks, row.sequences, row.of, row.parts) == (1, 20, 500, 1)


def test_a_long_pass_is_measured_in_part(small_problem):
    config = Config(max_n=4, method="bitwise", backend="cpu", threads_per_block=4)
    rows = measure(small_problem, 5, config, Run(), range(3, 5), 1, longest=1e-9)
    assert [row.parts for row in rows] == [1, 4]  # of 64 blocks of 4 strings, 16 are measured
    assert rows[1].scaled == 4 * rows[1].wall
    assert 0 < rows[1].pathways < count_with(small_problem, "bitwise")[:, 4].sum()
    assert rows[1].pathways == count_of_ranges(small_problem, 4, 4, range(1), 4)


def count_of_ranges(problem, m, threads, ranks, all_ranks):
    """Pathways of the block ranges of some ranks of all."""
    backend, method = open_backend("cpu"), method_named("bitwise")
    kernel = backend.load(method, problem, threads)
    units = [u for u in method.units(problem, backend.unit_work, range(problem.columns)) if m in u.n_lengths]
    ranges = [(unit, block_range(unit.tasks, threads, rank, all_ranks)) for unit in units for rank in ranks]
    return sum(int(kernel(unit, *tasks).sum()) for unit, tasks in ranges)


@pytest.mark.parametrize(("ranks", "parts", "threads"), [(1, 1, 4), (1, 4, 4), (2, 4, 8), (3, 2, 7), (4, 64, 64)])
def test_a_part_has_the_strings_of_the_first_block_ranges(small_problem, ranks, parts, threads):
    """As if there were `parts` times as many ranks, of which the first `ranks` count."""
    backend, method = open_backend("cpu"), method_named("bitwise")
    kernel = backend.load(method, small_problem, threads)
    total = 0
    for unit in method.units(small_problem, backend.unit_work, range(4, 5)):
        part = first_part(unit, parts, threads, ranks)
        for rank in range(ranks):
            tasks = block_range(part.tasks, threads, rank, ranks)
            assert tasks == block_range(unit.tasks, threads, rank, ranks * parts)
            total += int(kernel(part, *tasks).sum())
    assert total == count_of_ranges(small_problem, 4, threads, range(ranks), ranks * parts)


def test_pathways_are_compared_for_the_same_strings(problem):
    rows = measured(problem)
    assert same(rows, *SAME_PATHWAYS)
    other = replace(rows[0], ranks=2, pathways=rows[0].pathways + 1)
    assert not same([*rows, other], *SAME_PATHWAYS)
    assert same([*rows, replace(other, parts=2)], *SAME_PATHWAYS)


def test_the_methods_table_by_hand(problem):
    rows = measured(problem)
    seconds = {"baseline": 6.0, "bitwise": 2.0, "direct": 0.5}
    rows = [replace(row, method=method, wall=wall) for method, wall in seconds.items() for row in rows]
    rows = [replace(row, parts=8) if (row.method, row.m) == ("baseline", 1) else row for row in rows]
    text = "\n".join(map(str, Methods().page(rows)))
    assert "| 0 | 6 | 2 | 3.00 | 0.5 | 8.36 | 9.16 | 0.91 |" in text
    assert "| 1 | 48 †1/8 | 2 | 24.00 | 0.5 |" in text
    assert "| **all** | 54 | 4 | 13.50 | 0.5 | 18.53 | 18.98 | 0.98 |" in text
    text = "\n".join(map(str, Methods().page([row for row in rows if (row.method, row.m) != ("bitwise", 1)])))
    assert "| **all** | 54 | - | - | 0.5 |" in text
    assert "| 11 | - | 2 | - | - | - | - | - |" in "\n".join(map(str, Methods().page([*rows, replace(rows[4], m=11)])))


def test_the_pairs(problem):
    rows = pair_rows(problem.repertoire)
    assert sum(row.sequences for row in rows) == 20
    for row, (v, j) in zip(rows, problem.repertoire.pairs, strict=True):
        assert (row.v_call, row.j_call) == (v.allele, j.allele)


def test_the_memory_table_needs_a_gpu_but_its_bases_do_not(paper_germline, problem):
    with pytest.raises(MachineError, match="hpcvdj study forms"):
        memory.memory_rows(problem, open_backend("cpu"))
    complete = repertoire_of_file(SMALL, paper_germline)
    used = {row.segment_type: row.forms for row in memory.used_forms(Problem(complete, paper_germline, 0))}
    expected = {row.segment_type: row.forms for row in memory.forms_tables(paper_germline)["TRB"]}
    assert used["D"] == expected["D"]
    assert used["V"] <= expected["V"]
    text = "\n".join(map(str, memory.Memory().page([memory.MemoryRow("V", 362, 3107, 913, 64 * 362, 16 * 362)])))
    assert "| V | 362 | 3,107 | 913 | 70.61 % | 23,168 | 5,792 | 75.00 % | 1,448 | 425 |" in text


def test_parts_are_exact_counts(small_problem):
    """All parts together have the pathways of all strings."""
    ranges = [count_of_ranges(small_problem, 4, 4, range(rank, rank + 1), 4) for rank in range(4)]
    assert sum(ranges) == int(np.asarray(count_with(small_problem, "bitwise"))[:, 4].sum())


@pytest.mark.slow
@pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")
def test_measuring_on_a_gpu(problem, paper_germline, kernels, monkeypatch):
    """On the stand-in: the GPU's clock, and what is uploaded."""
    with fake_cupy.Fake(kernels).installed(monkeypatch):
        import cupy

        monkeypatch.setattr(cupy.cuda, "get_elapsed_time", lambda start, end: 1000.0)
        config = Config(max_n=1, method="bitwise", backend="cuda", threads_per_block=32)
        (row,) = measure(problem, 20, config, Run(), range(1, 2), 1)
        uploaded = memory.memory_rows(problem, open_backend("cuda"))
        (counted,) = throughput.measure(PackedSet(paper_germline, 200, 1), Config(max_n=2, backend="cuda"), Run(), 1)
    assert row.pathways == int(reference(problem).sum(axis=0)[1])
    assert row.device_max == row.device_min >= 1.0
    assert row.hardware == counted.hardware == "host"
    assert counted.device >= 1.0
    assert (
        counted.pathways == throughput.measure(PackedSet(paper_germline, 200, 1), Config(max_n=2), Run(), 1)[0].pathways
    )
    for line in uploaded:
        assert line.baseline_uploaded == (60 if line.kind == "D" else 64) * line.items
        assert line.bitwise_uploaded == 16 * line.items
