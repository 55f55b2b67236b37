"""Wildcard configurations, and the relation between exact and raw counters.

A configuration is the mask of the positions that must agree: two set bits for each kept base, as in a k-mer's key.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray


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


def raw_from_exact(exact: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    """R [d + 1, …] of D [d + 1, …]: R_m = sum over h ≤ m of C(k - h, m - h) D_h."""
    return _combine(exact, lambda m, h: comb(k - h, m - h))


def exact_from_raw(raw: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    """D [d + 1, …] of R [d + 1, …]: D_m = sum over h ≤ m of (-1)^(m - h) C(k - h, m - h) R_h.

    In arithmetic modulo 2^bits of the type, so intermediate values may wrap: the result is right if D fits.

    >>> exact_from_raw(np.array([1, 12, 70], dtype=np.uint64), 12).tolist()
    [1, 0, 4]
    """
    return _combine(raw, lambda m, h: (-1) ** (m - h) * comb(k - h, m - h))


def _combine(planes, weight) -> NDArray[np.uint64]:  # type: ignore[no-untyped-def]
    out: NDArray[np.uint64] = np.zeros_like(planes)
    modulus = 1 << 8 * planes.dtype.itemsize
    for m in range(len(planes)):
        for h in range(m + 1):
            out[m] += planes[h] * planes.dtype.type(weight(m, h) % modulus)
    return out
