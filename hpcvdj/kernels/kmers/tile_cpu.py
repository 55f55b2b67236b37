"""The pairs of a tile of counters, listed by all threads."""

from __future__ import annotations

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray


def clear_lower(counters: NDArray[np.uint32], row: int, column: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clear the counters of a tile [d + 1, rows, columns] whose column is before their row.

    The tile begins at `row` and `column`.  Returns its pairs of different sequences that have a counter: by distance,
    int64 [d + 1], and by row, at any distance, int64 [rows].
    """
    pairs = np.zeros((counters.shape[1], counters.shape[0] + 1), dtype=np.int64)
    _clear(counters, row, column, pairs)
    return pairs[:, :-1].sum(axis=0), pairs[:, -1]


def list_pairs(
    counters: NDArray[np.uint32], row: int, column: int, pairs: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns within the tile, int64 [pairs], of its pairs of different sequences that have a counter.

    pairs  how many there are in each row, from `clear_lower`
    """
    offsets = np.concatenate([[0], np.cumsum(pairs)])
    i, j = np.empty(offsets[-1], dtype=np.int64), np.empty(offsets[-1], dtype=np.int64)
    _list(counters, row, column, offsets, i, j)
    return i, j


@numba.njit(parallel=True, cache=True)
def _clear(counters, row, column, pairs):  # type: ignore[no-untyped-def]
    planes, rows, columns = counters.shape
    for r in prange(rows):
        diagonal = row + r - column
        for h in range(planes):
            for c in range(min(max(diagonal, 0), columns)):
                counters[h, r, c] = 0
            for c in range(max(diagonal + 1, 0), columns):
                pairs[r, h] += counters[h, r, c] != 0
        for c in range(max(diagonal + 1, 0), columns):
            pairs[r, planes] += _any(counters, r, c)


@numba.njit(parallel=True, cache=True)
def _list(counters, row, column, offsets, i, j):  # type: ignore[no-untyped-def]
    rows, columns = counters.shape[1:]
    for r in prange(rows):
        at = offsets[r]
        for c in range(max(row + r - column + 1, 0), columns):
            if _any(counters, r, c):
                i[at], j[at] = r, c
                at += 1


@numba.njit(inline="always")
def _any(counters, r, c):  # type: ignore[no-untyped-def]
    bits = counters[0, r, c]
    for h in range(1, counters.shape[0]):
        bits |= counters[h, r, c]
    return bits != 0
