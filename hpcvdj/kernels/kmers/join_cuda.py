"""`index` and `pigeonhole` on a GPU: join.cu, tables sorted by cupy."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import allow_shared, gpu_errors, on_gpu, shared_limit
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.kmers_cuda import TABLE, device_kmers, kernel, launch, owners
from hpcvdj.kernels.kmers.masks import JoinTables, exact_from_raw, fields
from hpcvdj.kernels.kmers.methods import JoinMethod, key_bytes, shards_of
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.pacing import Pacer

_BLOCK = 512
_RESERVED = 1024
"""Bytes of shared memory that each block takes for itself."""

_SORT_ENTRIES = 1 << 27
_MOST_BITS = 24


def widest_shard(d: int) -> int:
    """Columns whose counters of one row fit into half of a processor's shared memory."""
    # Two blocks share it: one adds while the other begins or writes.
    return min((shared_limit() - _RESERVED) // 2 // (4 * (d + 1)), 1 << 16)


@dataclass(frozen=True)
class _Shard:
    """Columns first … last-1 in tables: entries by table and bucket."""

    first: int
    last: int
    bits: int
    key: Any
    payload: Any
    offsets: Any
    position: Any


class Join:
    """Columns in tables on the GPU, in shards whose counters fit into a block's shared memory."""

    def __init__(self, columns: Profile, method: JoinMethod, pace: Pacer) -> None:
        self._k, self._d, self._n, self._tables = columns.k, method.d, len(columns), method.join
        self._key = "u32" if key_bytes(columns.k) == 4 else "u64"
        with gpu_errors():
            self._device_tables = on_gpu(_table_array(method.join).view(np.uint8))
            self._kmers = device_kmers(columns)
            offsets: Any = self._kmers.offsets
            self._starts = offsets.get()
            edges = shards_of(self._starts, len(method.join.masks), widest_shard(self._d))
            self._shards = [self._shard(a, b) for a, b in pairwise(edges)]

    def _shard(self, first: int, last: int) -> _Shard:
        kmers, tables = self._kmers.part(first, last), len(self._tables.masks)
        n = len(kmers.key)
        longest = max(mask.bit_count() for mask in self._tables.masks)
        bits = max(1, min(longest, n.bit_length(), _MOST_BITS))
        key = cupy.empty(tables * n, np.uint32 if self._key == "u32" else np.uint64)
        payload, position = (cupy.empty(tables * n, np.uint32) for _ in range(2))
        shard = _Shard(first, last, bits, key, payload, cupy.zeros((tables << bits) + 1, np.uint32), position)
        step = max(1, _SORT_ENTRIES // max(1, n))
        for t in range(0, tables if n else 0, step):
            self._fill(shard, kmers, t, min(step, tables - t))
        return shard

    def _fill(self, shard: _Shard, kmers: Kmers, first: int, tables: int) -> None:
        """Sort the k-mers of a shard into `tables` tables from `first` on."""
        n, bits = len(kmers.key), shard.bits
        place_bits = max(1, n.bit_length())
        order = cupy.empty(tables * n, np.uint64)
        sizes = np.int32(bits), np.int32(place_bits)
        arguments = kmers.key, np.int64(n), self._device_tables, np.int32(first), *sizes, order
        launch("join.cu", "bucket_order", n, *arguments, tables=tables)
        order.sort()
        part = slice(first * n, (first + tables) * n)
        launch(
            "join.cu", f"fill_buckets<{self._key}>", tables * n, order, np.int64(tables * n), np.int64(n), *sizes,
            np.uint32(first * n), kmers.key, owners(kmers.offsets, n), kmers.count, np.uint32(tables << bits),
            shard.key[part], shard.payload[part], shard.offsets[first << bits :], shard.position[part],
        )  # fmt: skip

    @gpu_errors()
    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """D of `rows` against the columns."""
        begin, end = first or 0, self._n if last is None else last
        kmers = self._kmers.part(begin, end) if rows is None else device_kmers(rows)
        counters = cupy.zeros((self._d + 1, len(kmers), self._n), np.uint32)
        for shard in self._shards:
            if first is None:
                self._join(kmers, range(len(kmers)), -1, shard, None, counters)
                continue
            # Rows before the shard meet all its columns, rows in it those from their own on, rows after it none.
            before = min(max(shard.first - first, 0), len(kmers))
            within = min(max(shard.last - first, 0), len(kmers))
            shift = int(self._starts[begin] - self._starts[shard.first]) if rows is None else None
            self._join(kmers, range(before), -1, shard, None, counters)
            self._join(kmers, range(before, within), max(0, first - shard.first), shard, shift, counters)
        return counters if self._tables.plane is None else exact_from_raw(counters, self._k)

    def _join(self, kmers: Kmers, rows: range, first: int, shard: _Shard, shift: int | None, counters: Any) -> None:
        """Some of the rows against a shard; `first` and `shift` are the kernel's, None if it has no positions."""
        if not rows:
            return
        columns, tables = shard.last - shard.first, len(self._tables.masks)
        shared = 4 * (self._d + 1) * columns
        join = kernel("join.cu", f"join<{self._key}, {'false' if self._tables.plane is None else 'true'}>")
        allow_shared(join, shared)
        everything = columns == self._n and len(rows) == len(kmers)
        target = counters if everything else cupy.empty((self._d + 1, len(rows), columns), np.uint32)
        arguments = (
            kmers.key, kmers.count, kmers.offsets[rows.start :], np.int32(len(rows)), np.int32(first),
            self._device_tables, np.int32(tables), np.int32(shard.bits), shard.key, shard.payload, shard.offsets,
            np.uintp(0) if shift is None else shard.position, np.int64(shift or 0),
            np.int64(len(shard.key) // tables), np.int32(columns), np.int32(self._d), target,
        )  # fmt: skip
        join((len(rows),), (_BLOCK,), arguments, shared_mem=shared)
        if not everything:
            counters[:, rows.start : rows.stop, shard.first : shard.last] = target


def _table_array(tables: JoinTables) -> NDArray[np.void]:
    array = np.zeros(len(tables.masks), dtype=TABLE)
    for t, mask in enumerate(tables.masks):
        for f, (right, kept, left) in enumerate(fields(mask)):
            array[t]["field"][f] = (right, left, kept)
        array[t]["key_bits"] = mask.bit_count()
    array["mask"], array["left_out"] = tables.masks, tables.left_out
    array["counts"] = tables.counts @ (1 << np.arange(tables.counts.shape[1], dtype=np.uint32))
    if tables.plane is not None:
        array["plane"] = tables.plane
    return array
