"""What a tile of counters holds: its pairs, found in one pass on all cores."""

from __future__ import annotations

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray


def clear_before(counters: NDArray[np.uint32], row: int, column: int) -> NDArray[np.int64]:
    """Clear the counters of a tile [d + 1, rows, columns] whose column comes before their row.

    The tile begins at `row` and `column`.  Returns its pairs of different sequences by distance, int64 [d + 1].
    """
    pairs = np.zeros((counters.shape[1], counters.shape[0]), dtype=np.int64)
    _clear(counters, row, column, pairs)
    return np.asarray(pairs.sum(axis=0))


def pairs_of(
    counters: NDArray[np.uint32], row: int, column: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]:
    """Rows and columns int64 [pairs], counted from those of the tile, and counters uint32 [d + 1, pairs] of its pairs.

    Pairs of different sequences with any counter, by row and column.
    """
    found = np.zeros(counters.shape[1] + 1, dtype=np.int64)
    _count(counters, row, column, found)
    places = np.cumsum(found)
    i, j = np.empty(places[-1], dtype=np.int64), np.empty(places[-1], dtype=np.int64)
    _list(counters, row, column, places, i, j)
    return i, j, counters[:, i, j]


@numba.njit(parallel=True, cache=True)
def _clear(counters, row, column, pairs):  # type: ignore[no-untyped-def]
    planes, rows, columns = counters.shape
    for r in prange(rows):
        for h in range(planes):
            own = row + r - column
            for c in range(min(max(own, 0), columns)):
                counters[h, r, c] = 0
            for c in range(max(own + 1, 0), columns):
                pairs[r, h] += counters[h, r, c] != 0


@numba.njit(parallel=True, cache=True)
def _count(counters, row, column, found):  # type: ignore[no-untyped-def]
    planes, rows, columns = counters.shape
    for r in prange(rows):
        n = 0
        for c in range(max(row + r - column + 1, 0), columns):
            some = counters[0, r, c]
            for h in range(1, planes):
                some |= counters[h, r, c]
            n += some != 0
        found[r + 1] = n


@numba.njit(parallel=True, cache=True)
def _list(counters, row, column, places, i, j):  # type: ignore[no-untyped-def]
    planes, rows, columns = counters.shape
    for r in prange(rows):
        place = places[r]
        for c in range(max(row + r - column + 1, 0), columns):
            some = counters[0, r, c]
            for h in range(1, planes):
                some |= counters[h, r, c]
            if some:
                i[place] = r
                j[place] = c
                place += 1
