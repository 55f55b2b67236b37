"""The k-mers of each sequence: two bits a base, in a 64-bit word, sorted, with their occurrence counts."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.motifs.sequences import SequenceSet
from hpcvdj.recombination.alphabet import INVALID

MIN_K, MAX_K = 4, 32
"""Lengths of k-mers; 32 bases fill a 64-bit word."""

MAX_D = 3
"""The largest Hamming distance."""


@dataclass(frozen=True)
class Kmers:
    """The distinct k-mers of each sequence of a set.

    k        bases of a k-mer
    key      uint64 [k-mers]: two bits a base, the first base in bits 2k-1 and 2k-2; ascending within a sequence
    count    uint32 [k-mers]: occurrences in the sequence (f_i); all 1 in distinct mode
    offsets  int64 [sequences + 1]: sequence i has k-mers offsets[i] … offsets[i + 1] - 1
    skipped  windows of k bases that hold an ambiguous one
    """

    k: int
    key: NDArray[np.uint64]
    count: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    skipped: int = 0

    def __len__(self) -> int:
        """Sequences."""
        return len(self.offsets) - 1

    @property
    def sequence(self) -> NDArray[np.int32]:
        """The sequence of each k-mer, int32 [k-mers]."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.offsets))

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
    """InputError unless 4 ≤ k ≤ 32, 0 ≤ d ≤ 3 and d < k."""
    if not MIN_K <= k <= MAX_K:
        raise InputError(f"k = {k}: k-mers have {MIN_K} to {MAX_K} bases")
    if not 0 <= d <= MAX_D:
        raise InputError(f"d = {d}: the Hamming distance goes from 0 to {MAX_D}")


def kmers_of(sequences: SequenceSet, k: int, *, distinct: bool = False) -> Kmers:
    """The k-mers of each of `sequences`; `distinct` counts each once however often it occurs.

    A window with an ambiguous base gives no k-mer.  InputError for k outside 4 … 32.

    >>> from hpcvdj.motifs.sequences import sequence_set
    >>> some = kmers_of(sequence_set(["AAAAA", "ACGTNAC"]), 4)
    >>> some.key.tolist(), some.count.tolist(), some.offsets.tolist(), some.skipped
    ([0, 30], [2, 1], [0, 1, 2], 3)
    """
    require_parameters(k, 0)
    key = np.empty(max(1, len(sequences.codes)), dtype=np.uint64)
    count = np.empty(len(key), dtype=np.uint32)
    found = np.zeros(len(sequences), dtype=np.int64)
    _collect(sequences.codes, sequences.offsets, k, key, count, found)
    offsets = np.concatenate([[0], np.cumsum(found)])
    kept = np.arange(offsets[-1]) + np.repeat(sequences.offsets[:-1] - offsets[:-1], found)
    windows = int(np.maximum(sequences.lengths - k + 1, 0).sum())
    counted = count[kept]
    skipped = windows - int(counted.sum(dtype=np.int64))
    return Kmers(k, key[kept], np.ones_like(counted) if distinct else counted, offsets, skipped)


@numba.njit(parallel=True, cache=True)
def _collect(codes, offsets, k, key, count, found):  # type: ignore[no-untyped-def]
    """For each sequence, from offsets[i] on: its sorted distinct keys, their counts; `found` says how many."""
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 2 * k)
    for i in numba.prange(len(found)):
        first, last = offsets[i], offsets[i + 1]
        word, run, n = np.uint64(0), 0, 0
        for p in range(first, last):
            code = codes[p]
            run = 0 if code == INVALID else run + 1
            word = ((word << np.uint64(2)) | np.uint64(code & 3)) & mask
            if run >= k:
                key[first + n] = word
                n += 1
        if n == 0:
            continue
        mine = np.sort(key[first : first + n])
        unique = 0
        for p in range(n):
            if unique and key[first + unique - 1] == mine[p]:
                count[first + unique - 1] += np.uint32(1)
            else:
                key[first + unique] = mine[p]
                count[first + unique] = np.uint32(1)
                unique += 1
        found[i] = unique
