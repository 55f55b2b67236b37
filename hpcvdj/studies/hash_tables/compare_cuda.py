"""The thesis's comparison kernels on a GPU: tables uploaded once, pairs in launches that fit (section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import DeviceClock, compile_kernels, failures_named, on_gpu, shared_limit
from hpcvdj.errors import InputError
from hpcvdj.studies.hash_tables.compare_cpu import sum_type
from hpcvdj.studies.hash_tables.construction import ALIGNMENT, Tables
from hpcvdj.studies.hash_tables.options import TableOptions

TEAMS = {"sequential-bucket": 0, "warp-to-bucket": 32, "thread-to-bucket": 1}
"""Threads that share a bucket; 0 for the whole block."""

EVERY, LINEAR = -1, 0
"""How two buckets are compared, if no k-mers are kept in registers (motif_tables.cu)."""

ROWS_PER_LAUNCH = 1 << 14
"""Rows of a launch at most: a grid's second dimension ends at 65,535."""

ASKED_FOR = 48 * 1024
"""Bytes of shared memory above which a kernel has to ask for it."""

C_TYPE = {2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


@dataclass(frozen=True)
class Fit:
    """How much of the tables a block takes at a time: pairs of a tile, places of each sub-table."""

    rows: int
    columns: int
    row_capacity: int
    column_capacity: int


def fit(row: tuple[int, int], column: tuple[int, int], tile: tuple[int, int], room: int, pair: int) -> Fit:
    """What fits into `room` bytes; `row` and `column` are (places of a sub-table, bytes of a place).

    A pair of the tile takes `pair` bytes besides.  A tile too large is halved until its sub-tables fit whole; if one
    pair does not fit, it is compared in stages.  InputError if not even the shortest part of a pair fits.

    >>> fit((512, 6), (512, 6), (4, 4), 49152, 0)
    Fit(rows=4, columns=4, row_capacity=512, column_capacity=512)
    >>> fit((512, 6), (512, 6), (4, 4), 4096, 128)
    Fit(rows=1, columns=1, row_capacity=320, column_capacity=320)
    """
    rows, columns = tile
    sizes = row[0] * row[1], column[0] * column[1]
    while rows * columns > 1 and rows * sizes[0] + columns * sizes[1] + rows * columns * pair > room:
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)
    room -= rows * columns * pair
    if rows * sizes[0] + columns * sizes[1] <= room:
        return Fit(rows, columns, row[0], column[0])
    # A side that takes less than its half leaves the rest to the other.
    mine = min(sizes[0], max(room // 2, room - sizes[1])) // row[1] // ALIGNMENT * ALIGNMENT
    theirs = min(column[0], (room - mine * row[1]) // column[1] // ALIGNMENT * ALIGNMENT)
    if min(mine, theirs) < ALIGNMENT:
        raise InputError(f"{room} bytes of shared memory hold no part of two sub-tables: give a block more")
    return Fit(1, 1, mine, theirs)


class CudaTables:
    """Tables on a GPU, and the kernel that compares others with them; `clock` has the milliseconds of its launches."""

    @failures_named()
    def __init__(self, tables: Tables, options: TableOptions) -> None:
        self.tables, self.options = tables, options
        self.clock = DeviceClock()
        self._kernels: dict[str, Any] = {}
        self._limit = min(options.shared_bytes or shared_limit(), shared_limit())
        self._columns = _upload(tables)
        self._ends = on_gpu(tables.ends)

    @failures_named()
    def compare(self, rows: Tables, some: range, diagonal: int | None = None) -> NDArray[Any]:
        """R, uint32 or uint64 [d + 1, some, columns], of the sequences `some` of `rows`: `compare_cpu.compare`."""
        kind = np.dtype(sum_type(rows, self.tables))
        planes, columns = self.tables.d + 1, len(self.tables)
        out = np.zeros((planes, len(some), columns), kind)
        if out.size == 0:
            return out
        arrays = self._columns if rows is self.tables else _upload(rows)
        step = max(1, min(ROWS_PER_LAUNCH, self.options.tile_bytes // (planes * columns * kind.itemsize)))
        for low in range(0, len(some), step):
            high = min(low + step, len(some))
            counters = cupy.zeros((planes, high - low, columns), kind)
            below = -(high - low) if diagonal is None else diagonal + low
            self._launch(rows, arrays, some.start + low, high - low, below, counters)
            out[:, low:high] = counters.get()
            self.clock.add(self.clock.take())
        return out

    def _launch(self, rows: Tables, arrays: list[Any], first: int, count: int, diagonal: int, counters: Any) -> None:
        if self.options.kernel == "thread-to-pair":
            self._launch_pairs(rows, arrays, first, count, diagonal, counters)
        else:
            self._launch_buckets(rows, arrays, first, count, diagonal, counters)

    def _launch_buckets(
        self, rows: Tables, arrays: list[Any], first: int, count: int, diagonal: int, counters: Any
    ) -> None:
        kernel, options = self.options.kernel, self.options
        tile = (options.tile_rows, options.tile_columns) if kernel == "thread-to-bucket" else (1, 1)
        pair = options.threads_per_block // 32 * counters.dtype.itemsize
        places = self._place(rows), self._place(self.tables)
        shape = fit(*places, tile, self._limit, pair)
        merging = LINEAR if options.linear else EVERY
        settings = (
            TEAMS[kernel], options.keep or merging if kernel == "thread-to-bucket" else merging,
            str(options.cache_counts).lower(), shape.rows, shape.columns, options.threads_per_block,
            max(1, options.resident_threads // options.threads_per_block),
        )  # fmt: skip
        function = self._kernel("compare_buckets", rows, counters.dtype, *map(str, settings))
        shared = shape.rows * shape.row_capacity * places[0][1] + shape.columns * shape.column_capacity * places[1][1]
        if shared + pair * shape.rows * shape.columns > ASKED_FOR:
            function.max_dynamic_shared_size_bytes = shared
        columns = len(self.tables)
        tiles = -(-count // shape.rows) * -(-columns // shape.columns)
        arguments = (
            *arrays, np.int64(first), np.int32(count), np.int32(rows.keys.shape[2]), np.int32(shape.row_capacity),
            *self._columns, np.int64(0), np.int32(columns), np.int32(self.tables.keys.shape[2]),
            np.int32(shape.column_capacity), self._ends, np.int32(len(self.tables.ends)),
            np.int32(self.tables.buckets), np.int64(diagonal), counters,
        )  # fmt: skip
        self.clock.launch(function, (tiles,), options.threads_per_block, arguments, shared)

    def _launch_pairs(
        self, rows: Tables, arrays: list[Any], first: int, count: int, diagonal: int, counters: Any
    ) -> None:
        options, key = self.options, rows.keys.itemsize
        chunks = options.chunk * options.threads_per_block * key
        capacity = min(rows.keys.shape[2], (self._limit - chunks) // key // ALIGNMENT * ALIGNMENT)
        if capacity < ALIGNMENT:
            raise InputError(
                f"{options.chunk} k-mers for each of {options.threads_per_block} threads leave no room in "
                f"{self._limit} bytes of shared memory: give a smaller chunk or block"
            )
        function = self._kernel("compare_pairs", rows, counters.dtype)
        shared = capacity * key + chunks
        if shared > ASKED_FOR:
            function.max_dynamic_shared_size_bytes = shared
        columns = len(self.tables)
        arguments = (
            *arrays, np.int64(first), np.int32(count), np.int32(rows.keys.shape[2]), np.int32(capacity),
            *self._columns, np.int64(0), np.int32(columns), np.int32(self.tables.keys.shape[2]),
            np.int32(options.chunk), self._ends, np.int32(len(self.tables.ends)), np.int64(diagonal), counters,
        )  # fmt: skip
        grid = (-(-columns // options.threads_per_block), count)
        self.clock.launch(function, grid, options.threads_per_block, arguments, shared)

    def _place(self, tables: Tables) -> tuple[int, int]:
        """Places of a sub-table, and bytes of a place in shared memory."""
        counts = tables.counts.itemsize if self.options.cache_counts else 0
        return tables.keys.shape[2], tables.keys.itemsize + counts

    def _kernel(self, name: str, rows: Tables, kind: np.dtype[Any], *settings: str) -> Any:
        """The kernel's instance for these tables, compiled when first needed."""
        types = (rows.keys.itemsize, rows.counts.itemsize, self.tables.counts.itemsize, kind.itemsize)
        instance = f"{name}<{', '.join([*(C_TYPE[size] for size in types), *settings])}>"
        if instance not in self._kernels:
            module = compile_kernels("motif_tables.cu", (instance,))
            self._kernels[instance] = module.get_function(instance)
        return self._kernels[instance]


def _upload(tables: Tables) -> list[Any]:
    return [on_gpu(one) for one in (tables.keys, tables.counts, tables.offsets)]
