"""The k-mers of each sequence, found and sorted on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy

from hpcvdj.kernels.device import compile_kernels, on_gpu
from hpcvdj.kernels.kmers.profile import Profile

THREADS = 256


@dataclass(frozen=True)
class DeviceKmers:
    """As `motifs.kmers.Kmers`, on the GPU, with the sequence of each k-mer beside it.

    key uint64, count uint32, sequence int32 [k-mers]; offsets int64 [sequences + 1]
    """

    k: int
    key: Any
    count: Any
    sequence: Any
    offsets: Any

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, first: int, last: int) -> DeviceKmers:
        """Those of sequences first … last-1, counted from 0."""
        low, high = int(self.offsets[first]), int(self.offsets[last])
        return DeviceKmers(
            self.k,
            self.key[low:high],
            self.count[low:high],
            self.sequence[low:high] - cupy.int32(first),
            self.offsets[first : last + 1] - low,
        )


def device_kmers(some: Profile) -> DeviceKmers:
    """The k-mers of a profile, from its bases."""
    sequences, k = some.sequences, some.k
    some.require_countable()
    n, bases = len(sequences), len(sequences.codes)
    starts = on_gpu(sequences.offsets)
    if not bases:
        empty = cupy.empty(0, cupy.uint64)
        zeros = cupy.zeros(n + 1, cupy.int64)
        return DeviceKmers(k, empty, empty.astype(cupy.uint32), empty.astype(cupy.int32), zeros)
    codes = on_gpu(sequences.codes)
    owner = cupy.searchsorted(starts, cupy.arange(bases, dtype=cupy.int64), side="right").astype(cupy.int32)
    owner -= cupy.int32(1)
    key, holder = cupy.empty(bases, cupy.uint64), cupy.empty(bases, cupy.int32)
    kernel = compile_kernels("motif_windows.cu").get_function("windows")
    blocks = -(-bases // THREADS)
    kernel((blocks,), (THREADS,), (codes, owner, cupy.int64(bases), cupy.int32(k), key, holder))
    kept = holder >= 0
    key, holder = key[kept], holder[kept]
    if 2 * k + n.bit_length() <= 64:
        packed = (holder.astype(cupy.uint64) << cupy.uint64(2 * k)) | key
        packed.sort()
        holder = (packed >> cupy.uint64(2 * k)).astype(cupy.int32)
        key = packed & cupy.uint64((1 << 2 * k) - 1)
    else:
        order = cupy.lexsort(cupy.stack([key, holder.astype(cupy.uint64)]))
        key, holder = key[order], holder[order]
    new = cupy.ones(len(key), dtype=bool)
    new[1:] = (key[1:] != key[:-1]) | (holder[1:] != holder[:-1])
    place = cupy.flatnonzero(new)
    count = cupy.diff(place, append=cupy.asarray([len(key)])).astype(cupy.uint32)
    if some.distinct:
        count[:] = 1
    key, holder = key[place], holder[place]
    offsets = cupy.searchsorted(holder, cupy.arange(n + 1, dtype=cupy.int32)).astype(cupy.int64)
    return DeviceKmers(k, key, count, holder, offsets)
