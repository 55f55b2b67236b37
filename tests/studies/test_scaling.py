"""hpcvdj.studies.scaling: what is measured is what is rendered, and differing totals are called out."""

from dataclasses import replace

import pytest

from hpcvdj.errors import InputError
from hpcvdj.methods import Problem
from hpcvdj.parallel import World
from hpcvdj.repertoire import read_repertoire
from hpcvdj.run import Config
from hpcvdj.studies import scaling
from hpcvdj.verify import reference, sample
from tests.conftest import SMALL


@pytest.fixture(scope="module")
def problem(paper_germline):
    whole = read_repertoire(SMALL, paper_germline, longest=60)
    return Problem(sample(whole, 20, 1, 60), paper_germline, 1)


def measured(problem, method="bitwise"):
    config = Config(1, method, "cpu")
    return scaling.measure(problem, config, World(), [0, 1], repeats=2, of=500)


def test_a_measurement_counts_what_the_reference_counts(problem):
    rows = measured(problem)
    expected = reference(problem).sum(axis=0)
    assert [(row.m, row.repeat, row.pathways) for row in rows] == [
        (m, repeat, int(expected[m])) for m in (0, 1) for repeat in (0, 1)
    ]
    for row in rows:
        assert 0 < row.kernel <= row.wall
        assert (row.ranks, row.sequences, row.of) == (1, 20, 500)


def test_direct_is_measured_over_all_n_lengths_at_once(problem):
    rows = measured(problem, "direct")
    assert [row.m for row in rows] == [-1, -1]
    assert rows[0].pathways == int(reference(problem).sum())


def test_raw_rows_read_back_and_render(problem, tmp_path):
    pytest.importorskip("matplotlib")
    one = measured(problem)
    two = [replace(row, ranks=2, wall=row.wall / 2) for row in one]
    scaling.write(one, tmp_path, "bitwise-1", {"command": "hpcvdj scaling measure: x", "date": "now"})
    scaling.write(two, tmp_path, "bitwise-2", {"command": "mpiexec -n 2", "date": "now"})
    rows, facts = scaling.read(tmp_path)
    assert rows == one + two
    assert facts["raw-bitwise-1.csv"]["command"] == "hpcvdj scaling measure: x"
    text = scaling.render(tmp_path)
    assert "totals identical for all rank counts" in text
    assert text.count("| 2.00 | 100.0 % |") == 2
    assert "20 of 500 sequences" in text
    assert (tmp_path / "scaling.png").stat().st_size > 1000


def test_totals_that_differ_are_called_out(problem):
    rows = measured(problem)
    assert scaling.totals_identical(rows)
    wrong = [*rows, replace(rows[0], ranks=2, pathways=rows[0].pathways + 1)]
    assert not scaling.totals_identical(wrong)


def test_nothing_to_render(tmp_path):
    with pytest.raises(InputError, match=r"no raw-\*.csv"):
        scaling.read(tmp_path)
