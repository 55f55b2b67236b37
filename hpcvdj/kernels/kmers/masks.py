"""Masks of positions of a k-mer, and the relation between exact and raw counters.

A mask has two set bits for each position that must agree, as the keys of k-mers have two bits a base.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise, product
from math import comb
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Counter = TypeVar("Counter", np.uint32, np.uint64)


def all_positions(k: int) -> int:
    """The mask that keeps all k positions."""
    return (1 << 2 * k) - 1


def position(k: int, p: int) -> int:
    """The two bits of position p (0: the first base)."""
    return 3 << 2 * (k - 1 - p)


def wildcard_masks(k: int, m: int) -> list[int]:
    """The C(k, m) masks with m wildcards, wildcards in lexicographic order (the thesis, section 2.b).

    Sub-table 0 of distance 1 has its wildcard in the first position.

    >>> [f"{mask:06b}" for mask in wildcard_masks(3, 1)]
    ['001111', '110011', '111100']
    """
    return [all_positions(k) - sum(position(k, p) for p in chosen) for chosen in combinations(range(k), m)]


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
    return _combine(exact, lambda m, h: comb(k - h, m - h))


def exact_from_raw(raw: NDArray[Counter], k: int) -> NDArray[Counter]:
    """D [d + 1, …] of R [d + 1, …]: D_m = sum over h ≤ m of (-1)^(m - h) C(k - h, m - h) R_h.

    In arithmetic modulo 2^bits of the type: intermediate values may wrap, and the result is right if D fits.

    >>> exact_from_raw(np.array([1, 12, 70], dtype=np.uint64), 12).tolist()
    [1, 0, 4]
    """
    return _combine(raw, lambda m, h: (-1) ** (m - h) * comb(k - h, m - h))


def _combine(planes: NDArray[Counter], weight: Callable[[int, int], int]) -> NDArray[Counter]:
    combined = planes * 0
    modulus = 1 << 8 * planes.dtype.itemsize
    with np.errstate(over="ignore"):
        for m in range(len(planes)):
            for h in range(m + 1):
                combined[m] += planes[h] * planes.dtype.type(weight(m, h) % modulus)
    return combined
