"""The sequences that studies of motif comparison take: those of a FASTA file, or random ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.motifs.sequences import read_fasta
from hpcvdj.recombination.alphabet import BASES


def random_sequences(number: int, length: int, seed: int) -> SequenceSet:
    """`number` sequences of `length` bases, all four equally likely."""
    codes = np.random.default_rng(seed).integers(0, len(BASES), number * length, dtype=np.uint8)
    return SequenceSet([str(i + 1) for i in range(number)], codes, np.arange(number + 1, dtype=np.int64) * length)


def with_other_strands(sequences: SequenceSet) -> SequenceSet:
    """The sequences, then their reverse complements: the thesis's 9,184 from 4,592 (section 5.b)."""
    other = sequences.reverse_complement()
    names = [f"{name}{strand}" for strand in "+-" for name in sequences.names]
    offsets = np.concatenate([sequences.offsets, other.offsets[1:] + sequences.offsets[-1]])
    return SequenceSet(names, np.concatenate([sequences.codes, other.codes]), offsets)


def joined(sequences: SequenceSet, times: int) -> SequenceSet:
    """Each run of `times` neighbours as one sequence; an incomplete run at the end is left out."""
    number = len(sequences) // times
    offsets = sequences.offsets[: number * times + 1 : times]
    return SequenceSet(sequences.names[: number * times : times], sequences.codes[: offsets[-1]], offsets)


@dataclass(frozen=True)
class Source:
    """The first `number` sequences of a FASTA file, or random ones of `length` bases; and their other strands."""

    fasta: Path | None
    number: int
    length: int = 500
    seed: int = 1
    both_strands: bool = False

    @property
    def name(self) -> str:
        """The name of the file, or the seed."""
        return self.fasta.name if self.fasta else f"random, seed {self.seed}"

    def read(self, times: int = 1) -> tuple[SequenceSet, int]:
        """The sequences to compare, each `times` as long, and how many the source has in all."""
        if self.fasta is None:
            sequences = random_sequences(self.number, self.length * times, self.seed)
        else:
            sequences = joined(read_fasta(self.fasta), times)
        number = min(self.number, len(sequences))
        if self.both_strands:
            both = with_other_strands(sequences.part(0, number))
            return both, len(both)
        return sequences.part(0, number), len(sequences)
