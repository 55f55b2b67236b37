"""The multi-threaded comparison on the CPU (sections 2.d and 3): a thread a pair, the same arrays as on the GPU."""

from __future__ import annotations

from math import comb
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.studies.hash_tables.construction import Tables


def sum_type(rows: Tables, columns: Tables) -> type[np.unsignedinteger[Any]]:
    """uint32 if no raw counter of these tables can exceed it, else uint64."""
    largest = rows.most * columns.most * max(comb(columns.k, m) for m in range(columns.d + 1))
    return np.uint32 if largest < 1 << 32 else np.uint64


def compare(
    rows: Tables, row_range: range, columns: Tables, column_range: range, diagonal: int | None = None
) -> NDArray[Any]:
    """R, uint32 or uint64 [d + 1, row_range, column_range], of sequences of two sets of tables built alike.

    diagonal  row r of row_range is only compared with the columns c ≥ diagonal + r of column_range, both numbered from
              0; the other counters are 0
    """
    out = np.zeros((columns.d + 1, len(row_range), len(column_range)), sum_type(rows, columns))
    low = -len(row_range) if diagonal is None else diagonal
    sides = (rows, row_range), (columns, column_range)
    parts = [
        array[chosen.start : chosen.stop]
        for tables, chosen in sides
        for array in (tables.keys, tables.counts, tables.offsets)
    ]
    _compare(*parts, columns.ends, low, out)
    return out


@numba.njit(parallel=True, cache=True)
def _compare(x_keys, x_counts, x_offsets, y_keys, y_counts, y_offsets, ends, diagonal, out):  # type: ignore[no-untyped-def]
    n_columns, buckets = out.shape[2], x_offsets.shape[2] - 1
    for pair in numba.prange(out.shape[1] * n_columns):
        i, j = pair // n_columns, pair % n_columns
        if j < diagonal + i:
            continue
        s = 0
        for m in range(len(ends)):
            total = np.uint64(0)
            while s < ends[m]:
                for b in range(buckets):
                    x, x_end = np.int64(x_offsets[i, s, b]), np.int64(x_offsets[i, s, b + 1])
                    y, y_end = np.int64(y_offsets[j, s, b]), np.int64(y_offsets[j, s, b + 1])
                    while x < x_end and y < y_end:
                        x_key, y_key = x_keys[i, s, x], y_keys[j, s, y]
                        if x_key == y_key:
                            total += np.uint64(x_counts[i, s, x]) * np.uint64(y_counts[j, s, y])
                        x += x_key <= y_key
                        y += y_key <= x_key
                s += 1
            out[m, i, j] = total
