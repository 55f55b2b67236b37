"""Construct the meta-tables on the CPU (sections 2.b, 2.d and 2.e): first chained buckets, then arrays."""

import os
from dataclasses import dataclass, replace
from math import comb, gcd
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError, require_choice
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.masks import wildcard_masks
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.studies.hash_tables.encoding import HASHES, bucket_of, encoding_for

KERNELS = ("sequential-bucket", "warp-to-bucket", "thread-to-bucket", "thread-to-pair")
"""The four GPU kernels (section 3.c)."""

ALIGNMENT = 32
"""The number of slots of a sub-table is a multiple of this, so each sub-table begins at a multiple of 128 bytes."""

MOST_NARROW = 65535
"""The largest number of occurrences in a sequence for which 16 bits suffice for all counts and offsets."""


@dataclass(frozen=True)
class TableOptions:
    """The settings of the thesis's system; InputError if one is out of range.

    encoding           `auto` (the narrowest), 3x64, 2x32 or 2x64 (section 2.c)
    hash               djb2, 2umt or xor (section 2.f)
    buckets            buckets per sub-table
    kernel             one of KERNELS (CUDA only); `thread-to-pair` compares tables with one bucket
    linear             merge sorted buckets, or else compare all k-mers of two buckets (section 3.c)
    threads_per_block  block size, a multiple of 32
    chunk              how many k-mers of its column a thread of `thread-to-pair` has in shared memory
    """

    encoding: str = "auto"
    hash: str = "xor"
    buckets: int = 32
    kernel: str = "thread-to-bucket"
    linear: bool = True
    threads_per_block: int = 32
    chunk: int = 8

    def __post_init__(self) -> None:
        require_choice("hash function", self.hash, HASHES)
        require_choice("kernel", self.kernel, KERNELS)
        if self.threads_per_block % 32 or not 32 <= self.threads_per_block <= 1024:
            raise InputError(f"{self.threads_per_block} threads per block: give a multiple of 32 up to 1024")
        if self.buckets < 1 or self.chunk < 1:
            raise InputError(f"{self.buckets} buckets, {self.chunk} k-mers a chunk: give 1 or more")


@dataclass(frozen=True)
class HashTables:
    """The meta-tables 0 … d of some sequences, as arrays (the lower half of the thesis's Figures 1 and 2).

    Sub-table s of sequence i has the first offsets[i, s, buckets] of keys[i, s] and counts[i, s].  Its bucket b has the
    slots from offsets[i, s, b] to offsets[i, s, b + 1], in ascending order.  All sub-tables have the same number of
    slots, so the start of each is easy to compute.

    keys      uint32 or uint64 [sequences, sub-tables, slots]: words of the encoding, wildcards zero
    counts    uint16 or uint32 [sequences, sub-tables, slots]: occurrences
    offsets   type of counts [sequences, sub-tables, buckets + 1]
    encoding  the name of the encoding
    most      the largest number of occurrences of k-mers in a sequence
    """

    keys: NDArray[Any]
    counts: NDArray[Any]
    offsets: NDArray[Any]
    k: int
    d: int
    encoding: str
    most: int

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def buckets(self) -> int:
        return int(self.offsets.shape[2] - 1)

    @property
    def ends(self) -> NDArray[np.int32]:
        """int32 [d + 1]: the sub-tables of meta-tables 0 … m end before ends[m].

        For d = 2, there are 37, 79 and 211 sub-tables if k = 8, 12 and 20 (section 3.b).
        """
        return np.cumsum([comb(self.k, m) for m in range(self.d + 1)], dtype=np.int32)

    def counters(self, rows: int) -> NDArray[Any]:
        """Return zeros [d + 1, rows, sequences], uint32 if that suffices for all raw counters, else uint64."""
        largest = self.most**2 * max(comb(self.k, m) for m in range(self.d + 1))
        return np.zeros((self.d + 1, rows, len(self)), np.uint32 if largest < 1 << 32 else np.uint64)


SEQUENCES_AT_ONCE = 4
"""Sequences that a thread takes at a time."""


