"""The sequences to compare: read from FASTA or from the junctions of an AIRR table."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import CODE_OF_BYTE, INVALID, decode
from hpcvdj.repertoires.tables import read_batches
from hpcvdj.storage import require_text

_COMPLEMENT_BIT = 2
"""A=00 and T=10, C=01 and G=11: the complement differs in the upper bit."""


@dataclass(frozen=True)
class SequenceSet:
    """Named sequences, one after another.

    names    one per sequence, unique
    codes    uint8 [bases]: two-bit codes; `alphabet.INVALID` for an ambiguous base
    offsets  int64 [sequences + 1]: sequence i is codes[offsets[i]:offsets[i + 1]]
    """

    names: list[str]
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> NDArray[np.uint8]:
        """Codes of sequence i."""
        return self.codes[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each sequence, int64 [sequences]."""
        return np.diff(self.offsets)

    @property
    def ambiguous(self) -> int:
        """Bases that are none of A, C, G, T."""
        return int((self.codes == INVALID).sum())

    def text(self, i: int) -> str:
        """The letters of sequence i, N for an ambiguous base."""
        return "".join("N" if code == INVALID else decode(np.array([code])) for code in self[i])

    def part(self, first: int, last: int) -> SequenceSet:
        """Sequences first … last-1."""
        low, high = int(self.offsets[first]), int(self.offsets[last])
        return SequenceSet(self.names[first:last], self.codes[low:high], self.offsets[first : last + 1] - low)

    def reverse_complement(self) -> SequenceSet:
        """The other strand of each sequence, in the same order and under the same names."""
        # Reversing the whole array reverses each sequence and their order; the latter is put right by indices.
        within = np.arange(len(self.codes)) - np.repeat(self.offsets[:-1], self.lengths)
        source = np.repeat(self.offsets[1:], self.lengths) - 1 - within
        codes = self.codes[source]
        return SequenceSet(self.names, np.where(codes == INVALID, codes, codes ^ _COMPLEMENT_BIT), self.offsets)


def sequence_set(sequences: Iterable[str | bytes], names: Sequence[str] | None = None) -> SequenceSet:
    """A set of `sequences` (letters of either case; what is none of A, C, G, T is ambiguous).

    `names` default to 1, 2, …  InputError if they are not unique.

    >>> some = sequence_set(["ACGT", "aN"])
    >>> len(some), some.ambiguous, some.text(1)
    (2, 1, 'AN')
    """
    raw = [text.encode() if isinstance(text, str) else text for text in sequences]
    offsets = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in raw], out=offsets[1:])
    codes = CODE_OF_BYTE[np.frombuffer(b"".join(raw), dtype=np.uint8)]
    listed = list(names) if names is not None else [str(k + 1) for k in range(len(raw))]
    if len(listed) != len(raw):
        raise InputError(f"{len(raw)} sequences and {len(listed)} names")
    _require_unique(listed)
    _require_texts(listed)
    return SequenceSet(listed, codes, offsets)


def _require_unique(names: list[str]) -> None:
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError(f"two sequences are called {twice!r}; names must differ")


def _require_texts(names: list[str]) -> None:
    wrong = next((name for name in names if "\0" in name), None)
    if wrong is not None:
        raise InputError(f"the name {wrong!r} holds a NUL, which a result cannot; give the sequence another")


def read_fasta(path: str | Path) -> SequenceSet:
    """The sequences of a FASTA file (plain, gzip, bzip2, xz or zstd); a name is the header up to the first blank.

    InputError for what cannot be read, names that repeat, or no sequence at all.
    """
    import dnaio

    path = Path(path)
    if not path.is_file():
        what = "is no plain file: store it first" if path.exists() else "no such file"
        raise InputError(f"{path}: {what}; give a FASTA file or an AIRR table")
    names, texts = [], []
    try:
        with dnaio.open(path, fileformat="fasta", open_threads=0) as records:
            for record in records:
                names.append(record.name.partition(" ")[0].partition("\t")[0])
                texts.append(record.sequence)
    except (dnaio.FileFormatError, OSError, EOFError, ValueError, UnicodeError) as error:
        raise InputError(f"{path}: not a readable FASTA file ({_first_line(error)}); a record begins with >") from None
    return _checked(path, texts, names)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _checked(path: Path, texts: list[str], names: list[str]) -> SequenceSet:
    if not texts:
        raise InputError(f"{path}: no sequences in it; give a file with at least one")
    try:
        return sequence_set(texts, names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_junctions(path: str | Path, field: str = "junction") -> SequenceSet:
    """The distinct sequences of an AIRR table's column `field` (TSV, plain or gzip, or Parquet).

    A sequence is named by the sequence_id of its first row; empty ones are left out.  InputError as `tables` raises,
    or if none is left.
    """
    path = Path(path)
    first: dict[str, str] = {}
    for batch in read_batches(path, ("sequence_id", field)):
        for name, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if text:
                first.setdefault(text.upper(), name)
    return _checked(path, list(first), list(first.values()))


def read_sequences(path: str | Path, field: str = "junction") -> SequenceSet:
    """`read_junctions` of a table, `read_fasta` of what begins with >; the kind is told by the first bytes."""
    path = Path(path)
    require_text(path)
    return read_fasta(path) if not path.is_file() or _begins_as_fasta(path) else read_junctions(path, field)


def _begins_as_fasta(path: Path) -> bool:
    from xopen import xopen

    try:
        with xopen(path, "rb", threads=0) as stream:
            start: bytes = stream.read(4096).lstrip()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read ({_first_line(error)}); copy or compress it again") from None
    return start.startswith(b">") or not start
