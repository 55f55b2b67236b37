"""Sequences that are one inserted or deleted base away from one with more reads, on CPU cores."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.neighbours.blocks import fill
from hpcvdj.kernels.neighbours.counted import CountedSequences, buckets_for
from hpcvdj.kernels.text import base_at
from hpcvdj.kernels.threads import on_threads, parts_of

ROWS_AT_ONCE = 512
"""Rows that a thread takes at once."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))


def one_indel_away(queries: CountedSequences, others: CountedSequences) -> NDArray[np.bool_]:
    """Which sequences one inserted or deleted base makes of one of `others`, of their individual and with more reads.

    others  as of `CountedSequences.largest_first`
    """
    out = np.zeros(len(queries), dtype=bool)
    individuals, of_other = np.unique(others.individuals, return_inverse=True)
    of_query = np.searchsorted(individuals, queries.individuals)
    asked = np.flatnonzero(np.append(individuals, -1)[of_query] == queries.individuals)
    # One individual after another, whose buckets are beside each other and stay in the cache.
    asked = asked[np.argsort(of_query[asked], kind="stable")]
    bits = np.array([buckets_for(number) for number in np.bincount(of_other).tolist()], dtype=np.int64)
    first, shifts = np.cumsum(1 << bits) - (1 << bits), (64 - bits).astype(np.uint64)
    hashes, bucket = np.empty(len(others), dtype=np.uint64), np.empty(len(others), dtype=np.int64)
    others_of = others.words, others.lengths, of_other
    on_threads(_hashes, parts_of(len(others), ROWS_AT_ONCE), *others_of, first, shifts, hashes, bucket)
    starts, members = np.zeros((1 << bits).sum() + 1, dtype=np.int64), np.empty(len(others), dtype=np.int64)
    fill(bucket, starts, members)
    # In the order of the buckets.
    listed = others[members]
    has_length = np.isin(np.arange(257), others.lengths)
    on_threads(
        _mark, parts_of(len(asked), ROWS_AT_ONCE), (queries.words, queries.lengths, queries.reads, of_query), asked,
        has_length, (listed.words, listed.lengths, listed.reads), (hashes[members], first, shifts, starts), out,
    )  # fmt: skip
    return out


@njit(cache=True, nogil=True)
def _hashes(part, words, lengths, individuals, first, shifts, out, bucket):  # type: ignore[no-untyped-def]
    """A 64-bit hash of each sequence: a polynomial, so that of an edited one follows from sums; and its bucket."""
    for row in range(part[0], part[1]):
        value, power = _FACTOR + np.uint64(lengths[row]), _FACTOR
        for k in range(lengths[row]):
            value += (base_at(words[row], k) + np.uint64(1)) * power
            power *= _FACTOR
        out[row] = value
        bucket[row] = first[individuals[row]] + np.int64(value >> shifts[individuals[row]])


@njit(cache=True, nogil=True)
def _is_edited(a, b, b_length, place, deleted):  # type: ignore[no-untyped-def]
    """Whether `a` is `b` once the base at `place` is deleted, or else one is inserted there."""
    for k in range(b_length):
        from_a = k + (k >= place) if deleted else k - (k > place)
        if (deleted or k != place) and base_at(a, from_a) != base_at(b, k):
            return False
    return True


@njit(cache=True, nogil=True)
def _has_more(value, words, reads, individual, b_length, place, deleted, others, index):  # type: ignore[no-untyped-def]
    """Whether one of `others` has a hash and more reads, and is the sequence with that edit."""
    other_words, lengths, other_reads = others
    hashes, first, shifts, starts = index
    bucket = first[individual] + np.int64(value >> shifts[individual])
    for other in range(starts[bucket], starts[bucket + 1]):
        if other_reads[other] <= reads:
            return False
        if (
            hashes[other] == value
            and lengths[other] == b_length
            and _is_edited(words, other_words[other], b_length, place, deleted)
        ):
            return True
    return False


@njit(cache=True, nogil=True)
def _one_indel_away(words, length, reads, individual, has_length, others, index):  # type: ignore[no-untyped-def]
    base, total, power = _FACTOR, np.uint64(0), _FACTOR
    for k in range(length):
        total += (base_at(words, k) + np.uint64(1)) * power
        power *= _FACTOR
    # The parts of the sum from the bases before a place, and from the others.
    before, after, power = np.uint64(0), total, _FACTOR
    last = np.uint64(0)
    for place in range(length + 1):
        code = base_at(words, place) + np.uint64(1) if place < length else np.uint64(0)
        # Of equal bases beside each other, it does not matter which one is deleted or inserted.
        if has_length[length - 1] and place < length and code != last:
            value = base + np.uint64(length - 1) + before + (after - code * power) * _INVERSE
            if _has_more(value, words, reads, individual, length - 1, place, True, others, index):
                return True
        if has_length[length + 1]:
            for inserted in range(1, 5):
                if inserted != last:
                    value = base + np.uint64(length + 1) + before + np.uint64(inserted) * power + after * _FACTOR
                    if _has_more(value, words, reads, individual, length + 1, place, False, others, index):
                        return True
        before += code * power
        after -= code * power
        power *= _FACTOR
        last = code
    return False


@njit(cache=True, nogil=True)
def _mark(part, queries, rows, has_length, others, index, out):  # type: ignore[no-untyped-def]
    words, lengths, reads, individuals = queries
    for row in rows[part[0] : part[1]]:
        length = np.int64(lengths[row])
        out[row] = _one_indel_away(words[row], length, reads[row], individuals[row], has_length, others, index)
