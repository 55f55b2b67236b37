"""Likely sequencing errors in plain Python, and rows that are hard to tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpcvdj.kernels.neighbours.counted import CountedSequences
from hpcvdj.recombination.alphabet import encode, pack

LENGTHS = [(1, 4), (3, 7), (8, 12), (30, 35), (62, 67), (120, 128)]
"""From the shortest; around the ends of words of 32 bases; up to the longest."""

READS = (1, 2, 3, 19, 20, 21, 39, 40, 399, 400, 401, 800, 7_999, 8_000, 8_001, 16_000)
"""Around 20, 400 and 8,000 times one read and two."""

Row = tuple[str, int, int, int]
"""Junction, pair, individual and reads."""


def likely_error(row: Row, rows: Sequence[Row]) -> bool:
    """Whether a row is a likely sequencing error of one of `rows`, by the definition in docs/enrich.md."""
    text, pair, individual, reads = row
    for other, other_pair, other_individual, other_reads in rows:
        if other_individual != individual:
            continue
        if len(other) == len(text):
            exchanged = sum(a != b for a, b in zip(text, other, strict=True))
            if 1 <= exchanged <= 3 and other_reads >= 20**exchanged * reads:
                return True
        elif len(text) % 3 > 0 and len(other) % 3 == 0 and other_pair == pair and other_reads > reads:
            longer, shorter = sorted((text, other), key=len, reverse=True)
            if shorter in (longer[:k] + longer[k + 1 :] for k in range(len(longer))):
                return True
    return False


def similar_texts(rng: np.random.Generator, number: int, shortest: int, longest: int) -> list[str]:
    """Random sequences that are equal to one another, or a few exchanged, inserted or deleted bases apart."""
    roots = ["".join(rng.choice(list("ACGT"), rng.integers(shortest, longest + 1))) for _ in range(4)]
    roots += ["A" * longest, "AC" * (longest // 2), "A" * shortest]
    out = []
    for _ in range(number):
        text = roots[rng.integers(len(roots))]
        for edit in rng.choice(["exchange", "exchange", "exchange", "insert", "delete"], rng.integers(0, 5)):
            place, base = int(rng.integers(0, len(text))), "ACGT"[rng.integers(4)]
            text = text[:place] + base * (edit != "delete") + text[place + (edit != "insert") :]
            text = text[:128] or "C"
        out.append(text)
    return out


def similar_rows(seed: int, number: int, shortest: int, longest: int) -> list[Row]:
    """Rows of three individuals, with two V–J pairs."""
    rng = np.random.default_rng(seed)
    texts = similar_texts(rng, number, shortest, longest)
    columns = rng.integers(0, 2, number), rng.integers(0, 3, number), rng.choice(READS, number)
    return list(zip(texts, *(column.tolist() for column in columns), strict=True))


def packed(texts: Sequence[str], words: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Words uint64 [texts, words] and lengths uint8 [texts]."""
    found = np.array([pack(encode(text), words) for text in texts], dtype=np.uint64)
    return found.reshape(-1, words), np.array([len(text) for text in texts], dtype=np.uint8)


def counted(rows: Sequence[Row], words: int = 4) -> tuple[CountedSequences, np.ndarray]:
    """The rows as the kernels take them, and their pairs."""
    numbers = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 3)
    return CountedSequences(*packed([row[0] for row in rows], words), numbers[:, 2], numbers[:, 1]), numbers[:, 0]
