"""Compare sequences by their tables, on CPU cores with a thread for each pair (sections 2.d and 3), or on a GPU."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.studies.hash_tables.construction import HashTables, TableOptions

Compare = Callable[[range], tuple[NDArray[Any], float]]

PAIRS_AT_ONCE = 64
"""Pairs of sequences that a thread takes at a time."""


def load(tables: HashTables, options: TableOptions, backend: str = "cpu") -> Compare:
    """Load tables.  The function that it returns compares a range of sequences, each with itself and later ones.

    That function returns R, uint32 or uint64 [d + 1, rows, sequences], which is 0 for sequences before that of the row,
    and the seconds: on a GPU those of the kernels by the GPU's clock, on CPU cores those of the call.

    Raise InputError if two sub-tables exceed the GPU's shared memory, MachineError without a GPU or enough memory.
    """
    if open_backend(backend).name == "cpu":
        return partial(_on_cpu, tables)
    from hpcvdj.studies.hash_tables.compare_cuda import CudaTables

    return CudaTables(tables, options).compare


def _on_cpu(tables: HashTables, rows: range) -> tuple[NDArray[Any], float]:
    start = time.perf_counter()
    out = tables.counters(len(rows))
    arguments = tables.keys, tables.counts, tables.offsets, tables.ends, rows.start, out
    on_threads(_compare, parts_of(len(rows) * len(tables), PAIRS_AT_ONCE), *arguments)
    return out, time.perf_counter() - start


@numba.njit(cache=True, nogil=True)
def _compare(part, keys, counts, offsets, ends, first, out):  # type: ignore[no-untyped-def]
    columns, buckets = out.shape[2], offsets.shape[2] - 1
    for pair in range(part[0], part[1]):
        i, j = first + pair // columns, pair % columns
        if j < i:
            continue
        s = 0
        for m in range(len(ends)):
            total = np.uint64(0)
            while s < ends[m]:
                for b in range(buckets):
                    x, x_end = np.int64(offsets[i, s, b]), np.int64(offsets[i, s, b + 1])
                    y, y_end = np.int64(offsets[j, s, b]), np.int64(offsets[j, s, b + 1])
                    while x < x_end and y < y_end:
                        x_key, y_key = keys[i, s, x], keys[j, s, y]
                        if x_key == y_key:
                            total += np.uint64(counts[i, s, x]) * np.uint64(counts[j, s, y])
                        x += x_key <= y_key
                        y += y_key <= x_key
                s += 1
            out[m, i - first, j] = total
