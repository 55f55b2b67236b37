"""The k-mers of each sequence: two bits a base in a 64-bit word, sorted, with their occurrences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.recombination.alphabet import BASES_PER_WORD, INVALID

MIN_K, MAX_K = 4, BASES_PER_WORD
"""Lengths of k-mers."""

MAX_D = 3
"""The largest Hamming distance."""

MAX_KMERS = (1 << 16) - 1
"""K-mers of a sequence: a counter, which is a sum of products of occurrences, is then below 2^32."""


@dataclass(frozen=True)
class Kmers:
    """The distinct k-mers of each sequence of a set.

    k        bases of a k-mer
    key      uint64 [k-mers]: two bits a base, the first base in bits 2k-1 and 2k-2; ascending within a sequence
    count    uint32 [k-mers]: occurrences in the sequence (f_i); all 1 in distinct mode
    offsets  int64 [sequences + 1]: sequence i has k-mers offsets[i] … offsets[i + 1] - 1
    """

    k: int
    key: NDArray[np.uint64]
    count: NDArray[np.uint32]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        """Sequences."""
        return len(self.offsets) - 1

    @property
    def totals(self) -> NDArray[np.int64]:
        """Occurrences of all k-mers of each sequence, int64 [sequences]."""
        sums = np.concatenate([[0], np.cumsum(self.count, dtype=np.int64)])
        return np.asarray(sums[self.offsets[1:]] - sums[self.offsets[:-1]])

    def part(self, first: int, last: int) -> Kmers:
        """Those of sequences first … last-1."""
        low, high = int(self.offsets[first]), int(self.offsets[last])
        return Kmers(self.k, self.key[low:high], self.count[low:high], self.offsets[first : last + 1] - low)


def require_parameters(k: int, d: int) -> None:
    """Raise InputError unless 4 ≤ k ≤ 32 and 0 ≤ d ≤ 3."""
    if not MIN_K <= k <= MAX_K:
        raise InputError(f"-k {k}: a k-mer has {MIN_K} to {MAX_K} bases")
    if not 0 <= d <= MAX_D:
        raise InputError(f"-d {d}: the largest Hamming distance is 0 to {MAX_D}")


@dataclass(frozen=True)
class Profile:
    """Sequences and how their k-mers are counted.

    distinct  each k-mer counts once, however often it occurs in a sequence
    """

    sequences: SequenceSet
    k: int
    distinct: bool = False

    def __len__(self) -> int:
        return len(self.sequences)

    @cached_property
    def kmers(self) -> Kmers:
        """The k-mers, on the host.  InputError as of `require_countable`."""
        from hpcvdj.kernels.kmers.kmers_cpu import kmers_of  # compiled by numba, which is slow to import

        self.require_countable()
        return kmers_of(self.sequences, self.k, distinct=self.distinct)

    @cached_property
    def windows(self) -> NDArray[np.int64]:
        """Windows of k unambiguous bases of each sequence, int64 [sequences]: occurrences of its k-mers."""
        offsets = self.sequences.offsets
        invalid = np.concatenate([[0], np.cumsum(self.sequences.codes == INVALID)])
        clear = invalid[self.k :] == invalid[: -self.k]
        clear_before = np.concatenate([[0], np.cumsum(clear)])
        first = np.minimum(offsets[:-1], len(clear))
        last = np.clip(offsets[1:] - self.k + 1, first, len(clear))
        return np.asarray(clear_before[last] - clear_before[first])

    @property
    def skipped(self) -> int:
        """Windows of k bases that have an ambiguous base."""
        return int((np.maximum(self.sequences.lengths - self.k + 1, 0) - self.windows).sum())

    def require_countable(self) -> None:
        """Raise InputError for a sequence that may have more than 65,535 k-mers."""
        lengths = self.sequences.lengths
        if len(lengths) and lengths.max() - self.k + 1 > MAX_KMERS:
            i = int(lengths.argmax())
            raise InputError(
                f"sequence {self.sequences.names[i]} has {lengths[i]:,} bases; a sequence may have {MAX_KMERS:,} "
                "k-mers: cut it into parts"
            )

    def part(self, first: int, last: int) -> Profile:
        """Sequences first … last-1."""
        part = Profile(self.sequences.part(first, last), self.k, self.distinct)
        if "kmers" in self.__dict__:
            part.__dict__["kmers"] = self.kmers.part(first, last)
        return part

    def reverse_complement(self) -> Profile:
        """The other strands."""
        return Profile(self.sequences.reverse_complement(), self.k, self.distinct)


def profile(sequences: SequenceSet, k: int, d: int, *, distinct: bool = False) -> Profile:
    """The profile of `sequences` for a comparison within distance d; InputError for k or d out of range."""
    require_parameters(k, d)
    return Profile(sequences, k, distinct)
