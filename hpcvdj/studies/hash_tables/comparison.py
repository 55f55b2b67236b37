"""The comparison of sequences by their tables: on CPU cores a thread a pair (sections 2.d and 3), or on a GPU."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.backends import open_backend
from hpcvdj.studies.hash_tables.construction import HashTables, TableOptions

Compare = Callable[[range], tuple[NDArray[Any], float]]


def load(tables: HashTables, options: TableOptions, backend: str = "cpu") -> Compare:
    """A function that compares the sequences `rows`, a range, each with itself and those after it.

    It returns R, uint32 or uint64 [d + 1, rows, sequences], 0 for sequences before the row's own, and seconds: of the
    kernels by the GPU's clock, on CPU cores of all.

    InputError if two sub-tables exceed the shared memory of the GPU, MachineError for too little memory or no GPU.
    """
    if open_backend(backend).name == "cpu":
        return partial(_on_cpu, tables)
    from hpcvdj.studies.hash_tables.compare_cuda import CudaTables

    return CudaTables(tables, options).compare


def _on_cpu(tables: HashTables, rows: range) -> tuple[NDArray[Any], float]:
    start = time.perf_counter()
    out = tables.counters(len(rows))
    _compare(tables.keys, tables.counts, tables.offsets, tables.ends, rows.start, out)
    return out, time.perf_counter() - start


@numba.njit(parallel=True, cache=True, nogil=True)
def _compare(keys, counts, offsets, ends, first, out):  # type: ignore[no-untyped-def]
    columns, buckets = out.shape[2], offsets.shape[2] - 1
    for pair in numba.prange(out.shape[1] * columns):
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
