"""Sequences that differ in a few bases from one with many times their reads, on CPU cores.

Of the positions in p parts, m exchanged bases leave at least p - m parts as they are.  So for each choice of m parts, a
sequence is looked up by its bases in the others, and compared with the sequences that have the same bases there, those
with the most reads first.  Few parts need few look-ups, but if sequences are alike, a look-up finds many.  So it ends
after `MOST_COMPARED` comparisons; the sequences that had more to be compared with, and no result, are looked up with
twice as many parts.  With `MANY_PARTS`, all bases but a few are the same, which few different sequences have, and every
comparison is made; also if few sequences are left.  The result is that of comparing all pairs.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.bits import popcount
from hpcvdj.kernels.neighbours.blocks import fill
from hpcvdj.kernels.neighbours.counted import CountedSequences, buckets_for
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.alphabet import BASES_PER_WORD

MOST_COMPARED = 64
"""Comparisons after which a look-up ends."""

MANY_PARTS = 24
"""Of so many parts, or more, look-ups make every comparison."""

LISTING = 10
"""To list sequences by their bases takes about as long as to compare them with so many others."""

ROWS_AT_ONCE = 4096
"""Rows that a thread takes at once."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LOW_BITS = np.uint64(0x5555555555555555)
_OPEN, _FOUND = 1, 2


def exchanged(queries: CountedSequences, others: CountedSequences, most: int, times: int) -> NDArray[np.bool_]:
    """Which sequences differ in 1 to `most` bases from another of their length and individual with `times` their reads.

    others  as of `CountedSequences.largest_first`
    """
    out = np.zeros(len(queries), dtype=bool)
    others = others[others.reads // times >= queries.reads.min(initial=np.iinfo(np.int64).max)]
    others = others[np.argsort(others.lengths, kind="stable")]
    limits, sizes = others.reads // times, np.bincount(others.lengths, minlength=256)
    bits = np.array([buckets_for(int(size)) for size in sizes])
    # A length that no sequence has needs no buckets.
    first, shifts = np.concatenate([[0], np.cumsum(np.where(sizes, 1 << bits, 0))]), (64 - bits).astype(np.uint64)
    bucket, members = np.empty((2, len(others)), dtype=np.int64)
    left = np.flatnonzero(queries.reads <= limits.max(initial=0))
    parts = most + 1
    while len(left):
        few = len(left) <= LISTING * comb(parts, most)
        words = queries.words.shape[1]
        kept = [np.zeros(words, dtype=np.uint64)] if few else _kept_bases(parts, most, words)
        most_compared = len(others) if few or parts >= MANY_PARTS else MOST_COMPARED
        state = np.zeros(len(left), dtype=np.uint8)
        for bases in kept:
            starts = np.zeros(first[-1] + 1, dtype=np.int64)
            on_threads(
                _buckets, parts_of(len(others), ROWS_AT_ONCE), others.words, others.lengths, others.individuals, bases,
                first, shifts, bucket,
            )  # fmt: skip
            fill(bucket, starts, members)
            on_threads(
                _look_up, parts_of(len(left), ROWS_AT_ONCE), queries.words, queries.lengths, queries.reads,
                queries.individuals, left, bases, first, shifts, starts, members, others.words, limits,
                others.individuals, most, most_compared, state,
            )  # fmt: skip
        out[left[state == _FOUND]] = True
        left = left[state == _OPEN]
        parts *= 2
    return out


def _kept_bases(parts: int, most: int, words: int) -> Iterator[NDArray[np.uint64]]:
    """For each choice of `most` parts, the bits of the bases in the others, uint64 [words].

    The parts are interleaved, since the bases at the ends of a junction, which V and J determine, tell little.
    """
    position = np.arange(words * BASES_PER_WORD)
    bits = np.uint64(3) << (np.uint64(62) - 2 * (position % BASES_PER_WORD).astype(np.uint64))
    for chosen in combinations(range(parts), most):
        kept = np.where(np.isin(position % parts, chosen), np.uint64(0), bits)
        yield np.bitwise_or.reduce(kept.reshape(words, BASES_PER_WORD), axis=1)


@njit(cache=True, nogil=True, forceinline=True)
def _bucket_of(words, length, individual, kept, first, shifts):  # type: ignore[no-untyped-def]
    value = np.uint64(individual) * _FACTOR
    for word in range(len(kept)):
        value = (value ^ (words[word] & kept[word])) * _FACTOR
        value ^= value >> np.uint64(32)
    return first[length] + np.int64((value * _FACTOR) >> shifts[length])


@njit(cache=True, nogil=True)
def _buckets(part, words, lengths, individuals, kept, first, shifts, out):  # type: ignore[no-untyped-def]
    for row in range(part[0], part[1]):
        out[row] = _bucket_of(words[row], lengths[row], individuals[row], kept, first, shifts)


@njit(cache=True, nogil=True, forceinline=True)
def _exchanges(a, b):  # type: ignore[no-untyped-def]
    """In how many bases two packed sequences of equal length differ."""
    found = np.int64(0)
    for word in range(len(a)):
        differs = a[word] ^ b[word]
        found += popcount((differs | (differs >> np.uint64(1))) & _LOW_BITS)
    return found


@njit(cache=True, nogil=True)
def _look_up(  # type: ignore[no-untyped-def]
    part, words, lengths, reads, individuals, rows, kept, first, shifts, starts, members, other_words, limits,
    other_individuals, most, most_compared, state,
):  # fmt: skip
    for number in range(part[0], part[1]):
        row = rows[number]
        length = lengths[row]
        if state[number] == _FOUND or first[length] == first[length + 1]:
            continue
        bucket = _bucket_of(words[row], length, individuals[row], kept, first, shifts)
        for place in range(starts[bucket], starts[bucket + 1]):
            other = members[place]
            if limits[other] < reads[row]:
                break
            if place - starts[bucket] == most_compared:
                state[number] = _OPEN
                break
            if 0 < _exchanges(words[row], other_words[other]) <= most and other_individuals[other] == individuals[row]:
                state[number] = _FOUND
                break
