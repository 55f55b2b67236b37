"""The sequences that studies of motif comparison take: a FASTA file's, or random ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcvdj.motifs.sequences import SequenceSet, read_fasta
from hpcvdj.recombination.alphabet import BASES


def random_sequences(number: int, length: int, seed: int) -> SequenceSet:
    """`number` sequences of `length` bases, all four as likely."""
    codes = np.random.default_rng(seed).integers(0, len(BASES), number * length, dtype=np.uint8)
    return SequenceSet([str(i + 1) for i in range(number)], codes, np.arange(number + 1, dtype=np.int64) * length)


def with_other_strands(sequences: SequenceSet) -> SequenceSet:
    """The sequences, then their reverse complements: the thesis's 9,184 of 4,592 (section 5.b)."""
    other = sequences.reverse_complement()
    names = [f"{name}{strand}" for strand in "+-" for name in sequences.names]
    offsets = np.concatenate([sequences.offsets, other.offsets[1:] + sequences.offsets[-1]])
    return SequenceSet(names, np.concatenate([sequences.codes, other.codes]), offsets)


def joined(sequences: SequenceSet, times: int) -> SequenceSet:
    """Every `times` neighbours as one sequence; what is left over at the end is left out."""
    number = len(sequences) // times
    offsets = sequences.offsets[: number * times + 1 : times]
    return SequenceSet(sequences.names[: number * times : times], sequences.codes[: offsets[-1]], offsets)


@dataclass(frozen=True)
class Source:
    """The first `number` sequences of a FASTA file, or so many random ones; their other strands too if asked."""

    fasta: Path | None
    number: int
    length: int = 500
    seed: int = 1
    both_strands: bool = False

    def read(self, times: int = 1) -> tuple[SequenceSet, int]:
        """The sequences, and how many of them to take; each `times` as long. InputError for a bad file."""
        if self.fasta is None:
            made = random_sequences(self.number, self.length * times, self.seed)
        else:
            made = joined(read_fasta(self.fasta), times)
        if not self.both_strands:
            return made, self.number
        return with_other_strands(made.part(0, min(self.number, len(made)))), 2 * self.number
