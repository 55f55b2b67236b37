"""Sums of counters that may exceed 64 bits, in one pass over the memory."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

_CHUNK = 1 << 15
_HALF = 32
_PARALLEL_SIZE = 1 << 20


def exact_column_sums(counters: NDArray[np.uint64], nonzero: NDArray[np.bool_] | None = None) -> list[int]:
    """Exact sums of the columns of uint64 [rows, columns], as Python integers.

    nonzero  bool [rows]: becomes true where a row has a counter above 0, and keeps what was true
    """
    if nonzero is None:
        nonzero = np.zeros(len(counters), dtype=bool)
    # Waking all threads takes longer than adding up a few counters.
    halves = _halves if counters.size > _PARALLEL_SIZE else _halves_serial
    low, high = halves(np.ascontiguousarray(counters), nonzero)
    return [int(a) + (int(b) << _HALF) for a, b in zip(low, high, strict=True)]


def _sum_halves(counters, nonzero):  # type: ignore[no-untyped-def]
    """Sums of the low and of the high 32 bits of each column: 2^32 rows cannot overflow them."""
    rows, columns = counters.shape
    chunks = (rows + _CHUNK - 1) // _CHUNK
    low = np.zeros((chunks, columns), dtype=np.uint64)
    high = np.zeros((chunks, columns), dtype=np.uint64)
    for chunk in prange(chunks):
        for row in range(chunk * _CHUNK, min(rows, (chunk + 1) * _CHUNK)):
            any_bits = np.uint64(0)
            for column in range(columns):
                value = counters[row, column]
                any_bits |= value
                low[chunk, column] += value & np.uint64(0xFFFFFFFF)
                high[chunk, column] += value >> np.uint64(_HALF)
            if any_bits:
                nonzero[row] = True
    return low.sum(axis=0), high.sum(axis=0)


_halves = njit(_sum_halves, cache=True, nogil=True, parallel=True)
_halves_serial = njit(_sum_halves, cache=True, nogil=True)
