"""The two-bit alphabet of the paper (section V-A): A=00, C=01, T=10, G=11, four bases to a byte.

A packed sequence is a row of 64-bit words.  A word holds 32 bases, the first one in the two most significant bits.
Written big-endian, the words equal the paper's packing byte for byte.  So one array serves both the paper's kernels
and arithmetic on whole words.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError

BASES = "ACTG"
"""The base of each code: `BASES[code]`."""

BASES_PER_WORD = 32
"""Bases in one 64-bit word."""

INVALID = 255
"""The entry of `CODE_OF_BYTE` for a byte other than A, C, G, T in either case."""


@dataclass(frozen=True, eq=False)
class Letters:
    """An alphabet of ASCII letters, and how its sequences are packed: the first letter in the most significant bits.

    symbols  the letter of each code
    bits     bits of a packed letter
    bases    nucleotides that a letter stands for
    """

    symbols: str
    bits: ClassVar[int] = 2
    bases: ClassVar[int] = 1

    @property
    def readable(self) -> str:
        """The letters that may occur in sequences of tables."""
        return self.symbols

    @property
    def per_word(self) -> int:
        """Letters in one 64-bit word."""
        return 64 // self.bits

    @cached_property
    def code_of_byte(self) -> NDArray[np.uint8]:
        """uint8 [256]: the code of an ASCII byte, or INVALID.

        A lower-case letter has the code of its upper case, unless it is a symbol itself.
        """
        codes = np.full(256, INVALID, dtype=np.uint8)
        for letters in (self.readable.lower(), self.readable):
            for letter, symbol in zip(letters, self.readable, strict=True):
                codes[ord(letter)] = self.symbols.index(symbol)
        return codes

    def words_for(self, length: int) -> int:
        """Return how many 64-bit words `length` letters need; at least one."""
        return max(1, -(-length // self.per_word))


NUCLEOTIDES = Letters(BASES)
"""The letters of nucleotide sequences."""

CODE_OF_BYTE = NUCLEOTIDES.code_of_byte
"""uint8 [256]: the code of an ASCII byte, or INVALID."""

_SHIFTS = np.arange(62, -2, -2).astype(np.uint64)
"""uint64 [BASES_PER_WORD]: the lower bit of each base of a word."""

_GENETIC_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
AMINO_ACIDS = dict(zip(map("".join, product("TCAG", repeat=3)), _GENETIC_CODE, strict=True))
"""The amino acid of each codon in the standard genetic code (NCBI's translation table 1); * is a stop."""

CODONS = tuple(map("".join, product(BASES, repeat=3)))
"""The codon of each number: the code of its first base is in the highest bits."""

RESIDUE_OF_CODON = np.frombuffer("".join(map(AMINO_ACIDS.__getitem__, CODONS)).encode(), np.uint8)
"""uint8 [64]: the letter of each codon's amino acid, by the codon's number."""


def encode(sequence: str) -> NDArray[np.uint8]:
    """Return the codes of `sequence`, in either case, uint8 [len].  ValueError names the first other letter."""
    raw = np.frombuffer(sequence.encode("utf-8"), dtype=np.uint8)
    codes = CODE_OF_BYTE[raw]
    bad = np.flatnonzero(codes == INVALID)
    if bad.size:
        raise ValueError(f"{chr(raw[bad[0]])!r} at position {bad[0] + 1} is not A, C, G or T")
    return codes


def decode(codes: NDArray[np.uint8]) -> str:
    """Return the sequence of these codes: the inverse of `encode`."""
    return "".join(BASES[code] for code in codes)


def reverse_complement(sequence: str) -> str:
    """Return the complementary strand, read 5' to 3'.  `sequence` has upper-case A, C, G, T only."""
    return sequence.translate(str.maketrans("ACGT", "TGCA"))[::-1]


def packed_bytes(length: int) -> int:
    """Return how many bytes `length` bases need, four to a byte (the paper, section V-A)."""
    return -(-length // 4)


def pack(codes: NDArray[np.uint8], words: int) -> NDArray[np.uint64]:
    """Pack `codes` into `words` 64-bit words, uint64 [words].  Raise ValueError if they do not fit."""
    bases = np.zeros(words * BASES_PER_WORD, dtype=np.uint64)
    bases[: len(codes)] = codes
    return np.asarray((bases.reshape(words, BASES_PER_WORD) << _SHIFTS).sum(axis=1))


def unpack(words: NDArray[np.uint64], length: int) -> NDArray[np.uint8]:
    """Return the first `length` codes of a packed sequence, uint8 [length]: the inverse of `pack`."""
    return ((words[:, np.newaxis] >> _SHIFTS) & np.uint64(3)).astype(np.uint8).ravel()[:length]


def _text_of(sequence: Any) -> str:
    """Return a sequence of a list or a column as text, empty if it is missing; raises InputError for anything else."""
    value = sequence.as_py() if hasattr(sequence, "as_py") else sequence
    # pandas' missing values are known by their names: NA cannot be compared.
    if value is None or repr(value) in ("nan", "<NA>"):
        return ""
    if not isinstance(value, str):
        raise InputError(f"translate takes sequences as text; {value!r} is none")
    return value


def translate(sequences: Iterable[str | None]) -> list[str]:
    """Translate sequences of A, C, G and T in either case; the translation of one that is out of frame is empty.

    A codon with any other letter becomes X, and a missing sequence the empty one.  Raises InputError for one text,
    whose letters would be taken for sequences.

    >>> translate(["GCCAGCAGT", "gcctga", "GCNGCC", "GCCA", None])
    ['ASS', 'A*', 'XA', '', '']
    """
    if isinstance(sequences, str):
        raise InputError("translate takes a list of sequences, not one; give [sequence]")
    texts = [_text_of(sequence).upper() for sequence in sequences]
    return [
        "" if len(text) % 3 else "".join(AMINO_ACIDS.get(text[k : k + 3], "X") for k in range(0, len(text), 3))
        for text in texts
    ]
