"""hpcvdj.studies.throughput: rows that depend on their number alone, counted in any batches."""

from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.verify import reference
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.runs.run import Run
from hpcvdj.studies import throughput
from hpcvdj.studies.throughput import PackedSet
from tests.conftest import TABLES
from tests.problems import count_with


def test_rows_do_not_depend_on_who_makes_them(paper_germline):
    junctions = PackedSet(paper_germline, 10_000, 3)
    assert len(junctions) == 10_000
    rows = junctions.rows(0, 10_000)
    for first, last in ((0, 1), (17, 5_000), (9_999, 10_000), (400, 400)):
        part = junctions.rows(first, last)
        assert np.array_equal(part.words, rows.words[first:last])
        assert np.array_equal(part.lengths, rows.lengths[first:last])
        assert int(part.offsets[-1]) == last - first
    other = PackedSet(paper_germline, 10_000, 4).rows(0, 10_000)
    assert (other.words == rows.words).all(axis=1).mean() < 0.05


def test_most_rows_differ_from_each_other(paper_germline):
    rows = PackedSet(paper_germline, 50_000, 1).rows(0, 50_000)
    assert len(np.unique(rows.words, axis=0)) > 45_000
    assert rows.longest <= 60


@pytest.mark.slow
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_row_is_a_recombination_of_its_pair(path):
    germline = read_germline(path)
    junctions = PackedSet(germline, 3_000, 5)
    counters = count_with(Problem(junctions.rows(0, 3_000), germline, 10), "direct")
    assert (counters.sum(axis=1) > 0).all()
    few = junctions.rows(100, 110)
    assert np.array_equal(reference(Problem(few, germline, 3)), counters[100:110, :4])


def test_a_set_has_always_the_same_pathways(paper_germline, monkeypatch):
    """The raw rows under results/ can be measured again; batches do not change what is counted."""
    rows = throughput.measure(PackedSet(paper_germline, 2_000, 1), Config(max_n=10, backend="cpu"), Run(), repeats=1)
    assert [row.pathways for row in rows] == [8_537_794]
    monkeypatch.setattr(throughput, "BATCH", 300)
    rows = throughput.measure(PackedSet(paper_germline, 2_000, 1), Config(max_n=10, backend="cpu"), Run(), repeats=2)
    assert [row.pathways for row in rows] == [8_537_794] * 2
    assert all(row.wall > 0 and row.make > 0 for row in rows)
    rows += [replace(row, ranks=2, count=row.count / 2, wall=row.wall / 2) for row in rows]
    text = "\n".join(map(str, throughput.Throughput().page(rows)))
    assert "totals identical for all rank counts" in text
    assert text.count("| 2.00 |") == 2
