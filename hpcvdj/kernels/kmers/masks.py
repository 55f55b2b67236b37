"""Masks of positions of a k-mer, tables of k-mers by them, and the relation between exact and raw counters.

A mask has two set bits for each position that must agree, as the keys of k-mers have two bits a base.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import comb
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.kmers import MAX_D

Counter = TypeVar("Counter", np.uint32, np.uint64)

HASH_FACTOR = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: Knuth's multiplicative hash (TAOCP 3, section 6.4)."""


def position(k: int, p: int, bits: int = 2) -> int:
    """The bits of position p (0: the first base)."""
    return (1 << bits) - 1 << bits * (k - 1 - p)


def wildcard_masks(k: int, m: int, bits: int = 2) -> list[int]:
    """The C(k, m) masks with m wildcards, wildcards in lexicographic order (the thesis, section 2.b), of `bits` a base.

    Sub-table 0 of distance 1 has its wildcard in the first position.

    >>> [f"{mask:06b}" for mask in wildcard_masks(3, 1)]
    ['001111', '110011', '111100']
    """
    every = (1 << bits * k) - 1
    return [every - sum(position(k, p, bits) for p in chosen) for chosen in combinations(range(k), m)]


def block_masks(k: int, blocks: int) -> list[int]:
    """The masks of `blocks` runs of positions of about equal length, which together are all k positions.

    >>> [f"{mask:06b}" for mask in block_masks(3, 2)]
    ['110000', '001111']
    """
    edges = [p * k // blocks for p in range(blocks + 1)]
    return [sum(position(k, p) for p in range(a, b)) for a, b in pairwise(edges)]


def fields(mask: int) -> list[tuple[int, int, int]]:
    """(right, kept, left) for each run of kept positions: `(key >> right & kept) << left` closes the gaps.

    >>> [(right, f"{kept:b}", left) for right, kept, left in fields(0b110011)]
    [(0, '11', 0), (4, '11', 2)]
    """
    runs, left = [], 0
    while mask:
        right = (mask & -mask).bit_length() - 1
        run = mask >> right
        width = (~run & run + 1).bit_length() - 1
        runs.append((right, (1 << width) - 1, left))
        left += width
        mask &= ~(((1 << width) - 1) << right)
    return runs


@dataclass(frozen=True)
class JoinTables:
    """Tables of k-mers by some of their positions.

    A table finds the pairs of k-mers within distance d that agree on the positions of its mask.

    masks     the positions of each table
    left_out  uint64 [tables, MAX_D]: the runs of positions that it leaves out, zeros if there are fewer
    counts    uint32 [tables, 2^MAX_D]: 1 if it counts a pair, by the runs of `left_out` on which the pair differs:
              bit u of the index for run u
    plane     int64 [tables]: the counter that a table adds to; None if the distance of each pair says it
    """

    masks: list[int]
    left_out: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    plane: NDArray[np.int64] | None


def pigeonhole_tables(k: int, d: int, blocks: int) -> JoinTables:
    """Tables that keep all but d of `blocks` runs; each pair is counted, as D, by the first table that finds it.

    Two k-mers within distance d agree on all but d runs at least.
    """
    runs = block_masks(k, blocks)
    left_out = list(combinations(range(blocks), d))
    masks_out = np.zeros((len(left_out), MAX_D), dtype=np.uint64)
    counts = np.zeros((len(left_out), 1 << MAX_D), dtype=np.uint32)
    for t, out in enumerate(left_out):
        masks_out[t, :d] = [runs[r] for r in out]
        for pattern in range(1 << d):
            differing = [r for u, r in enumerate(out) if pattern >> u & 1]
            # The first table that leaves out the runs on which a pair differs leaves out the first others.
            others = [r for r in range(blocks) if r not in differing][: d - len(differing)]
            counts[t, pattern] = sorted(differing + others) == list(out)
    masks = [sum(runs) - sum(runs[r] for r in out) for out in left_out]
    return JoinTables(masks, masks_out, counts, None)


def index_tables(k: int, d: int) -> JoinTables:
    """A table for each wildcard configuration; each counts all pairs that it finds, as R."""
    masks = [wildcard_masks(k, m) for m in range(d + 1)]
    distances = np.repeat(np.arange(d + 1), [len(of_distance) for of_distance in masks])
    flat = [mask for of_distance in masks for mask in of_distance]
    return JoinTables(
        flat,
        np.zeros((len(flat), MAX_D), dtype=np.uint64),
        np.ones((len(flat), 1 << MAX_D), dtype=np.uint32),
        distances,
    )


def neighbours(k: int, d: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """What turns a k-mer into each k-mer within distance d by XOR, and the distance of each, by distance."""
    differences = [(0, 0)]
    for h in range(1, d + 1):
        for chosen in combinations(range(k), h):
            changes = [[position(k, p) & 0x5555555555555555 * change for change in (1, 2, 3)] for p in chosen]
            differences += [(sum(change), h) for change in product(*changes)]
    return np.array([x for x, _ in differences], dtype=np.uint64), np.array([h for _, h in differences])


def raw_from_exact(exact: NDArray[Counter], k: int) -> NDArray[Counter]:
    """R [d + 1, …] of D [d + 1, …]: R_m = sum over h ≤ m of C(k - h, m - h) D_h."""
    return _combine(exact, k, 1)


def exact_from_raw(raw: NDArray[Counter], k: int) -> NDArray[Counter]:
    """D [d + 1, …] of R [d + 1, …]: D_m = sum over h ≤ m of (-1)^(m - h) C(k - h, m - h) R_h.

    In arithmetic modulo 2^bits of the type: intermediate values may wrap, and the result is right if D fits.

    >>> exact_from_raw(np.array([1, 12, 70], dtype=np.uint64), 12).tolist()
    [1, 0, 4]
    """
    return _combine(raw, k, -1)


def _combine(planes: NDArray[Counter], k: int, sign: int) -> NDArray[Counter]:
    combined = planes * 0
    modulus = 1 << 8 * planes.dtype.itemsize
    with np.errstate(over="ignore"):
        for m in range(len(planes)):
            for h in range(m + 1):
                combined[m] += planes[h] * planes.dtype.type(sign ** (m - h) * comb(k - h, m - h) % modulus)
    return combined
