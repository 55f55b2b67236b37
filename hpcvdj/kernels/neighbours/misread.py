"""Junctions that are likely to be misread from a much larger one, on CPU cores."""

import numpy as np
from numba import njit, parallel_chunksize, prange
from numpy.typing import NDArray

TIMES_THE_READS = 20
"""A junction is a likely sequencing error of one with one base exchanged that has so many times its reads, or with two
that has the square of it times.  The ratio is that of VDJtools' `Correct` (Shugay et al., PLoS Computational Biology
11:e1004503, 2015)."""


def misread(words: NDArray[np.uint64], reads: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each junction is likely to be misread from one of its class and length.

    words   uint64 [junctions, words]: packed, different in each block
    reads   int64 [junctions], at least 1
    starts  int64 [blocks + 1]: as of `hpcvdj.kernels.neighbours.blocks.blocks`

    Compares each junction with those that have enough reads, of which there are few, the largest first.
    """
    larger = np.flatnonzero(reads >= TIMES_THE_READS)
    block = np.searchsorted(starts, larger, side="right")
    larger = larger[np.lexsort((-reads[larger], block))]
    first_larger = np.searchsorted(np.sort(block), np.arange(1, len(starts) + 1))
    out = np.zeros(len(words), dtype=bool)
    largest_first = np.argsort(-np.diff(starts), kind="stable")
    with parallel_chunksize(1):
        _mark(words, reads, starts, largest_first, larger, first_larger, out)
    return out


@njit(cache=True, nogil=True, parallel=True)
def _mark(words, reads, starts, blocks_in_turn, larger, first_larger, out):  # type: ignore[no-untyped-def]
    for number in prange(len(blocks_in_turn)):
        block = blocks_in_turn[number]
        for row in range(starts[block], starts[block + 1]):
            for place in range(first_larger[block], first_larger[block + 1]):
                other = larger[place]
                if reads[other] < TIMES_THE_READS * reads[row]:
                    break
                exchanges = _exchanges(words[other], words[row])
                if exchanges == 1 or (exchanges == 2 and reads[other] >= TIMES_THE_READS**2 * reads[row]):
                    out[row] = True
                    break


@njit(cache=True, nogil=True)
def _exchanges(a, b):  # type: ignore[no-untyped-def]
    """In how many bases two packed sequences of equal length differ; counted up to 3."""
    found = 0
    for word in range(len(a)):
        differs = a[word] ^ b[word]
        differs = (differs | (differs >> np.uint64(1))) & np.uint64(0x5555555555555555)
        while differs and found < 3:
            differs &= differs - np.uint64(1)
            found += 1
    return found
