"""Sequences as two-bit codes, one after another in an array."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import BASES, CODE_OF_BYTE, INVALID

_COMPLEMENT_BIT = 2
"""A=00 and T=10, C=01 and G=11: the code of the complement differs in the upper bit."""

_LETTERS = np.full(256, ord("N"), dtype=np.uint8)
_LETTERS[: len(BASES)] = list(BASES.encode())

_AMINO_ACIDS = "EFILPQ"
"""Letters of amino acids that are no IUPAC code of nucleotides."""

_IS_AMINO_ACID = np.isin(np.arange(256), list(f"{_AMINO_ACIDS}{_AMINO_ACIDS.lower()}".encode()))

_MOST_AMINO_ACIDS = 0.05
"""The largest share of these letters in nucleotides, which have none.  Drawn junctions of human IGH have 0.20, of IGK
0.42."""


@dataclass(frozen=True)
class SequenceSet:
    """Named sequences.

    names    one for each sequence, unique
    codes    uint8 [bases]: two-bit codes; `alphabet.INVALID` for an ambiguous base
    offsets  int64 [sequences + 1]: sequence i is codes[offsets[i]:offsets[i + 1]]
    """

    names: list[str]
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<{len(self):,} sequences>"

    def __getitem__(self, i: int) -> NDArray[np.uint8]:
        """Codes of sequence i."""
        return self.codes[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each sequence, int64 [sequences]."""
        return np.diff(self.offsets)

    @property
    def digest(self) -> str:
        """SHA-256 of names, lengths and codes."""
        names = "\n".join(self.names).encode()
        return sha256(b"\0".join([names, self.offsets.tobytes(), self.codes.tobytes()])).hexdigest()

    def text(self, i: int) -> str:
        """The letters of sequence i, N for an ambiguous base."""
        return _LETTERS[self[i]].tobytes().decode()

    def part(self, first: int, last: int) -> "SequenceSet":
        """Sequences first … last-1."""
        low, high = int(self.offsets[first]), int(self.offsets[last])
        return SequenceSet(self.names[first:last], self.codes[low:high], self.offsets[first : last + 1] - low)

    @staticmethod
    def joined(sets: Sequence["SequenceSet"], names: Sequence[str]) -> "SequenceSet":
        """The sequences of sets that follow each other, by other names; InputError as of `sequence_set`."""
        lengths = np.concatenate([part.lengths for part in sets])
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return SequenceSet(_checked_names(names), np.concatenate([part.codes for part in sets]), offsets)

    def reverse_complement(self) -> "SequenceSet":
        """The other strand of each sequence, in the same order and under the same names."""
        within = np.arange(len(self.codes)) - np.repeat(self.offsets[:-1], self.lengths)
        codes = self.codes[np.repeat(self.offsets[1:], self.lengths) - 1 - within]
        return SequenceSet(self.names, np.where(codes == INVALID, codes, codes ^ _COMPLEMENT_BIT), self.offsets)


def sequence_set(sequences: Iterable[str], names: Sequence[str] | None = None) -> SequenceSet:
    """A set of `sequences`: letters of either case; letters other than A, C, G and T are ambiguous bases.

    names  1, 2, … by default.  InputError unless they are unique and without NUL characters

    Raise InputError if the sequences look like amino acids.

    >>> sequences = sequence_set(["ACGT", "aN"])
    >>> len(sequences), sequences.text(1)
    (2, 'AN')
    """
    raw = [text.encode() for text in sequences]
    offsets = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in raw], out=offsets[1:])
    letters = np.frombuffer(b"".join(raw), dtype=np.uint8)
    amino_acids = np.count_nonzero(_IS_AMINO_ACID[letters]) / max(1, len(letters))
    if amino_acids > _MOST_AMINO_ACIDS:
        raise InputError(
            f"the sequences look like amino acids ({100 * amino_acids:.0f} % of the letters are "
            f"{', '.join(_AMINO_ACIDS[:-1])} or {_AMINO_ACIDS[-1]}); motifs are compared in nucleotides: give these"
        )
    listed = list(names) if names is not None else [str(k + 1) for k in range(len(raw))]
    if len(listed) != len(raw):
        raise InputError(f"{len(raw)} sequences and {len(listed)} names; give one name for each sequence")
    return SequenceSet(_checked_names(listed), CODE_OF_BYTE[letters], offsets)


def _checked_names(names: Sequence[str]) -> list[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"two sequences are called {name!r}; rename one of them")
        if "\0" in name:
            raise InputError(f"the name {name!r} has a NUL character; rename the sequence")
        seen.add(name)
    return list(names)
