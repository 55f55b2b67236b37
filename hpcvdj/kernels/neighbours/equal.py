"""Rows that are equal, by a hash that is verified."""

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray


@njit(cache=True, nogil=True, inline="always")
def mixed(value):  # type: ignore[no-untyped-def]
    """A 64-bit number of which every bit depends on every bit of `value`: the finaliser of splitmix64.

    Steele, Lea and Flood, OOPSLA 2014; the constants are Stafford's variant 13.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True, parallel=True)
def _row_hashes(rows, out):  # type: ignore[no-untyped-def]
    for row in prange(len(rows)):
        value = np.uint64(0)
        for column in range(rows.shape[1]):
            value = mixed(value + rows[row, column] + np.uint64(0x9E3779B97F4A7C15))
        out[row] = value


def row_hashes(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of each row of uint64 [rows, columns], of the row alone."""
    hashes: NDArray[np.uint64] = np.empty(len(rows), dtype=np.uint64)
    _row_hashes(np.ascontiguousarray(rows), hashes)
    return hashes


def grouped(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of equal rows, in the order in which they first appear.

    rows  uint64 [rows, columns]

    Returns the first row of each group, int64 [groups], and the group of each row, int64 [rows].

    >>> first, group = grouped(np.array([[2, 1], [1, 1], [2, 1]], dtype=np.uint64))
    >>> first.tolist(), group.tolist()
    ([0, 1], [0, 1, 0])
    """
    hashes = row_hashes(rows)
    order: NDArray[Any] = np.argsort(hashes, kind="stable")
    begins = hashes[order[1:]] != hashes[order[:-1]]
    if not _all_equal(rows, order, begins):
        order = np.lexsort(rows.T)  # a collision, which happens once in 10^5 sets of 10^7 rows
        begins = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    starts = np.flatnonzero(np.concatenate([[True], begins])) if len(rows) else np.empty(0, np.int64)
    first = order[starts]  # the sort is stable
    rank = np.empty(len(first), dtype=np.int64)
    by_first = np.argsort(first)
    rank[by_first] = np.arange(len(first))
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = np.repeat(rank, np.diff(np.append(starts, len(rows))))
    return first[by_first], group


@njit(cache=True, nogil=True)
def _all_equal(rows, order, begins):  # type: ignore[no-untyped-def]
    """Whether neighbours in the order are equal where no group begins."""
    for place in range(len(begins)):
        if not begins[place]:
            for column in range(rows.shape[1]):
                if rows[order[place], column] != rows[order[place + 1], column]:
                    return False
    return True
