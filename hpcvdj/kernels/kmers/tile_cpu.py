"""The pairs of a tile of counters [d + 1, rows, columns] that begins at `row` and `column`, by all threads."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.threads import on_threads, parts_of

_ROWS_AT_ONCE = 16


def clear_lower(
    counters: NDArray[np.unsignedinteger[Any]], row: int, column: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clear the counters whose column is before their row.

    Returns how many pairs of different sequences have a counter: by row and distance, int64 [rows, d + 1], and by row,
    at any distance, int64 [rows].
    """
    planes, rows, _ = counters.shape
    by_distance, by_row = np.zeros((rows, planes), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    on_threads(_clear, parts_of(rows, _ROWS_AT_ONCE), counters, row, column, by_distance, by_row)
    return by_distance, by_row


@numba.njit(cache=True, nogil=True)
def _clear(part, counters, row, column, by_distance, by_row):  # type: ignore[no-untyped-def]
    planes, _, columns = counters.shape
    for r in range(part[0], part[1]):
        diagonal = row + r - column
        for h in range(planes):
            counters[h, r, : max(diagonal, 0)] = 0
            for c in range(max(diagonal + 1, 0), columns):
                by_distance[r, h] += counters[h, r, c] != 0
        for c in range(max(diagonal + 1, 0), columns):
            by_row[r] += _any(counters, r, c)


def list_pairs(
    counters: NDArray[np.unsignedinteger[Any]], row: int, column: int, pairs: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows and columns within the tile, int64 [2, pairs], of its pairs of different sequences that have a counter.

    pairs  how many there are in each row, from `clear_lower`
    """
    ends = np.cumsum(pairs)
    listed = np.empty((2, pairs.sum()), dtype=np.int64)
    on_threads(_list, parts_of(len(pairs), _ROWS_AT_ONCE), counters, row, column, ends - pairs, *listed)
    return listed


@numba.njit(cache=True, nogil=True)
def _list(part, counters, row, column, begins, i, j):  # type: ignore[no-untyped-def]
    columns = counters.shape[2]
    for r in range(part[0], part[1]):
        at = begins[r]
        for c in range(max(row + r - column + 1, 0), columns):
            if _any(counters, r, c):
                i[at], j[at] = r, c
                at += 1


@numba.njit(forceinline=True)
def _any(counters, r, c):  # type: ignore[no-untyped-def]
    bits = counters[0, r, c]
    for h in range(1, counters.shape[0]):
        bits |= counters[h, r, c]
    return bits != 0
