"""Clonotypes whose degrees the CPU kernel, the GPU kernel and comparisons of all pairs have to agree on."""

from __future__ import annotations

import numpy as np


def random_clonotypes(seed, rows, letters="AC", longest=6, classes=3):
    """Different clonotypes, many of them near others."""
    rng = np.random.default_rng(seed)
    found = {
        (rng.integers(classes), "".join(rng.choice(list(letters), rng.integers(1, longest + 1)))) for _ in range(rows)
    }
    kinds, texts = zip(*rng.permutation(sorted(found)), strict=True)
    out = np.zeros((len(texts), -(-longest // 8) * 8), dtype=np.uint8)
    for row, text in enumerate(texts):
        out[row, : len(text)] = list(text.encode())
    weights = rng.integers(0, 5, (len(texts), 2))
    return texts, out, np.array([len(text) for text in texts]), np.array(kinds, dtype=np.int64), weights


def random_arrays(seed, rows, length, letters, classes, kinds=1):
    """(letters, lengths, classes, weights) of different random sequences of one length, in no order."""
    rng = np.random.default_rng(seed)
    texts = np.unique(rng.integers(0, letters, (rows, length)).astype(np.uint8) + ord("A"), axis=0)
    texts = texts[rng.permutation(len(texts))]
    weights = rng.integers(0, 1 << 40, (len(texts), kinds))
    return texts, np.full(len(texts), length), rng.integers(0, classes, len(texts)), weights


def _empty():
    none = np.zeros(0, np.int64)
    return np.zeros((0, 8), np.uint8), none, none, np.zeros((0, 1), np.int64)


def _rubbish_behind():
    """Letters beyond a sequence's length do not count."""
    letters, lengths, classes, weights = random_arrays(3, 200, 6, 3, 2)
    rubbish = np.random.default_rng(4).integers(0, 256, (len(letters), 10)).astype(np.uint8)
    return np.concatenate([letters, rubbish], axis=1), lengths, classes, weights


def _any_bytes():
    """The smallest and the largest letters, and lengths from 0."""
    rng = np.random.default_rng(5)
    texts = sorted({bytes(rng.choice([0, 1, 254, 255], rng.integers(0, 6)).astype(np.uint8)) for _ in range(300)})
    letters = np.zeros((len(texts), 8), np.uint8)
    for row, text in enumerate(texts):
        letters[row, : len(text)] = list(text)
    lengths = np.array([len(text) for text in texts])
    return letters, lengths, np.zeros(len(texts), np.int64), rng.integers(0, 9, (len(texts), 1))


HOSTILE = {
    "none": _empty,
    "one": lambda: random_arrays(1, 1, 5, 20, 1),
    "all near each other": lambda: random_arrays(1, 300, 1, 200, 1, kinds=3),
    "a class for each": lambda: random_arrays(2, 200, 4, 5, 1 << 40),
    "one large block": lambda: random_arrays(6, 1500, 5, 6, 1),
    "long": lambda: random_arrays(7, 60, 80, 2, 1),
    "letters behind the end": _rubbish_behind,
    "any bytes": _any_bytes,
}
"""By name, what makes (letters, lengths, classes, weights)."""
