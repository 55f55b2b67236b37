"""Columns of text to arrays and back: the compiled loops below reading junctions, storing and translating them.

Text comes as Arrow stores it: one buffer of bytes, and the offset of each row in it.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.alphabet import BASES_PER_WORD, INVALID

OK, MISSING, TOO_SHORT, TOO_LONG, AMBIGUOUS = range(5)
"""The status of a row in `pack_rows`."""

_ROWS_AT_ONCE = 1 << 14

Text = tuple[NDArray[np.int64], NDArray[np.uint8]]
"""Offsets int64 [rows + 1] and bytes uint8 of a column."""


def text_buffers(column: Any) -> Text:
    """The offsets and bytes of a pyarrow string Array, without copying the bytes."""
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
    code_of_byte: NDArray[np.uint8],
    bits: int,
    trim: int,
    longest: int,
    words: NDArray[np.uint64],
    lengths: NDArray[np.uint8],
    status: NDArray[np.uint8],
    detail: NDArray[np.int64],
) -> None:
    """Pack each row, less `trim` letters at both ends, into `words` [rows, W], `lengths` and `status` [rows].

    `code_of_byte` and `bits` are those of `Letters`.  `detail` is the length of a row that is too short or too long
    (trimmed), or the 0-based position of its first ambiguous letter (untrimmed).
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
            if code_of_byte[data[k]] == INVALID:
                status[row] = AMBIGUOUS
                detail[row] = k - first
                break
        if status[row] != OK:
            continue
        lengths[row] = size
        word, shift = 0, 64
        for k in range(first + trim, last - trim):
            shift -= bits
            words[row, word] |= np.uint64(code_of_byte[data[k]]) << np.uint64(shift)
            if shift == 0:
                word, shift = word + 1, 64


@njit(cache=True, nogil=True)
def hash_rows(
    begins: NDArray[np.int64], ends: NDArray[np.int64], data: NDArray[np.uint8], out: NDArray[np.uint64]
) -> None:
    """64-bit FNV-1a hash of each row of bytes: equal text has equal hashes; the reverse is checked by the caller."""
    for row in range(len(begins)):
        value = np.uint64(0xCBF29CE484222325)
        for k in range(begins[row], ends[row]):
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
def unpack_rows(
    words: NDArray[np.uint64], lengths: NDArray[np.uint8], letters: NDArray[np.uint8], bits: int, out: NDArray[np.uint8]
) -> None:
    """The letters of packed rows as zero-padded ASCII, `out` uint8 [rows, width], zeroed by the caller.

    letters  the ASCII letter of each code
    bits     of a packed letter
    """
    code = np.uint64((1 << bits) - 1)
    for row in range(len(lengths)):
        word, shift = 0, 64
        for k in range(lengths[row]):
            shift -= bits
            out[row, k] = letters[np.int64((words[row, word] >> np.uint64(shift)) & code)]
            if shift == 0:
                word, shift = word + 1, 64


@njit(cache=True, nogil=True, forceinline=True)
def base_at(packed, k):  # type: ignore[no-untyped-def]
    """The code of a packed sequence's base, as uint64."""
    return packed[k // BASES_PER_WORD] >> np.uint64(62 - 2 * (k % BASES_PER_WORD)) & np.uint64(3)


@njit(cache=True, nogil=True)
def codon_at(packed, codon):  # type: ignore[no-untyped-def]
    """The number of a packed sequence's codon, 0 … 63; the first base has the highest bits."""
    word, bit = divmod(6 * np.int64(codon), 64)
    if bit <= 58:
        return np.int64(packed[word] >> np.uint64(58 - bit) & np.uint64(63))
    # The codon's last bases are in the next word.
    return np.int64((packed[word] << np.uint64(bit - 58) | packed[word + 1] >> np.uint64(122 - bit)) & np.uint64(63))


def translate_rows(
    words: NDArray[np.uint64], codons: NDArray[np.integer[Any]], of_codon: NDArray[np.uint8],
    begins: NDArray[np.integer[Any]], out: NDArray[np.uint8],
) -> None:  # fmt: skip
    """The first codons[row] codons of each packed row as amino acids, into `out` from begins[row] on.

    of_codon  uint8 [64]: the letter or the symbol of each codon
    """
    # Of one type each, so that numba compiles one function.
    arguments = words, codons.astype(np.int64), of_codon, begins.astype(np.int64), out
    on_threads(_translate, parts_of(len(codons), _ROWS_AT_ONCE), *arguments)


@njit(cache=True, nogil=True)
def _translate(part, words, codons, of_codon, begins, out):  # type: ignore[no-untyped-def]
    for row in range(part[0], part[1]):
        for k in range(codons[row]):
            out[begins[row] + k] = of_codon[codon_at(words[row], k)]
