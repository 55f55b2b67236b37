"""Compiled functions on the cores of a machine, each with a part of the work.

numba's own parallel loops are not used: numba compiles what is in such a loop three times, with all that it calls.  For
the largest kernels that takes half a minute, before the first number.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray

PARTS_OF_A_THREAD = 8
"""Parts of the rows for each thread: the rows of some take longer than those of others."""

TAKEN_AT_ONCE = 1 << 16
"""Rows that a thread copies at a time: fewer are copied as fast by one."""


_COMPUTED_AT_ONCE = 1 << 12
"""Rows of which a thread computes values at a time: a value takes far longer than a copy."""


def on_threads(function: Callable[..., None], parts: Sequence[Any], *arguments: Any) -> None:
    """Call `function` with each part and the arguments, on as many threads as numba has.

    It should release Python's lock most of the time.
    """
    remaining = list(reversed(parts))

    def work() -> None:
        while remaining:
            try:
                part = remaining.pop()
            except IndexError:
                # Another thread took the last part.
                return
            try:
                function(part, *arguments)
            except BaseException:
                remaining.clear()
                raise

    others = min(get_num_threads(), len(parts)) - 1
    if others <= 0:
        work()
        return
    with ThreadPoolExecutor(others) as pool:
        working = [pool.submit(work) for _ in range(others)]
        # A pool that had all the work would take a millisecond longer to begin and to end.
        work()
    for thread in working:
        thread.result()


def taken(values: NDArray[Any], rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """`values[rows]`, copied on several cores.

    values  any type [elements, …]
    rows    integers [rows], from 0 to elements - 1; others are not noticed
    """
    out = np.empty((len(rows), *values.shape[1:]), dtype=values.dtype)
    on_threads(_take, parts_of(len(rows), TAKEN_AT_ONCE), values, rows, out)
    return out


def by_parts(function: Callable[..., NDArray[Any]], *columns: NDArray[Any]) -> NDArray[np.float64]:
    """`function` of columns, computed on several cores, float64 [rows]; its result for a row is that of this row alone.

    columns  any type [rows], at least one
    """
    out = np.empty(len(columns[0]))

    def compute(part: tuple[int, int]) -> None:
        rows = slice(*part)
        out[rows] = function(*(column[rows] for column in columns))

    on_threads(compute, parts_of(len(out), _COMPUTED_AT_ONCE))
    return out


def _take(part: tuple[int, int], values: NDArray[Any], rows: NDArray[Any], out: NDArray[Any]) -> None:
    # With another mode, numpy would copy twice.
    np.take(values, rows[slice(*part)], axis=0, out=out[slice(*part)], mode="clip")


def parts_of(rows: int, chunk: int) -> list[tuple[int, int]]:
    """Rows 0 … rows - 1 in parts for the threads: the first row of each, and the one after its last.

    chunk  rows of the smallest part, of which others are multiples
    """
    chunks = -(-rows // chunk)
    size = chunk * max(1, -(-chunks // (PARTS_OF_A_THREAD * get_num_threads())))
    return [(first, min(rows, first + size)) for first in range(0, rows, size)]


def turns_of(items: int) -> list[tuple[int, int, int]]:
    """Items 0 … items - 1 in parts for the threads, for `range`: parts take turns, so large items may come first."""
    parts = min(items, PARTS_OF_A_THREAD * get_num_threads())
    return [(first, items, parts) for first in range(parts)]
