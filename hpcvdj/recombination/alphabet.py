"""The two-bit alphabet of the paper (section V-A): A=00, C=01, T=10, G=11, four bases to a byte.

A packed sequence is a row of 64-bit words, 32 bases to a word, the first base in the most significant two
bits.  Written big-endian, the words are byte for byte the paper's packing (first base in a byte's upper
bits, zeros after the last base), so one array serves both the paper's kernels and whole-word arithmetic.
"""

import numpy as np
from numpy.typing import NDArray

BASES = "ACTG"
"""The base of each code: `BASES[code]`."""

BASES_PER_WORD = 32
"""Bases in one 64-bit word."""

INVALID = 255
"""The entry of `CODE_OF_BYTE` for a byte other than A, C, G, T in either case."""

_COMPLEMENT = str.maketrans("ACGT", "TGCA")


def _code_of_byte() -> NDArray[np.uint8]:
    table = np.full(256, INVALID, dtype=np.uint8)
    for code, base in enumerate(BASES):
        table[ord(base)] = table[ord(base.lower())] = code
    return table


CODE_OF_BYTE = _code_of_byte()
"""uint8 [256]: the code of an ASCII byte, or INVALID."""


def encode(sequence: str) -> NDArray[np.uint8]:
    """Codes of `sequence`, uint8 [len]; lower case is read.  ValueError names the first other letter."""
    raw = np.frombuffer(sequence.encode("utf-8"), dtype=np.uint8)
    codes = CODE_OF_BYTE[raw]
    bad = np.flatnonzero(codes == INVALID)
    if bad.size:
        raise ValueError(f"{chr(raw[bad[0]])!r} at position {bad[0] + 1} is not A, C, G or T")
    return codes


def decode(codes: NDArray[np.uint8]) -> str:
    """The letters of `codes`."""
    return "".join(BASES[code] for code in codes)


def reverse_complement(sequence: str) -> str:
    """The complementary strand read 5' to 3'; `sequence` is upper-case A, C, G, T."""
    return sequence.translate(_COMPLEMENT)[::-1]


def words_for(length: int) -> int:
    """64-bit words for `length` bases; at least one."""
    return max(1, -(-length // BASES_PER_WORD))


def packed_bytes(length: int) -> int:
    """Bytes of `length` bases at four to a byte (the paper, section V-A)."""
    return -(-length // 4)


def pack(codes: NDArray[np.uint8], words: int | None = None) -> NDArray[np.uint64]:
    """Pack `codes` into `words` 64-bit words (by default as few as possible), uint64 [words].

    ValueError if they do not fit.
    """
    count = words_for(len(codes)) if words is None else words
    if len(codes) > count * BASES_PER_WORD:
        raise ValueError(f"{len(codes)} bases do not fit into {count} words")
    out = np.zeros(count, dtype=np.uint64)
    for position, code in enumerate(codes):
        word, within = divmod(position, BASES_PER_WORD)
        out[word] |= np.uint64(int(code) << (62 - 2 * within))
    return out


def unpack(words: NDArray[np.uint64], length: int) -> NDArray[np.uint8]:
    """The first `length` codes of a packed sequence, uint8 [length]: the inverse of `pack`."""
    position = np.arange(length)
    shift = (62 - 2 * (position % BASES_PER_WORD)).astype(np.uint64)
    return ((words[position // BASES_PER_WORD] >> shift) & np.uint64(3)).astype(np.uint8)