def build(kmers: Kmers, d: int, options: TableOptions) -> HashTables:
    """Construct the tables of all sequences.

    Raise InputError if the k-mers do not fit into the encoding, MachineError if the arrays exceed the memory.
    """
    encoding = encoding_for(options.encoding, kmers.k)
    masks = np.array(
        [mask for m in range(d + 1) for mask in wildcard_masks(kmers.k, m, encoding.bits)], dtype=np.uint64
    )
    sizes = np.diff(kmers.offsets)
    slots = max(1, -(-int(sizes.max(initial=0)) // ALIGNMENT)) * ALIGNMENT
    most = int(kmers.totals.max(initial=0))
    word, narrow = np.dtype(encoding.dtype), np.dtype(np.uint16 if most <= MOST_NARROW else np.uint32)
    shape = (len(kmers), len(masks))
    size = shape[0] * shape[1] * (slots * (word.itemsize + narrow.itemsize) + (options.buckets + 1) * narrow.itemsize)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size > memory:
        raise MachineError(
            f"the hash tables take {size / 1e9:.1f} GB ({shape[0]:,} sequences of {slots} slots in {shape[1]} "
            f"sub-tables) and the machine has {memory / 1e9:.1f}; give fewer sequences"
        )
    keys, counts = np.zeros((*shape, slots), word), np.zeros((*shape, slots), narrow)
    offsets = np.zeros((*shape, options.buckets + 1), narrow)
    steps = np.array([_step(int(size)) for size in sizes], dtype=np.int64)
    parameters = encoding.hash_parameters(options.hash, kmers.k, options.buckets)
    words = encoding.encode(kmers.key, kmers.k)
    arguments = words, kmers.count, kmers.offsets, steps, masks, parameters, keys, counts, offsets
    on_threads(_chain, parts_of(len(kmers), SEQUENCES_AT_ONCE), *arguments)
    return HashTables(keys, counts, offsets, kmers.k, d, encoding.name, most)


def _step(size: int) -> int:
    """Return a step that visits all of `size` slots in an order far from sorted, like that in a text."""
    step = max(1, int(size * 0.618))
    while gcd(step, size) != 1 and size:
        step += 1
    return step


@numba.njit(cache=True, nogil=True)
def _chain(  # type: ignore[no-untyped-def]
    part, words, counts, first, steps, masks, parameters, out_keys, out_counts, out_offsets
):
    """Insert each k-mer into the sorted chain of its bucket, sub-table by sub-table, then write chain after chain.

    The occurrences of k-mers are known, so an insertion replaces the insertion and the updates of the thesis.
    """
    buckets = out_offsets.shape[2] - 1
    divisor = np.uint64(buckets)
    for i in range(part[0], part[1]):
        size = first[i + 1] - first[i]
        key, count = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint32)
        after, head = np.empty(size, dtype=np.int32), np.empty(buckets, dtype=np.int32)
        for s in range(len(masks)):
            head[:] = -1
            used = 0
            for q in range(size):
                at = first[i] + q * steps[i] % size
                word = words[at] & masks[s]
                b = bucket_of(word, parameters, divisor)
                before, node = -1, head[b]
                while node >= 0 and key[node] < word:
                    before, node = node, after[node]
                if node >= 0 and key[node] == word:
                    count[node] += counts[at]
                    continue
                key[used], count[used], after[used] = word, counts[at], node
                if before < 0:
                    head[b] = used
                else:
                    after[before] = used
                used += 1
            slot = 0
            for b in range(buckets):
                out_offsets[i, s, b] = slot
                node = head[b]
                while node >= 0:
                    out_keys[i, s, slot] = key[node]
                    out_counts[i, s, slot] = count[node]
                    slot += 1
                    node = after[node]
            out_offsets[i, s, buckets] = slot


def merge_buckets(tables: HashTables, buckets: int) -> HashTables:
    """Merge buckets: bucket b of the result has buckets b, b + buckets, … (section 3.b).

    With djb2 and 2umt, the result equals tables that are built with `buckets`, if `buckets` divides the former number.
    """
    if buckets == tables.buckets:
        return tables
    ends = tables.offsets.astype(np.int64)
    sizes = np.diff(ends)
    merged = np.stack([sizes[..., b::buckets].sum(axis=2) for b in range(buckets)], axis=2)
    offsets = np.zeros((*sizes.shape[:2], buckets + 1), tables.offsets.dtype)
    np.cumsum(merged, axis=2, out=offsets[..., 1:])
    keys, counts = np.zeros_like(tables.keys), np.zeros_like(tables.counts)
    used = np.arange(keys.shape[2]) < offsets[..., -1:]
    # The sub-table of each slot in use, and its new bucket, in the order of `used`.
    table = np.repeat(np.arange(sizes.shape[0] * sizes.shape[1]), sizes.sum(axis=2).ravel())
    into = np.arange(tables.buckets) % buckets
    bucket = np.repeat(np.broadcast_to(into, sizes.shape).ravel(), sizes.ravel())
    order = np.lexsort((tables.keys[used], bucket, table))
    keys[used], counts[used] = tables.keys[used][order], tables.counts[used][order]
    return replace(tables, keys=keys, counts=counts, offsets=offsets)


def bucket_variance(tables: HashTables) -> tuple[float, float]:
    """Return (mean, variance) of the number of k-mers in a bucket of a sub-table, averaged over all sub-tables.

    A fair function scatters like dice: variance ≈ mean (1 - 1 / buckets) (section 5.c).
    """
    sizes = np.diff(tables.offsets.astype(np.int64), axis=2)
    return float(sizes.mean()), float(sizes.var(axis=2).mean())
