"""hpcvdj.kernels.neighbours against comparisons of all pairs."""

from itertools import pairwise

import numpy as np
import pytest

from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.neighbours.degrees_cpu import degrees
from tests.kernels.neighbours.cases import HOSTILE, random_clonotypes


def near(a, b, most=1):
    return len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) <= most


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rows", "letters"), [(1, "A"), (60, "AC"), (300, "ACDEFG")])
def test_degrees_are_those_of_all_pairs(seed, rows, letters):
    texts, *own = random_clonotypes(seed, rows, letters)
    kinds, weights = own[2:]
    expected = [
        sum(weights[k] for k in range(len(texts)) if kinds[k] == kinds[row] and near(texts[k], texts[row]))
        for row in range(len(texts))
    ]
    np.testing.assert_array_equal(degrees(*own), expected)


@pytest.mark.parametrize("name", HOSTILE)
def test_degrees_of_hostile_clonotypes(name):
    letters, lengths, kinds, weights = HOSTILE[name]()
    expected = np.zeros_like(weights)
    for row, length in enumerate(lengths):
        same = (kinds == kinds[row]) & (lengths == length)
        differences = (letters[:, :length] != letters[row, :length]).sum(axis=1)
        expected[row] = weights[same & (differences <= 1)].sum(axis=0)
    np.testing.assert_array_equal(degrees(letters, lengths, kinds, weights), expected)


@pytest.mark.parametrize("at_once", [7, 1 << 16])
@pytest.mark.parametrize("spread", [1, 10**6, -(10**6)])
def test_blocks_keep_the_order_of_rows_and_copy_nothing_without_need(spread, at_once, monkeypatch):
    """Few blocks are counted, of many possible ones sequences are sorted; threads compare a part of the rows each."""
    monkeypatch.setattr("hpcvdj.kernels.neighbours.blocks.TAKEN_AT_ONCE", at_once)
    rng = np.random.default_rng(1)
    lengths, classes = rng.integers(0, 4, 200), spread * rng.integers(-1, 5, 200)
    order, starts = blocks(lengths, classes)
    expected = sorted(range(200), key=lambda row: (classes[row], lengths[row], row))
    assert order.tolist() == expected
    keys = np.stack([classes, lengths], 1)[order]
    assert starts.tolist() == [0, *(np.flatnonzero((np.diff(keys, axis=0) != 0).any(axis=1)) + 1), 200]
    again, same = blocks(lengths[order], classes[order])
    assert again == slice(None)
    assert same.tolist() == starts.tolist()
    # In the order of classes, but not of lengths.
    mixed, borders = blocks(lengths, np.sort(classes))
    assert mixed.tolist() == sorted(range(200), key=lambda row: (np.sort(classes)[row], lengths[row], row))
    assert borders[-1] == 200
    nothing, borders = blocks(lengths[:0], classes[:0])
    assert nothing == slice(None)
    assert borders.tolist() == [0]


@pytest.mark.parametrize("columns", [1, 3])
def test_blocks_are_sorted_by_all_words(columns):
    rng = np.random.default_rng(2)
    words = rng.integers(0, 3, (300, columns)).astype(np.uint64) << np.uint64(62)
    starts = np.array([0, 1, 1, 90, 300])
    order, _ = equal_runs(words, starts)
    for first, stop in pairwise(starts):
        expected = sorted(range(first, stop), key=lambda row: (*words[row].tolist(), row))
        assert order[first:stop].tolist() == expected


def test_runs_of_equal_rows():
    words = np.random.default_rng(5).integers(0, 3, (500, 3)).astype(np.uint64)
    starts = np.array([0, 0, 7, 500])
    order, first = equal_runs(words, starts)
    assert len(first) == len(np.unique(words[:7], axis=0)) + len(np.unique(words[7:], axis=0))
    for run in np.split(order, first[1:]):
        assert (words[run] == words[run[0]]).all()
        assert (run < 7).all() or (run >= 7).all()
        assert (np.diff(run) > 0).all()
    assert [own.tolist() for own in equal_runs(words[:0], np.array([0]))] == [[], []]
