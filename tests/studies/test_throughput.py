"""hpcvdj.studies.packed and throughput: rows that depend on their number alone, counted in any batches."""

from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.kernels.pathways.methods import Problem
from hpcvdj.runs.ranks import World
from hpcvdj.recombination.germline import read_germline
from hpcvdj.studies import measuring, renderer, throughput
from hpcvdj.studies.packed import PackedSet
from tests.conftest import TABLES
from tests.problems import count_with


def test_rows_do_not_depend_on_who_makes_them(paper_germline):
    made = PackedSet(paper_germline, 10_000, 3)
    whole = made.rows(0, 10_000)
    for first, last in ((0, 1), (17, 5_000), (9_999, 10_000), (400, 400)):
        part = made.rows(first, last)
        assert np.array_equal(part.words, whole.words[first:last])
        assert np.array_equal(part.lengths, whole.lengths[first:last])
        assert int(part.offsets[-1]) == last - first
    other = PackedSet(paper_germline, 10_000, 4).rows(0, 10_000)
    assert (other.words == whole.words).all(axis=1).mean() < 0.05


def test_most_rows_differ_from_each_other(paper_germline):
    rows = PackedSet(paper_germline, 50_000, 1).rows(0, 50_000)
    assert len(np.unique(rows.words, axis=0)) > 45_000
    assert rows.longest <= 60


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_row_is_a_recombination_of_its_pair(path):
    germline = read_germline(path)
    made = PackedSet(germline, 3_000, 5)
    problem = Problem(made.rows(0, 3_000), germline, 10)
    counted = count_with(problem, "direct")
    assert (counted.sum(axis=1) > 0).all()
    few = made.rows(100, 110)
    assert np.array_equal(reference(Problem(few, germline, 3)), counted[100:110, :4])


def test_batches_and_repeats_add_up(paper_germline, monkeypatch, tmp_path):
    config = Config(10, "direct", "cpu")
    whole = count_with(Problem(PackedSet(paper_germline, 1_000, 1).rows(0, 1_000), paper_germline, 10), "direct")
    monkeypatch.setattr(throughput, "BATCH", 300)
    rows = throughput.measure(paper_germline, 1_000, 1, config, World(), repeats=2)
    assert [row.pathways for row in rows] == [int(whole.sum())] * 2
    assert all(row.wall > 0 and row.make > 0 for row in rows)
    pytest.importorskip("matplotlib")
    rows += [replace(row, ranks=2, count=row.count / 2, wall=row.wall / 2) for row in rows]
    measuring.write(rows, tmp_path, "throughput", {"study": "throughput"})
    text = renderer(tmp_path)(tmp_path)
    assert "totals identical for all rank counts" in text
    assert text.count("| 2.00 |") == 2
