"""hpcvdj.studies: what is measured is what is counted and rendered, and differing totals are called out."""

import math
from dataclasses import replace

import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference, sample
from hpcvdj.errors import InputError, MachineError
from hpcvdj.kernels.pathways.methods import METHODS, Problem
from hpcvdj.runs.ranks import World
from hpcvdj.repertoires.junctions import read_repertoire
from hpcvdj.studies import blocks, measuring, memory, methods, pairs, renderer, scaling
from tests.conftest import SMALL
from tests.problems import count_with


@pytest.fixture(scope="module")
def problem(paper_germline):
    whole = read_repertoire(SMALL, paper_germline, longest=60)
    return Problem(sample(whole, 20, 1, 60), paper_germline, 1)


def measured(problem, method="bitwise", threads=64, **options):
    config = Config(1, method, "cpu", threads_per_block=threads)
    return measuring.measure(problem, config, World(), [0, 1], repeats=2, of=500, **options)


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


def test_a_long_pass_is_measured_in_part(paper_germline, problem, monkeypatch):
    """The part is the first block range, its pathways those of its strings alone."""
    config = Config(4, "bitwise", "cpu", threads_per_block=4)
    some = Problem(sample(problem.repertoire, 5, 1, 60), paper_germline, 4)
    rows = measuring.measure(some, config, World(), [3, 4], repeats=1, of=5, longest=1e-9)
    assert [row.parts for row in rows] == [1, 4]  # 64 blocks of 4 strings, 16 of them stay
    part = some.repertoire
    assert rows[1].scaled == 4 * rows[1].wall
    whole = count_with(Problem(part, paper_germline, 4), "bitwise")[:, 4].sum()
    assert 0 < rows[1].pathways < whole
    assert not math.isclose(rows[1].wall, rows[1].scaled)


def test_raw_rows_read_back_and_render(problem, tmp_path):
    pytest.importorskip("matplotlib")
    one = measured(problem)
    two = [replace(row, ranks=2, wall=row.wall / 2) for row in one]
    measuring.write(one, tmp_path, "bitwise-1", {"study": "scaling", "command": "hpcvdj measure: x", "date": "now"})
    measuring.write(two, tmp_path, "bitwise-2", {"study": "scaling", "command": "mpiexec -n 2", "date": "now"})
    rows, facts = measuring.read(tmp_path, measuring.Measurement)
    assert rows == one + two
    assert facts["raw-bitwise-1.csv"]["command"] == "hpcvdj measure: x"
    assert renderer(tmp_path) is scaling.render
    text = scaling.render(tmp_path)
    assert "totals identical for all rank counts" in text
    assert text.count("| 2.00 | 100.0 % |") == 2
    assert "20 of 500 sequences" in text
    assert (tmp_path / "scaling.png").stat().st_size > 1000


def test_the_methods_table(problem, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [row for method in METHODS for row in measured(problem, method)]
    rows = [replace(row, wall={"baseline": 6.0, "bitwise": 2.0, "direct": 0.5}[row.method]) for row in rows]
    rows = [replace(row, parts=8) if (row.method, row.m) == ("baseline", 1) else row for row in rows]
    measuring.write(rows, tmp_path, "methods-1", {"study": "methods"})
    text = renderer(tmp_path)(tmp_path)
    assert "identical for all methods" in text
    assert "| 0 | 6 | 2 | 3.00 | 0.5 | 8.36 | 9.16 | 0.91 |" in text
    assert "| 1 | 48 †1/8 | 2 | 24.00 | 0.5 |" in text
    assert "| **all** | 54 | 4 | 13.50 | 0.5 | 18.53 | 18.98 | 0.98 |" in text
    measuring.write([replace(rows[0], pathways=7), *rows[1:]], tmp_path, "methods-1", {"study": "methods"})
    assert "TOTALS DIFFER" in methods.render(tmp_path)


def test_the_block_sizes(problem, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [replace(row, wall=float(size)) for size in (32, 64) for row in measured(problem, threads=size)]
    measuring.write(rows, tmp_path, "blocks-1", {"study": "blocks"})
    text = renderer(tmp_path)(tmp_path)
    assert "**identical**" in text
    assert "| 0 | 32 (1.000) | 64 (2.000) |" in text
    assert blocks.PAPER_SIZES == (32, 64, 128, 256)


def test_the_pairs(problem, tmp_path):
    pytest.importorskip("matplotlib")
    rows = pairs.pair_rows(problem.repertoire)
    assert sum(row.sequences for row in rows) == 20
    for k, row in enumerate(rows):
        v, j = problem.repertoire.pairs[k]
        assert (row.v_call, row.j_call) == (v.allele, j.allele)
    measuring.write(rows, tmp_path, "pairs", {"study": "pairs"})
    assert f"20 sequences in {len(rows)} pairs" in renderer(tmp_path)(tmp_path)


def test_the_memory_table_needs_a_gpu_but_its_bases_do_not(paper_germline, problem, tmp_path):
    from hpcvdj.kernels.backends import open_backend

    with pytest.raises(MachineError, match="hpcvdj forms"):
        memory.memory_rows(problem, open_backend("cpu"))
    whole = read_repertoire(SMALL, paper_germline, longest=60)
    forms = memory._used_forms(Problem(whole, paper_germline, 0))
    expected = memory.forms_tables(paper_germline)[0]
    assert len(forms["D"]) == expected.forms("D")
    assert len(forms["V"]) <= expected.forms("V")
    rows = [memory.MemoryRow("V", 362, 3107, 913, 64 * 362, 16 * 362)]
    measuring.write(rows, tmp_path, "memory", {"study": "memory"})
    assert "| V | 362 | 3,107 | 913 | 70.61 % | 23,168 | 5,792 | 75.00 % | 1,448 | 425 |" in renderer(tmp_path)(
        tmp_path
    )


def test_totals_that_differ_are_called_out(problem):
    rows = measured(problem)
    assert measuring.totals_identical(rows)
    other = replace(rows[0], ranks=2, pathways=rows[0].pathways + 1)
    assert not measuring.totals_identical([*rows, other])
    assert measuring.totals_identical([*rows, replace(other, parts=2)])  # other strings


def test_nothing_to_render(tmp_path):
    with pytest.raises(InputError, match=r"no raw-\*.csv"):
        measuring.read(tmp_path, measuring.Measurement)
    with pytest.raises(InputError, match="no such folder"):
        measuring.read(tmp_path / "none", measuring.Measurement)
    with pytest.raises(InputError, match="of one study"):
        renderer(tmp_path)
    (tmp_path / "raw-x.csv").write_text("# study: scaling\nmethod,ranks\nbitwise,1\n")
    with pytest.raises(InputError, match="not raw rows of this study"):
        measuring.read(tmp_path, measuring.Measurement)
