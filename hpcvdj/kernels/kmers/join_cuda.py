"""`index` and `pigeonhole` on a GPU: motif_join.cu, tables sorted by cupy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import allow_shared, compile_kernels, failures_named, on_gpu, shared_limit
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.kmers_cuda import THREADS, DeviceKmers, device_kmers
from hpcvdj.kernels.kmers.first_table import first_tables, run_bits
from hpcvdj.kernels.kmers.masks import block_masks, exact_from_raw, fields, wildcard_masks

_BLOCK = 512
_RESERVED = 1024
"""Bytes of shared memory that each block takes for itself."""

_SORT_ENTRIES = 1 << 27
_MOST_BITS = 24

_TABLE = np.dtype(
    [
        ("field", [("right", "<i4"), ("left", "<i4"), ("mask", "<u8")], 4),
        ("mask", "<u8"),
        ("key_bits", "<i4"),
        ("plane", "<i4"),
    ]
)
"""struct Table of motif_join.cuh."""

_NAMES = tuple(
    [f"fill_buckets<{key}>" for key in ("unsigned", "word")]
    + [f"join<{key}, {raw}>" for key in ("unsigned", "word") for raw in ("false", "true")]
)


@cache
def _module(device: int) -> Any:
    return compile_kernels("motif_join.cu", _NAMES)


def _kernel(name: str) -> Any:
    return _module(cupy.cuda.Device().id).get_function(name)


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


class _Join:
    """Columns in tables on the GPU, in shards whose counters fit into a block's shared memory."""

    raw_counters = False

    def __init__(self, columns: Profile, d: int, masks: list[int], planes: list[int], runs: list[int]) -> None:
        self._d, self._n, self._profile = d, len(columns), columns
        self._key = "unsigned" if columns.k <= 16 else "word"
        with failures_named():
            self._tables = on_gpu(_table_array(masks, planes).view(np.uint8))
            self._table_count, self._kept = len(masks), [mask.bit_count() for mask in masks]
            self._run_bit = on_gpu(run_bits(runs).astype(np.uint16))
            self._first_table = on_gpu(first_tables(runs, masks))
            self._kmers = device_kmers(columns)
            self._starts = self._kmers.offsets.get()
            shards = -(-self._n // widest_shard(d))
            edges = [self._n * s // shards for s in range(shards + 1)] if shards else []
            self._shards = [self._shard(a, b) for a, b in pairwise(edges)]

    def _shard(self, first: int, last: int) -> _Shard:
        kmers = self._kmers.part(first, last)
        n = len(kmers.key)
        bits = max(1, min(max(self._kept), n.bit_length(), _MOST_BITS))
        key = cupy.empty(self._table_count * n, np.uint32 if self._key == "unsigned" else np.uint64)
        payload = cupy.empty(self._table_count * n, np.uint32)
        offsets = cupy.zeros((self._table_count << bits) + 1, np.uint32)
        position = cupy.empty(self._table_count * n, np.uint32)
        place_bits = max(1, n.bit_length())
        step = max(1, _SORT_ENTRIES // max(1, n))
        for t in range(0, self._table_count if n else 0, step):
            tables = min(step, self._table_count - t)
            order = cupy.empty(tables * n, np.uint64)
            _kernel("bucket_order")(
                (-(-n // THREADS), tables),
                (THREADS,),
                (kmers.key, np.int64(n), self._tables, np.int32(t), np.int32(bits), np.int32(place_bits), order),
            )
            order.sort()
            buckets = tables << bits
            part = slice(t * n, (t + tables) * n)
            _kernel(f"fill_buckets<{self._key}>")(
                (-(-tables * n // THREADS),),
                (THREADS,),
                (
                    order, np.int64(tables * n), np.int64(n), np.int32(bits), np.int32(place_bits), np.uint32(t * n),
                    kmers.key, kmers.sequence, kmers.count, np.uint32(buckets), key[part], payload[part],
                    offsets[t << bits :], position[part],
                ),
            )  # fmt: skip
        return _Shard(first, last, bits, key, payload, offsets, position)

    @failures_named()
    def _found(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """Counters on the GPU, uint32 [d + 1, rows, columns]; rows are `rows`, or the columns first … last-1."""
        begin, end = first or 0, self._n if last is None else last
        mine = self._kmers.part(begin, end) if rows is None else device_kmers(rows)
        found = cupy.zeros((self._d + 1, len(mine), self._n), np.uint32)
        for shard in self._shards:
            if first is None:
                self._join(mine, 0, len(mine), -1, shard, None, found)
                continue
            # Rows before the shard meet all its columns, rows in it those from their own on, rows after it none.
            before = min(max(shard.first - first, 0), len(mine))
            within = min(max(shard.last - first, 0), len(mine))
            shift = int(self._starts[begin] - self._starts[shard.first]) if rows is None else None
            self._join(mine, 0, before, -1, shard, None, found)
            self._join(mine, before, within, max(0, first - shard.first), shard, shift, found)
        return found

    def _join(
        self, rows: DeviceKmers, begin: int, end: int, first: int, shard: _Shard, shift: int | None, found: Any
    ) -> None:
        """Rows begin … end-1 against a shard; `first` and `shift` are the kernel's, None where it has no positions."""
        if begin >= end:
            return
        columns = shard.last - shard.first
        shared = 4 * (self._d + 1) * columns
        kernel = _kernel(f"join<{self._key}, {'true' if self.raw_counters else 'false'}>")
        allow_shared(kernel, shared)
        whole = columns == self._n and end - begin == len(rows)
        target = found if whole else cupy.empty((self._d + 1, end - begin, columns), np.uint32)
        kernel(
            (end - begin,),
            (_BLOCK,),
            (
                rows.key, rows.count, rows.offsets[begin:], np.int32(end - begin), np.int32(first), self._tables,
                np.int32(self._table_count), np.int32(shard.bits), shard.key, shard.payload, shard.offsets,
                np.uintp(0) if shift is None else shard.position, np.int64(shift or 0),
                np.int64(len(shard.key) // self._table_count), np.int32(columns), np.int32(self._d), self._run_bit,
                self._first_table, target,
            ),
            shared_mem=shared,
        )  # fmt: skip
        if not whole:
            found[:, begin:end, shard.first : shard.last] = target


class Pigeonhole(_Join):
    """As `motifs.cpu.join.Pigeonhole`."""

    def __init__(self, columns: Profile, d: int, blocks: int) -> None:
        runs, masks = block_masks(columns.k, d, blocks)
        super().__init__(columns, d, masks, [0] * len(masks), runs)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """D of `rows` against the columns."""
        return self._found(rows, first, last)


class Index(_Join):
    """As `motifs.cpu.join.Index`."""

    raw_counters = True

    def __init__(self, columns: Profile, d: int) -> None:
        masks = [wildcard_masks(columns.k, m) for m in range(d + 1)]
        planes = [m for m, some in enumerate(masks) for _ in some]
        self._k = columns.k
        super().__init__(columns, d, [mask for some in masks for mask in some], planes, [])

    def raw(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """R of `rows` against the columns modulo 2^32."""
        return self._found(rows, first, last)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """D of `rows` against the columns."""
        return exact_from_raw(self.raw(rows, first, last), self._k)


def _table_array(masks: list[int], planes: list[int]) -> NDArray[np.void]:
    tables = np.zeros(len(masks), dtype=_TABLE)
    for t, mask in enumerate(masks):
        for f, (right, kept, left) in enumerate(fields(mask)):
            tables[t]["field"][f] = (right, left, kept)
        tables[t]["mask"], tables[t]["key_bits"], tables[t]["plane"] = mask, mask.bit_count(), planes[t]
    return tables
