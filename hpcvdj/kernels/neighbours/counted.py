"""Sequences of individuals with their reads, and lists of them to look others up in."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.neighbours.blocks import groups


@dataclass(frozen=True)
class CountedSequences:
    """Packed sequences of individuals, with their reads.

    words        uint64 [rows, W]: packed nucleotides, zeros behind the last (see `hpcvdj.recombination.alphabet`)
    lengths      uint8 [rows]: how many nucleotides
    reads        int64 [rows], at least 1
    individuals  int64 [rows]: whose row it is
    """

    words: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    reads: NDArray[np.int64]
    individuals: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "CountedSequences":
        return CountedSequences(self.words[rows], self.lengths[rows], self.reads[rows], self.individuals[rows])

    def largest_first(self) -> "CountedSequences":
        """Each sequence of an individual once, with the most reads that a row of it has; the largest first."""
        order = np.argsort(-self.reads, kind="stable")
        first, _ = groups(self.words[order], self.lengths[order].astype(np.int64), self.individuals[order])
        return self[order[np.sort(first)]]


def buckets_for(number: int) -> int:
    """Bits of the number of buckets for some sequences: on average, a bucket has one of them at most."""
    return max(1, (number - 1).bit_length())
