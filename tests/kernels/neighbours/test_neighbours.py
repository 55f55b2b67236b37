"""hpcvdj.kernels.neighbours against comparisons of all pairs."""

import numpy as np
import pytest

from hpcvdj.kernels.neighbours import equal
from hpcvdj.kernels.neighbours.blocks import blocks, sort_blocks
from hpcvdj.kernels.neighbours.degrees_cpu import degrees, near_a_larger_one
from hpcvdj.kernels.neighbours.equal import grouped
from hpcvdj.recombination.alphabet import encode, pack
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


def test_blocks_keep_the_order_of_rows_and_copy_nothing_without_need():
    rng = np.random.default_rng(1)
    lengths, classes = rng.integers(0, 4, 200), rng.integers(0, 5, 200)
    order, starts = blocks(lengths, classes)
    expected = sorted(range(200), key=lambda row: (classes[row], lengths[row], row))
    assert order.tolist() == expected
    keys = np.stack([classes, lengths], 1)[order]
    assert starts.tolist() == [0, *(np.flatnonzero((np.diff(keys, axis=0) != 0).any(axis=1)) + 1), 200]
    again, same = blocks(lengths[order], classes[order])
    assert again == slice(None)
    assert same.tolist() == starts.tolist()


@pytest.mark.parametrize("columns", [1, 3])
def test_blocks_are_sorted_by_all_words(columns):
    rng = np.random.default_rng(2)
    words = rng.integers(0, 3, (300, columns)).astype(np.uint64) << np.uint64(62)
    starts = np.array([0, 1, 1, 90, 300])
    order = sort_blocks(words, starts)
    for first, stop in zip(starts, starts[1:], strict=False):
        expected = sorted(range(first, stop), key=lambda row: (*words[row].tolist(), row))
        assert order[first:stop].tolist() == expected


@pytest.mark.parametrize("collide", [False, True])
def test_groups_are_those_of_numpy(monkeypatch, collide):
    rows = np.random.default_rng(5).integers(0, 3, (500, 3)).astype(np.uint64)
    if collide:
        monkeypatch.setattr(equal, "_row_hashes", lambda rows, out: out.fill(7))
    first, group = grouped(rows)
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(rows[first][group], rows)
    assert len(first) == len(np.unique(rows, axis=0))
    assert grouped(rows[:0])[0].tolist() == []


@pytest.mark.parametrize("seed", range(3))
def test_larger_ones_nearby(seed):
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("ACGT"), 3 * rng.integers(10, 13))) for _ in range(6)]
    for base in texts[:6]:
        for changes in (0, 1, 2, 3, 4):
            letters = list(base)
            for place in rng.choice(len(base), changes, replace=False):
                letters[place] = "ACGT"["ACGT".index(letters[place]) - 1]
            texts.append("".join(letters))
    texts = sorted(set(texts), key=len)
    kinds = np.sort(rng.integers(0, 2, len(texts)))
    order = np.lexsort(([len(text) for text in texts], kinds))
    texts = [texts[k] for k in order]
    reads = rng.choice([1, 2, 9, 10, 20, 100], len(texts))
    words = np.array([pack(encode(text), 4) for text in texts], dtype=np.uint64)
    lengths = np.array([len(text) for text in texts])
    rows, larger, out = np.arange(len(texts)), np.flatnonzero(reads >= 10), np.empty(len(texts), dtype=bool)
    near_a_larger_one(words, lengths, kinds, reads, rows, larger, 10, out)
    expected = [
        any(kinds[k] == kinds[row] and near(texts[k], texts[row], 2) and reads[k] >= 10 * reads[row] for k in rows)
        for row in rows
    ]
    assert out.tolist() == expected
    assert any(expected)
    assert not all(expected)
