"""Tables of k-mers by some of their positions: the common ground of the methods `index` and `pigeonhole`.

The sequences are cut into groups, so that a group's counters against another's stay in a core's cache.  A table keeps
the positions of one mask: the k-mers of each group lie in buckets by these positions, so that two k-mers that agree on
them lie in the same bucket of their groups.  Others may lie there too, which the comparison of whole keys tells apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.motifs.kmers import Kmers
from hpcvdj.motifs.pace import Pace

ODD = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: Knuth's multiplicative hash (TAOCP 3, section 6.4)."""

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


def bucket_bits(kmers: Kmers) -> int:
    """log2 of the buckets of a group: about one for each of its k-mers."""
    in_group = len(kmers.key) * GROUP // max(len(kmers), GROUP)
    return max(1, min(in_group.bit_length() - 1, 2 * kmers.k, _MOST_BITS))


def make_buckets(kmers: Kmers, masks: Sequence[int], bits: int, threads: int = 1, pace: Pace | None = None) -> Buckets:
    """The tables of `masks`, made by `threads` threads; `pace` is told of each."""
    n = len(kmers.key)
    sequence = kmers.sequence
    groups = -(-len(kmers) // GROUP)
    key_type = np.uint32 if kmers.k <= 16 else np.uint64
    found = Buckets(
        np.array(masks, dtype=np.uint64),
        bits,
        np.zeros((len(masks), (groups << bits) + 1), dtype=np.int64),
        np.zeros(len(masks), dtype=np.int64),
        np.empty((len(masks), n), dtype=key_type),
        np.empty((len(masks), n), dtype=np.uint16),
        np.empty((len(masks), n), dtype=np.uint16),
    )
    bits_of_place = max(1, n.bit_length())
    group = (sequence // GROUP).astype(np.uint64) << np.uint64(bits)
    place = np.arange(n, dtype=np.uint64)
    within = (sequence % GROUP).astype(np.uint16)

    def fill(t: int) -> None:
        # Bucket and place in one word: NumPy's vectorised sort, and the places make it stable.
        order = ((kmers.key & np.uint64(masks[t])) * np.uint64(ODD)) >> np.uint64(64 - bits)
        order |= group
        order <<= np.uint64(bits_of_place)
        order |= place
        order.sort()
        source = (order & np.uint64((1 << bits_of_place) - 1)).astype(np.int64)
        order >>= np.uint64(bits_of_place)
        entries = np.bincount(order.view(np.int64), minlength=groups << bits)
        np.cumsum(entries, out=found.offsets[t, 1:])
        found.longest[t] = entries.max(initial=0)
        found.key[t] = kmers.key[source]
        found.sequence[t] = within[source]
        found.count[t] = kmers.count[source]

    with ThreadPoolExecutor(threads) as pool:
        try:
            for _ in pool.map(fill, range(len(masks))):
                if pace is not None:
                    pace.between()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return found
