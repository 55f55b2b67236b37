"""The k-mers of each sequence: two bits a base in a 64-bit word, sorted, with their occurrences."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.recombination.alphabet import BASES_PER_WORD

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

    def part(self, first: int, last: int) -> "Kmers":
        """Those of sequences first … last-1."""
        low, high = int(self.offsets[first]), int(self.offsets[last])
        return Kmers(self.k, self.key[low:high], self.count[low:high], self.offsets[first : last + 1] - low)


def require_parameters(k: int, d: int) -> None:
    """Raise InputError unless 4 ≤ k ≤ 32 and 0 ≤ d ≤ 3."""
    if not MIN_K <= k <= MAX_K:
        raise InputError(f"{option('k', k)}: a k-mer has {MIN_K} to {MAX_K} bases")
    if not 0 <= d <= MAX_D:
        raise InputError(f"{option('d', d)}: the largest Hamming distance is 0 to {MAX_D}")
