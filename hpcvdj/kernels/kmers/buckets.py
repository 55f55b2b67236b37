"""Tables of k-mers by some of their positions: the common ground of the methods `index` and `pigeonhole`.

The sequences are cut into groups, so that a group's counters against another's stay in a core's cache.  A table keeps
the positions of one mask: the k-mers of each group lie in buckets by these positions, so that two k-mers that agree on
them lie in the same bucket of their groups.  Others may lie there too, which the comparison of whole keys tells apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.masks import fields
from hpcvdj.runs.pacing import Pace

ODD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: Knuth's multiplicative hash (TAOCP 3, section 6.4)."""

_ODD = np.uint64(ODD)

GROUP = 512
"""Sequences of a group.  512 x 512 counters for three distances are 3 MB."""

_MOST_BITS = 18
"""Buckets of a group: no more than its k-mers, when its sequences are some hundred bases long."""


@dataclass(frozen=True)
class Buckets:
    """Tables of one set of k-mers, each in groups of `GROUP` sequences, each in 2^bits buckets.

    masks     uint64 [tables]: the kept positions
    bits      log2 of the buckets of a group
    offsets   int64 [tables, groups * 2^bits + 1]: entries of bucket b of group g of table t begin at
              offsets[t, g * 2^bits + b]
    key       uint32 (k ≤ 16) or uint64 [tables, k-mers]
    longest   int64 [tables]: entries of the fullest bucket
    sequence  uint16 [tables, k-mers]: within the group, ascending in a bucket
    count     uint16 [tables, k-mers]
    """

    masks: NDArray[np.uint64]
    bits: int
    offsets: NDArray[np.int64]
    longest: NDArray[np.int64]
    key: NDArray[np.unsignedinteger]
    sequence: NDArray[np.uint16]
    count: NDArray[np.uint16]


def bytes_per_kmer(k: int) -> int:
    """Bytes of memory for each k-mer in each table."""
    return (4 if k <= 16 else 8) + 4


def bucket_bits(kmers: Kmers, masks: Sequence[int]) -> int:
    """log2 of the buckets of a group: about one for each of its k-mers, no more than `masks` can tell apart."""
    in_group = len(kmers.key) * GROUP // max(len(kmers), GROUP)
    kept = max(mask.bit_count() for mask in masks)
    return max(1, min(in_group.bit_length() - 1, kept, _MOST_BITS))


def make_buckets(kmers: Kmers, masks: Sequence[int], bits: int, pace: Pace | None = None) -> Buckets:
    """The tables of `masks`, made by all threads; `pace` is told of each.

    A mask that keeps `bits` bits at most has a bucket for each of its values; the values of others are hashed.
    """
    n, groups = len(kmers.key), -(-len(kmers) // GROUP)
    key_type = np.uint32 if kmers.k <= 16 else np.uint64
    found = Buckets(
        np.array(masks, dtype=np.uint64),
        bits,
        np.full((len(masks), (groups << bits) + 1), n, dtype=np.int64),
        np.zeros(len(masks), dtype=np.int64),
        np.empty((len(masks), n), dtype=key_type),
        np.empty((len(masks), n), dtype=np.uint16),
        np.empty((len(masks), n), dtype=np.uint16),
    )
    for t, mask in enumerate(masks):
        closing = fields(mask) if mask.bit_count() <= bits else []
        runs = np.array(closing, dtype=np.uint64).reshape(-1, 3)
        found.longest[t] = _fill(
            kmers.key, kmers.count, kmers.offsets, found.masks[t], runs, bits,
            found.offsets[t], found.key[t], found.sequence[t], found.count[t],
        )  # fmt: skip
        if pace is not None:
            pace.between()
    return found


@numba.njit(parallel=True, cache=True)
def _fill(kmers, counts, begins, mask, runs, bits, offsets, key, sequence, count):  # type: ignore[no-untyped-def]
    """A counting sort of each group's k-mers for one table; the entries of the fullest bucket."""
    n = len(begins) - 1
    groups, buckets = (n + GROUP - 1) // GROUP, 1 << bits
    most = np.zeros(groups, dtype=np.int64)
    for g in prange(groups):
        first, last = g * GROUP, min((g + 1) * GROUP, n)
        begin, end = begins[first], begins[last]
        bucket = np.empty(end - begin, dtype=np.uint32)
        place = np.zeros(buckets, dtype=np.int64)
        for e in range(begin, end):
            x = np.uint64(kmers[e]) & mask
            value = np.uint64(0)
            for run in range(len(runs)):
                value |= (x >> runs[run, 0] & runs[run, 1]) << runs[run, 2]
            if len(runs) == 0:
                value = (x * _ODD) >> np.uint64(64 - bits)
            bucket[e - begin] = value
            place[np.int64(value)] += 1
        most[g] = place.max()
        for b in range(buckets):
            entries = place[b]
            place[b] = offsets[(g << bits) + b] = begin
            begin += entries
        for i in range(first, last):
            for e in range(begins[i], begins[i + 1]):
                b = bucket[e - begins[first]]
                to, place[b] = place[b], place[b] + 1
                key[to], sequence[to], count[to] = kmers[e], i - first, counts[e]
    return most.max() if groups else 0
