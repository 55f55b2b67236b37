"""`matrix`, for short k-mers: the product of the rows' counts with the columns' neighbourhoods.

With G_h(x, j) = occurrences in column j of k-mers at distance exactly h from x, D_h(i, j) = sum over x of
f_i(x) G_h(x, j).  G has 4^k rows; f_i has few that are not zero, so one row of G is added for each k-mer of i.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.masks import position
from hpcvdj.runs.pacing import Pace

WIDTH = 64
"""Columns of a tile: a row of G, 8 bits a counter, is then a cache line for each distance."""

MAX_K = 11
"""G of a tile takes 64 (d + 1) 4^k bytes for each thread: 0.8 GB at k = 11, d = 2."""


class Matrix:
    """The columns' k-mers; neighbourhoods are made tile by tile, when rows come."""

    def __init__(self, columns: Profile, d: int, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._columns, self._d, self._k = columns, d, columns.k
        self._difference, self._distance = neighbours(columns.k, d)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        rows = self._columns.part(first or 0, len(self._columns) if last is None else last) if rows is None else rows
        mine, theirs = rows.kmers, self._columns.kmers
        found = np.zeros((self._d + 1, len(rows), len(self._columns)), dtype=np.uint32)
        tiles = -(-len(self._columns) // WIDTH)
        threads = min(numba.get_num_threads(), max(1, tiles))
        table = np.zeros((threads, 4**self._k, self._d + 1, WIDTH), dtype=np.uint8)
        for some in self._pace.pieces(tiles, threads):
            _multiply(
                mine.key, mine.count, mine.offsets, -1 if first is None else first, theirs.key, theirs.count,
                theirs.offsets, self._difference, self._distance, table, *some, found,
            )  # fmt: skip
        return found


def neighbours(k: int, d: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """What turns a k-mer into each within distance d by XOR, and its distance: sum of C(k, h) 3^h of them."""
    found = [(0, 0)]
    for h in range(1, d + 1):
        for chosen in combinations(range(k), h):
            steps = [(position(k, p) & (0x5555555555555555 * change)) for p in chosen for change in (1, 2, 3)]
            found += [(sum(some), h) for some in product(*(steps[3 * q : 3 * q + 3] for q in range(h)))]
    assert len(found) == sum(comb(k, h) * 3**h for h in range(d + 1))
    return np.array([x for x, _ in found], dtype=np.uint64), np.array([h for _, h in found])


@numba.njit(parallel=True, cache=True)
def _multiply(  # type: ignore[no-untyped-def]
    row_key, row_count, row_offsets, first, key, count, offsets, difference, distance, tables, begin, end, found
):
    rows, columns = found.shape[1], found.shape[2]
    threads = tables.shape[0]
    for thread in prange(threads):
        table = tables[thread]
        # Every so many-th tile: those further right have more rows.
        for tile in range(begin + thread, end, threads):
            j0 = tile * WIDTH
            width = min(WIDTH, columns - j0)
            stop = min(rows, j0 + width - first) if first >= 0 else rows
            if stop <= 0:
                continue
            if _spread(key, count, offsets, j0, width, difference, distance, table):
                for r in range(stop):
                    _gather(row_key, row_count, row_offsets[r], row_offsets[r + 1], table, found[:, r, j0 : j0 + width])
            else:
                # Repeats: a neighbourhood of more than 255, which 16 bits hold since no sequence has more k-mers.
                wide = np.zeros(table.shape, dtype=np.uint16)
                _spread(key, count, offsets, j0, width, difference, distance, wide)
                for r in range(stop):
                    _gather(row_key, row_count, row_offsets[r], row_offsets[r + 1], wide, found[:, r, j0 : j0 + width])
            table[:] = 0


@numba.njit(cache=True)
def _spread(key, count, offsets, j0, width, difference, distance, table):  # type: ignore[no-untyped-def]
    """Add the k-mers of columns j0 … to G; False if that is more than its type holds."""
    fits, limit = True, (1 << 8 * table.itemsize) - 1
    for j in range(width):
        for p in range(offsets[j0 + j], offsets[j0 + j + 1]):
            x, f = key[p], np.int64(count[p])
            for q in range(len(difference)):
                place, h = x ^ difference[q], distance[q]
                total = np.int64(table[place, h, j]) + f
                fits &= total <= limit
                table[place, h, j] = total
    return fits


@numba.njit(cache=True)
def _gather(key, count, low, high, table, found):  # type: ignore[no-untyped-def]
    """found[h, j] = sum over k-mers x of count(x) G_h(x, j)."""
    planes, width = found.shape
    sums = np.zeros(WIDTH, dtype=np.uint32)
    for h in range(planes):
        sums[:] = 0
        for p in range(low, high):
            x, f = key[p], count[p]
            row = table[x, h]
            if f == 1:
                for j in range(WIDTH):
                    sums[j] += np.uint32(row[j])
            else:
                for j in range(WIDTH):
                    sums[j] += np.uint32(f) * np.uint32(row[j])
        for j in range(width):
            found[h, j] = sums[j]
