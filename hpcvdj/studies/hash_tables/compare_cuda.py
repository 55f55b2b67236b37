"""The thesis's comparison kernels on a GPU: tables uploaded once, pairs in launches that fit (section 3)."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.device import DeviceClock, allow_shared, compile_kernels, gpu_errors, on_gpu, shared_limit
from hpcvdj.recombination.alphabet import BASES_PER_WORD
from hpcvdj.studies.hash_tables.compare_cpu import sum_type
from hpcvdj.studies.hash_tables.construction import Tables
from hpcvdj.studies.hash_tables.options import TableOptions

TEAMS = {"sequential-bucket": 0, "warp-to-bucket": 32, "thread-to-bucket": 1}
"""Threads that share a bucket; 0 for the whole block."""

ROWS_PER_LAUNCH = 1 << 14
"""Rows of a launch at most: a grid's second dimension ends at 65,535."""

LAUNCH_BYTES = 1 << 30
"""Counters that one launch leaves on the GPU, at most, but for a single row."""

RESIDENT_THREADS = 768
"""Threads that a multiprocessor has room for: limits the registers of a thread."""

C_TYPE = {2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}

CONSTANTS = {"BASES_PER_WORD": BASES_PER_WORD}
"""What host and device share."""


class CudaTables:
    """Tables on a GPU, and the kernel that compares others with them; `clock` has the milliseconds of its launches."""

    @gpu_errors()
    def __init__(self, tables: Tables, options: TableOptions) -> None:
        self.tables, self.options = tables, options
        self.clock = DeviceClock()
        self._kernels: dict[str, Any] = {}
        self._columns = _upload(tables)
        self._ends = on_gpu(tables.ends)

    @gpu_errors()
    def compare(self, rows: Tables, chosen: range, diagonal: int | None = None) -> NDArray[Any]:
        """R, uint32 or uint64 [d + 1, chosen, columns], of the sequences `chosen` of `rows`: `compare_cpu.compare`."""
        dtype = np.dtype(sum_type(rows, self.tables))
        planes, columns = self.tables.d + 1, len(self.tables)
        out = np.zeros((planes, len(chosen), columns), dtype)
        if out.size == 0:
            return out
        arrays = self._columns if rows is self.tables else _upload(rows)
        step = max(1, min(ROWS_PER_LAUNCH, LAUNCH_BYTES // (planes * columns * dtype.itemsize)))
        for low in range(0, len(chosen), step):
            high = min(low + step, len(chosen))
            counters = cupy.zeros((planes, high - low, columns), dtype)
            below = -(high - low) if diagonal is None else diagonal + low
            row_arguments = (*arrays, np.int64(chosen.start + low), np.int32(high - low), np.int32(rows.keys.shape[2]))
            self._launch(rows, row_arguments, np.int64(below), counters)
            out[:, low:high] = counters.get()
            self.clock.add(self.clock.take())
        return out

    def _launch(self, rows: Tables, row_arguments: tuple[Any, ...], diagonal: np.int64, counters: Any) -> None:
        """Compare rows with all columns, into `counters`; columns before the diagonal are left out."""
        options, tables = self.options, self.tables
        threads, (count, columns) = options.threads_per_block, counters.shape[1:]
        places = rows.keys.shape[2]
        shared = places * rows.keys.itemsize
        ends = self._ends, np.int32(len(self._ends))
        column_arguments = (*self._columns, np.int32(columns), np.int32(tables.keys.shape[2]), *ends)
        if options.kernel == "thread-to-pair":
            kernel = self._kernel("compare_pairs", rows, counters.dtype)
            shared += options.chunk * threads * rows.keys.itemsize
            setting, grid = np.int32(options.chunk), [-(-columns // threads), count]
        else:
            linear = str(options.linear).lower()
            resident = max(1, RESIDENT_THREADS // threads)
            names = map(str, (TEAMS[options.kernel], linear, threads, resident))
            kernel = self._kernel("compare_buckets", rows, counters.dtype, *names)
            shared += places * rows.counts.itemsize
            shared += tables.keys.shape[2] * (tables.keys.itemsize + tables.counts.itemsize)
            setting, grid = np.int32(tables.buckets), [count * columns]
        if shared > shared_limit() - threads // 32 * counters.dtype.itemsize:
            raise InputError(
                f"two sub-tables take {shared:,} bytes of a block's shared memory, and the GPU has {shared_limit():,}: "
                "give shorter sequences, a smaller chunk or smaller blocks"
            )
        allow_shared(kernel, shared)
        arguments = (*row_arguments, *column_arguments, setting, diagonal, counters)
        self.clock.launch(kernel, tuple(grid), threads, arguments, shared)

    def _kernel(self, name: str, rows: Tables, sums: np.dtype[Any], *settings: str) -> Any:
        """The kernel's instance for these tables, compiled when first needed."""
        types = (rows.keys.itemsize, rows.counts.itemsize, self.tables.counts.itemsize, sums.itemsize)
        instance = f"{name}<{', '.join([*(C_TYPE[size] for size in types), *settings])}>"
        if instance not in self._kernels:
            module = compile_kernels("studies/hash_tables/tables.cu", (instance,), **CONSTANTS)
            self._kernels[instance] = module.get_function(instance)
        return self._kernels[instance]


def _upload(tables: Tables) -> list[Any]:
    return [on_gpu(array) for array in (tables.keys, tables.counts, tables.offsets)]
