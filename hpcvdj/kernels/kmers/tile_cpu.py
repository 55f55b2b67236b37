"""The pairs of a tile of counters [d + 1, rows, columns] that begins at `row` and `column`, by all threads."""

import numba
import numpy as np
from numba import prange


@numba.njit(parallel=True, cache=True, nogil=True)
def clear_lower(counters, row, column):  # type: ignore[no-untyped-def]
    """Clear the counters whose column is before their row.

    Returns how many pairs of different sequences have a counter: by row and distance, int64 [rows, d + 1], and by row,
    at any distance, int64 [rows].
    """
    planes, rows, columns = counters.shape
    by_distance, by_row = np.zeros((rows, planes), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    for r in prange(rows):
        diagonal = row + r - column
        for h in range(planes):
            counters[h, r, : max(diagonal, 0)] = 0
            for c in range(max(diagonal + 1, 0), columns):
                by_distance[r, h] += counters[h, r, c] != 0
        for c in range(max(diagonal + 1, 0), columns):
            by_row[r] += _any(counters, r, c)
    return by_distance, by_row


@numba.njit(parallel=True, cache=True, nogil=True)
def list_pairs(counters, row, column, pairs):  # type: ignore[no-untyped-def]
    """Rows and columns within the tile, int64 [pairs], of its pairs of different sequences that have a counter.

    pairs  how many there are in each row, from `clear_lower`
    """
    rows, columns = counters.shape[1:]
    last = np.cumsum(pairs)
    i, j = np.empty(pairs.sum(), dtype=np.int64), np.empty(pairs.sum(), dtype=np.int64)
    for r in prange(rows):
        at = last[r] - pairs[r]
        for c in range(max(row + r - column + 1, 0), columns):
            if _any(counters, r, c):
                i[at], j[at] = r, c
                at += 1
    return i, j


@numba.njit(forceinline=True)
def _any(counters, r, c):  # type: ignore[no-untyped-def]
    bits = counters[0, r, c]
    for h in range(1, counters.shape[0]):
        bits |= counters[h, r, c]
    return bits != 0
