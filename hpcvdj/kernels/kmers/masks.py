"""Wildcard configurations, and the relation between exact and raw counters.

A configuration is the mask of the positions that must agree: two set bits for each kept base, as in a k-mer's key.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
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


def block_masks(k: int, d: int, blocks: int) -> tuple[list[int], list[int]]:
    """The positions cut into `blocks` runs: the masks of the runs, and the C(blocks, d) masks that keep all but d runs.

    Two k-mers within distance d agree on all but d runs at least, so one of the second masks finds them.
    """
    edges = [p * k // blocks for p in range(blocks + 1)]
    runs = [sum(position(k, p) for p in range(a, b)) for a, b in pairwise(edges)]
    kept = [all_positions(k) - sum(runs[b] for b in left_out) for left_out in combinations(range(blocks), d)]
    return runs, kept


def fields(mask: int) -> list[tuple[int, int, int]]:
    """(right, kept, left) for each run of kept positions: `(key >> right & kept) << left` closes the runs up.

    >>> [(right, f"{kept:b}", left) for right, kept, left in fields(0b110011)]
    [(0, '11', 0), (4, '11', 2)]
    """
    found, left = [], 0
    while mask:
        right = (mask & -mask).bit_length() - 1
        run = mask >> right
        width = (~run & run + 1).bit_length() - 1
        found.append((right, (1 << width) - 1, left))
        left += width
        mask &= ~(((1 << width) - 1) << right)
    return found


def raw_from_exact(exact: NDArray[Counter], k: int) -> NDArray[Counter]:
    """R [d + 1, …] of D [d + 1, …]: R_m = sum over h ≤ m of C(k - h, m - h) D_h."""
    return _combine(exact, lambda m, h: comb(k - h, m - h))


def exact_from_raw(raw: NDArray[Counter], k: int) -> NDArray[Counter]:
    """D [d + 1, …] of R [d + 1, …]: D_m = sum over h ≤ m of (-1)^(m - h) C(k - h, m - h) R_h.

    In arithmetic modulo 2^bits of the type, so intermediate values may wrap: the result is right if D fits.

    >>> exact_from_raw(np.array([1, 12, 70], dtype=np.uint64), 12).tolist()
    [1, 0, 4]
    """
    return _combine(raw, lambda m, h: (-1) ** (m - h) * comb(k - h, m - h))


def _combine(planes: NDArray[Counter], weight: Callable[[int, int], int]) -> NDArray[Counter]:
    out = planes * 0
    modulus = 1 << 8 * planes.dtype.itemsize
    for m in range(len(planes)):
        for h in range(m + 1):
            out[m] += planes[h] * planes.dtype.type(weight(m, h) % modulus)
    return out
