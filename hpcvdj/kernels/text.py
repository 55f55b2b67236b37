"""Columns of text to arrays and back: the compiled loops below reading junctions and storing their text.

Text comes as Arrow stores it: one buffer of bytes, and the offset of each row in it.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.recombination.alphabet import BASES_PER_WORD, CODE_OF_BYTE, INVALID

OK, MISSING, TOO_SHORT, TOO_LONG, AMBIGUOUS = range(5)
"""The status of a row in `pack_rows`."""


def text_buffers(column: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets int64 [rows + 1] and bytes uint8 of a pyarrow string Array, without copying the bytes."""
    import pyarrow as pa

    column = column.cast(pa.large_string())
    if column.null_count:
        column = column.fill_null("")
    _, offsets, data = column.buffers()
    first = column.offset
    starts = np.frombuffer(offsets, dtype=np.int64)[first : first + len(column) + 1]
    return starts, np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)


@njit(cache=True, nogil=True)
def pack_rows(
    offsets: NDArray[np.int64],
    data: NDArray[np.uint8],
    trim: int,
    longest: int,
    words: NDArray[np.uint64],
    lengths: NDArray[np.uint8],
    status: NDArray[np.uint8],
    detail: NDArray[np.int64],
) -> None:
    """Pack each row, less `trim` bases at both ends, into `words` [rows, W], `lengths` and `status` [rows].

    `detail` is the length of a row that is too short or too long (trimmed), or the 0-based position of its first
    ambiguous letter (untrimmed).
    """
    for row in range(len(offsets) - 1):
        first, last = offsets[row], offsets[row + 1]
        size = last - first - 2 * trim
        detail[row] = size
        if last == first:
            status[row] = MISSING
        elif size < 0:
            status[row] = TOO_SHORT
        else:
            status[row] = TOO_LONG if size > longest else OK
        for k in range(first, last):
            if CODE_OF_BYTE[data[k]] == INVALID:
                status[row] = AMBIGUOUS
                detail[row] = k - first
                break
        if status[row] != OK:
            continue
        lengths[row] = size
        for k in range(size):
            shift = np.uint64(62 - 2 * (k % BASES_PER_WORD))
            words[row, k // BASES_PER_WORD] |= np.uint64(CODE_OF_BYTE[data[first + trim + k]]) << shift


@njit(cache=True, nogil=True)
def hash_rows(offsets: NDArray[np.int64], data: NDArray[np.uint8], out: NDArray[np.uint64]) -> None:
    """64-bit FNV-1a hash of each row: equal text has equal hashes; the reverse is checked by the caller."""
    for row in range(len(offsets) - 1):
        value = np.uint64(0xCBF29CE484222325)
        for k in range(offsets[row], offsets[row + 1]):
            value = (value ^ np.uint64(data[k])) * np.uint64(0x100000001B3)
        out[row] = value


@njit(cache=True, nogil=True)
def fixed_width(
    offsets: NDArray[np.int64], data: NDArray[np.uint8], order: NDArray[np.int64], out: NDArray[np.uint8]
) -> None:
    """Row `order[k]` as the zero-padded bytes `out[k]`; `out` is [len(order), width], zeroed by the caller."""
    for k in range(len(order)):
        first = offsets[order[k]]
        for place in range(offsets[order[k] + 1] - first):
            out[k, place] = data[first + place]


@njit(cache=True, nogil=True)
def unpack_rows(words: NDArray[np.uint64], lengths: NDArray[np.uint8], out: NDArray[np.uint8]) -> None:
    """The letters of packed rows as zero-padded ASCII, `out` uint8 [rows, width], zeroed by the caller."""
    letters = (ord("A"), ord("C"), ord("T"), ord("G"))
    for row in range(len(lengths)):
        for k in range(lengths[row]):
            code = (words[row, k // BASES_PER_WORD] >> np.uint64(62 - 2 * (k % BASES_PER_WORD))) & np.uint64(3)
            out[row, k] = letters[np.int64(code)]
