"""hpcvdj.kernels.neighbours against comparisons of all pairs."""

import numpy as np
import pytest

from hpcvdj.kernels.neighbours import equal
from hpcvdj.kernels.neighbours.degrees_cpu import degrees, near_a_larger_one
from hpcvdj.kernels.neighbours.equal import grouped
from hpcvdj.recombination.alphabet import encode, pack


def random_clonotypes(seed, rows, letters="AC", longest=6, classes=3):
    """Different clonotypes, many of them near others."""
    rng = np.random.default_rng(seed)
    found = {
        (rng.integers(classes), "".join(rng.choice(list(letters), rng.integers(1, longest + 1)))) for _ in range(rows)
    }
    kinds, texts = zip(*rng.permutation(sorted(found)), strict=True)
    out = np.zeros((len(texts), 8), dtype=np.uint8)
    for row, text in enumerate(texts):
        out[row, : len(text)] = list(text.encode())
    weights = rng.integers(0, 5, (len(texts), 2))
    return texts, out, np.array([len(text) for text in texts]), np.array(kinds, dtype=np.int64), weights


def near(a, b, most=1):
    return len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) <= most


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rows", "letters"), [(1, "A"), (60, "AC"), (300, "ACDEFG")])
def test_degrees_are_those_of_all_pairs(seed, rows, letters):
    texts, packed, lengths, kinds, weights = random_clonotypes(seed, rows, letters)
    expected = [
        sum(weights[k] for k in range(len(texts)) if kinds[k] == kinds[row] and near(texts[k], texts[row]))
        for row in range(len(texts))
    ]
    np.testing.assert_array_equal(degrees(packed, lengths, kinds, weights), expected)


def test_no_clonotype():
    assert degrees(
        np.zeros((0, 8), np.uint8), *(np.zeros(0, np.int64) for _ in range(2)), np.zeros((0, 1), np.int64)
    ).shape == (0, 1)


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
