"""The k-mers of each sequence, and what scores need to know of them, computed by all threads."""

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.bits import popcount
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.alphabet import INVALID

SEQUENCES_AT_ONCE = 64
"""Sequences that a thread takes at a time."""


def kmers_of(sequences: SequenceSet, k: int, *, distinct: bool = False) -> Kmers:
    """The k-mers of each of `sequences`; `distinct` counts each once, however often it occurs.

    Windows with an ambiguous base are skipped.

    >>> from hpcvdj.kernels.kmers.sequences import sequence_set
    >>> kmers = kmers_of(sequence_set(["ACGTACG", "ACGNACGT"]), 4)
    >>> kmers.count.tolist(), kmers.offsets.tolist()
    ([1, 1, 1, 1, 1], [0, 4, 5])
    """
    bases = len(sequences.codes)
    key, count = np.empty(bases, dtype=np.uint64), np.empty(bases, dtype=np.uint32)
    kept = np.zeros(len(sequences), dtype=np.int64)
    parts = parts_of(len(sequences), SEQUENCES_AT_ONCE)
    on_threads(_collect, parts, sequences.codes, sequences.offsets, k, key, count, kept)
    offsets = np.concatenate([[0], np.cumsum(kept)])
    source = np.arange(offsets[-1]) + np.repeat(sequences.offsets[:-1] - offsets[:-1], kept)
    counted = count[source]
    return Kmers(k, key[source], np.ones_like(counted) if distinct else counted, offsets)


@numba.njit(cache=True, nogil=True)
def _collect(part, codes, offsets, k, key, count, kept):  # type: ignore[no-untyped-def]
    """From offsets[i] on, the kept[i] distinct keys of sequence i, ascending, and their counts."""
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 2 * k)
    for i in range(part[0], part[1]):
        first, last = offsets[i], offsets[i + 1]
        word, run, windows = np.uint64(0), 0, 0
        for p in range(first, last):
            code = codes[p]
            run = 0 if code == INVALID else run + 1
            word = ((word << np.uint64(2)) | np.uint64(code & 3)) & mask
            if run >= k:
                key[first + windows] = word
                windows += 1
        if windows == 0:
            continue
        ascending = np.sort(key[first : first + windows])
        unique = 0
        for p in range(windows):
            if unique and key[first + unique - 1] == ascending[p]:
                count[first + unique - 1] += np.uint32(1)
            else:
                key[first + unique] = ascending[p]
                count[first + unique] = np.uint32(1)
                unique += 1
        kept[i] = unique


def own_and_expected(kmers: Kmers, d: int, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """D_h(i, i) and e_h(i) of each sequence, float64 [2, d + 1, sequences].

    e_h(i) is the sum over the k-mers of sequence i of the probability that a random k-mer is at distance h.

    frequencies  float64 [4]: of the bases, by code
    """
    sums = np.zeros((2, d + 1, len(kmers)))
    parts = parts_of(len(kmers), SEQUENCES_AT_ONCE)
    on_threads(_add_own_and_expected, parts, kmers.key, kmers.count, kmers.offsets, kmers.k, d, frequencies, *sums)
    return sums


@numba.njit(cache=True, nogil=True)
def _add_own_and_expected(part, key, count, offsets, k, d, frequencies, diagonal, expected):  # type: ignore[no-untyped-def]
    pairs = np.uint64(0x5555555555555555)
    for i in range(part[0], part[1]):
        chance = np.zeros(d + 1)
        for p in range(offsets[i], offsets[i + 1]):
            # The probabilities of 0 … d mismatches, one position after another.
            chance[:] = 0.0
            chance[0] = 1.0
            for q in range(k):
                same = frequencies[np.int64((key[p] >> np.uint64(2 * q)) & np.uint64(3))]
                for h in range(d, 0, -1):
                    chance[h] = chance[h] * same + chance[h - 1] * (1 - same)
                chance[0] *= same
            for h in range(d + 1):
                expected[h, i] += count[p] * chance[h]
            diagonal[0, i] += np.float64(count[p]) * np.float64(count[p])
            for q in range(p + 1, offsets[i + 1]):
                z = key[p] ^ key[q]
                h = popcount((z | (z >> np.uint64(1))) & pairs)
                if h <= d:
                    diagonal[h, i] += 2.0 * np.float64(count[p]) * np.float64(count[q])
