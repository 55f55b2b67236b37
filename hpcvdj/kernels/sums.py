"""Sums: of values by place, and of counters that may exceed 64 bits, in one pass over the memory."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.threads import on_threads, parts_of

_ROWS_AT_ONCE = 1 << 17
_PRODUCTS_AT_ONCE = 1 << 15
_HALF = 32


def summed(places: NDArray[np.signedinteger[Any]], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """float64 [size]: the sum of the values at each place, one after another.

    >>> summed(np.array([0, 2, 2]), np.array([1.0, 2.0, 1.0]), 4).tolist()
    [1.0, 0.0, 3.0, 0.0]
    """
    return np.bincount(places, values, minlength=size).astype(np.float64)


def mixed(shares: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64 [mixtures, columns]: the sums of the rows of `values` by their shares, [mixtures, rows].

    Rows are added in their order.  The product of two matrices rounds a row otherwise if there are other rows, or other
    threads; here each mixture is the same to the bit alone, so that a probability does not depend on which other genes
    a table, a slice or a rank has.

    >>> mixed(np.array([[0.5, 0.25]]), np.array([[1.0, 0.0], [4.0, 8.0]])).tolist()
    [[1.5, 2.0]]
    """
    sums = np.zeros((len(shares), values.shape[1]))
    parts = parts_of(len(shares), 1 + _PRODUCTS_AT_ONCE // (1 + values.size))
    # In C order always: numba compiles once for each order.
    on_threads(_mix, parts, np.ascontiguousarray(shares), np.ascontiguousarray(values), sums)
    return sums


@njit(cache=True, nogil=True)
def _mix(part, shares, values, sums):  # type: ignore[no-untyped-def]
    for number in range(part[0], part[1]):
        for row in range(len(values)):
            share = shares[number, row]
            if share != 0:
                for column in range(values.shape[1]):
                    sums[number, column] += share * values[row, column]


def exact_column_sums(counters: NDArray[np.uint64], nonzero: NDArray[np.bool_] | None = None) -> list[int]:
    """Exact sums of the columns of uint64 [rows, columns], as Python integers.

    nonzero  bool [rows]: becomes true where a row has a counter above 0, and keeps what was true
    """
    if nonzero is None:
        nonzero = np.zeros(len(counters), dtype=bool)
    counters = np.ascontiguousarray(counters)
    parts = parts_of(len(counters), _ROWS_AT_ONCE)
    low, high = np.zeros((2, len(parts), counters.shape[1]), dtype=np.uint64)
    on_threads(_add_halves, [(k, *part) for k, part in enumerate(parts)], counters, nonzero, low, high)
    return [int(a) + (int(b) << _HALF) for a, b in zip(low.sum(axis=0), high.sum(axis=0), strict=True)]


@njit(cache=True, nogil=True)
def _add_halves(part, counters, nonzero, low, high):  # type: ignore[no-untyped-def]
    """Sums of the low and of the high 32 bits of each column: 2^32 rows cannot overflow them."""
    number, first, end = part
    columns = counters.shape[1]
    low_bits, high_bits = np.zeros((2, columns), dtype=np.uint64)
    for row in range(first, end):
        any_bits = np.uint64(0)
        for column in range(columns):
            value = counters[row, column]
            any_bits |= value
            low_bits[column] += value & np.uint64(0xFFFFFFFF)
            high_bits[column] += value >> np.uint64(_HALF)
        if any_bits:
            nonzero[row] = True
    # To assign whole rows would take numba 3 s longer to compile, for the message if shapes differed.
    for column in range(columns):
        low[number, column], high[number, column] = low_bits[column], high_bits[column]
