"""The letters of packed junctions, those of their amino acids, and which junctions are productive."""

from itertools import product

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hpcvdj.recombination.alphabet import AMINO_ACIDS, BASES, BASES_PER_WORD
from hpcvdj.recombination.productive import FIRST, LAST

_LETTERS = np.frombuffer(BASES.encode(), np.uint8)
_RESIDUE = np.frombuffer("".join(AMINO_ACIDS["".join(codon)] for codon in product(BASES, repeat=3)).encode(), np.uint8)
_IS_FIRST, _IS_LAST = (np.isin(np.arange(256), list(letters.encode())) for letters in (FIRST, LAST))
_STOP = ord("*")


@njit(cache=True, nogil=True, parallel=True)
def productive_rows(words: NDArray[np.uint64], lengths: NDArray[np.uint16], productive: NDArray[np.bool_]) -> None:
    """Whether each junction is productive as `hpcvdj.recombination.productive` defines it, into bool [rows]."""
    for row in prange(len(lengths)):
        codons = lengths[row] // 3
        kept = lengths[row] % 3 == 0 and codons > 1
        if kept:
            kept = _IS_FIRST[_residue(words[row], 0)] and _IS_LAST[_residue(words[row], codons - 1)]
        for k in range(codons):
            if not kept:
                break
            kept = _residue(words[row], k) != _STOP
        productive[row] = kept


@njit(cache=True, nogil=True, parallel=True)
def unpack_spans(
    words: NDArray[np.uint64], begins: NDArray[np.int64], offsets: NDArray[np.int32], out: NDArray[np.uint8]
) -> None:
    """The letters of a span of each packed row, from base `begins[row]` on, into out[offsets[row]:offsets[row + 1]]."""
    for row in prange(len(begins)):
        for k in range(offsets[row + 1] - offsets[row]):
            out[offsets[row] + k] = _LETTERS[_code(words[row], begins[row] + k)]


@njit(cache=True, nogil=True, parallel=True)
def translate_spans(words: NDArray[np.uint64], offsets: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
    """The amino acids of each packed row, one letter each, into out[offsets[row]:offsets[row + 1]]."""
    for row in prange(len(words)):
        for k in range(offsets[row + 1] - offsets[row]):
            out[offsets[row] + k] = _residue(words[row], k)


@njit(cache=True, nogil=True)
def _code(packed, place):  # type: ignore[no-untyped-def]
    """The code of a packed sequence's base."""
    return np.int64(packed[place // BASES_PER_WORD] >> np.uint64(62 - 2 * (place % BASES_PER_WORD)) & np.uint64(3))


@njit(cache=True, nogil=True)
def _residue(packed, codon):  # type: ignore[no-untyped-def]
    """The letter of a packed sequence's codon."""
    code, begin = 0, 3 * np.int64(codon)
    for place in range(begin, begin + 3):
        code = 4 * code + _code(packed, place)
    return _RESIDUE[code]
