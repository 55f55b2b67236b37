"""`matrix`, for short k-mers: the product of the rows' counts with the columns' neighbourhoods.

With G_h(x, j) = occurrences in column j of k-mers at distance exactly h from x, D_h(i, j) = sum over x of
f_i(x) G_h(x, j).  G has 4^k rows; f_i has few that are not zero, so one row of G is added for each k-mer of i.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.masks import neighbours
from hpcvdj.kernels.kmers.methods import MATRIX_COLUMNS, KmerMethod
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.pacing import Pacer
from hpcvdj.kernels.threads import on_threads


class Matrix:
    """The columns' k-mers; neighbourhoods are made tile by tile, when rows come.

    G of a tile takes 64 (d + 1) 4^k bytes for each thread: 0.8 GB at k = 11, d = 2.
    """

    def __init__(self, columns: Profile, method: KmerMethod, pace: Pacer) -> None:
        self._columns, self._d, self._pace = columns, method.d, pace
        self._difference, self._distance = neighbours(method.k, method.d)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        rows = self._columns.part(first or 0, len(self._columns) if last is None else last) if rows is None else rows
        r, c = rows.kmers, self._columns.kmers
        counters = np.zeros((self._d + 1, len(rows), len(self._columns)), dtype=np.uint32)
        tiles = -(-len(self._columns) // MATRIX_COLUMNS)
        threads = min(numba.get_num_threads(), max(1, tiles))
        table = np.zeros((threads, 4**self._columns.k, self._d + 1, MATRIX_COLUMNS), dtype=np.uint8)
        for step in self._pace.steps(tiles, threads):
            on_threads(
                _multiply, range(threads), r.key, r.count, r.offsets, -1 if first is None else first, c.key, c.count,
                c.offsets, self._difference, self._distance, table, *step, counters,
            )  # fmt: skip
        return counters


@numba.njit(cache=True, nogil=True)
def _multiply(  # type: ignore[no-untyped-def]
    thread, row_key, row_count, row_offsets, first, key, count, offsets, difference, distance, tables, begin, end,
    counters,
):  # fmt: skip
    rows, columns = counters.shape[1], counters.shape[2]
    threads = tables.shape[0]
    table = tables[thread]
    # Tiles take turns, as those further right have more rows.
    for tile in range(begin + thread, end, threads):
        j0 = tile * MATRIX_COLUMNS
        width = min(MATRIX_COLUMNS, columns - j0)
        stop = min(rows, j0 + width - first) if first >= 0 else rows
        if stop <= 0:
            continue
        if _spread(key, count, offsets, j0, width, difference, distance, table):
            _gather(row_key, row_count, row_offsets, table, counters[:, :stop, j0 : j0 + width])
        else:
            # Repeats: a neighbourhood of more than 255, which 16 bits hold as no sequence has more k-mers.
            wide = np.zeros(table.shape, dtype=np.uint16)
            _spread(key, count, offsets, j0, width, difference, distance, wide)
            _gather(row_key, row_count, row_offsets, wide, counters[:, :stop, j0 : j0 + width])
        table[:] = 0


@numba.njit(cache=True, nogil=True)
def _spread(key, count, offsets, j0, width, difference, distance, table):  # type: ignore[no-untyped-def]
    """Add the k-mers of columns j0 … to G; False if that is more than its type holds."""
    fits, limit = True, (1 << 8 * table.itemsize) - 1
    for j in range(width):
        for p in range(offsets[j0 + j], offsets[j0 + j + 1]):
            x, f = key[p], np.int64(count[p])
            for q in range(len(difference)):
                neighbour, h = x ^ difference[q], distance[q]
                total = np.int64(table[neighbour, h, j]) + f
                fits &= total <= limit
                table[neighbour, h, j] = total
    return fits


@numba.njit(cache=True, nogil=True)
def _gather(key, count, offsets, table, counters):  # type: ignore[no-untyped-def]
    """counters[h, r, j] = sum over the k-mers x of row r of count(x) G_h(x, j)."""
    planes, rows, width = counters.shape
    sums = np.zeros(MATRIX_COLUMNS, dtype=np.uint32)
    for r in range(rows):
        for h in range(planes):
            sums[:] = 0
            for p in range(offsets[r], offsets[r + 1]):
                x, f = key[p], count[p]
                row = table[x, h]
                if f == 1:
                    for j in range(MATRIX_COLUMNS):
                        sums[j] += np.uint32(row[j])
                else:
                    for j in range(MATRIX_COLUMNS):
                        sums[j] += np.uint32(f) * np.uint32(row[j])
            for j in range(width):
                counters[h, r, j] = sums[j]
