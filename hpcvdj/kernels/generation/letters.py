"""The letters of drawn junctions, which are packed, and which of them are productive."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.text import base_at, codon_at
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.alphabet import BASES, RESIDUE_OF_CODON
from hpcvdj.recombination.productive import FIRST, LAST

_ROWS_AT_ONCE = 1 << 14

_LETTERS = np.frombuffer(BASES.encode(), np.uint8)
_IS_FIRST, _IS_LAST = (np.isin(RESIDUE_OF_CODON, list(letters.encode())) for letters in (FIRST, LAST))
_IS_STOP = RESIDUE_OF_CODON == ord("*")


# `PRODUCTIVE` says the same of tables' text.  Here it would take 9 to 17 % more time of `hpcvdj generate --productive`,
# which draws four junctions for each that it keeps, and would have to translate them all.
@njit(cache=True, nogil=True)
def _is_productive(words, length):  # type: ignore[no-untyped-def]
    codons = length // 3
    kept = length % 3 == 0 and codons > 1
    if kept:
        kept = _IS_FIRST[codon_at(words, 0)] and _IS_LAST[codon_at(words, codons - 1)]
    for k in range(codons):
        if not kept:
            break
        kept = not _IS_STOP[codon_at(words, k)]
    return kept


def productive_rows(words: NDArray[np.uint64], lengths: NDArray[np.uint16], productive: NDArray[np.bool_]) -> None:
    """Whether each junction is productive as `hpcvdj.recombination.productive` defines it, into bool [rows]."""
    on_threads(productive_part, parts_of(len(lengths), _ROWS_AT_ONCE), words, lengths, productive)


@njit(cache=True, nogil=True)
def productive_part(
    part: tuple[int, int], words: NDArray[np.uint64], lengths: NDArray[np.uint16], productive: NDArray[np.bool_]
) -> None:
    """The same of the rows of a part (first, end), on one core."""
    for row in range(part[0], part[1]):
        productive[row] = _is_productive(words[row], lengths[row])


def unpack_spans(
    words: NDArray[np.uint64], begins: NDArray[np.int64], offsets: NDArray[np.int32], out: NDArray[np.uint8]
) -> None:
    """The letters of a span of each packed row, from base `begins[row]` on, into out[offsets[row]:offsets[row + 1]]."""
    on_threads(_unpack, parts_of(len(begins), _ROWS_AT_ONCE), words, begins, offsets, out)


@njit(cache=True, nogil=True)
def _unpack(part, words, begins, offsets, out):  # type: ignore[no-untyped-def]
    for row in range(part[0], part[1]):
        for k in range(offsets[row + 1] - offsets[row]):
            out[offsets[row] + k] = _LETTERS[np.int64(base_at(words[row], begins[row] + k))]
