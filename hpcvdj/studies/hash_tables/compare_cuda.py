"""The comparison kernels of the thesis on a GPU (section 3): tables are uploaded once, and each launch fits."""

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.device import DeviceClock, allow_shared, compile_kernels, gpu_errors, on_gpu, shared_limit
from hpcvdj.studies.hash_tables.construction import HashTables, TableOptions, merge_buckets

TEAMS = {"sequential-bucket": 0, "warp-to-bucket": 32, "thread-to-bucket": 1}
"""How many threads share a bucket; 0 means all of the block."""

ROWS_PER_LAUNCH = 1 << 14
"""The largest number of rows of a launch, as the second dimension of a grid has at most 65,535."""

LAUNCH_BYTES = 1 << 30
"""The largest size of the counters of a launch with several rows."""

RESIDENT_THREADS = 768
"""How many threads a multiprocessor must have room for, which limits the registers of a thread."""

C_TYPE = {2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


class CudaTables:
    """Tables on a GPU, and the kernel that compares their sequences with each other."""

    @gpu_errors()
    def __init__(self, tables: HashTables, options: TableOptions) -> None:
        self._by_pair = options.kernel == "thread-to-pair"
        self._tables = tables = merge_buckets(tables, 1) if self._by_pair else tables
        self._threads, self._clock = options.threads_per_block, DeviceClock()
        slots, key, sums = tables.keys.shape[2], tables.keys.itemsize, tables.counters(0).itemsize
        template = [C_TYPE[size] for size in (key, tables.counts.itemsize, sums)]
        if self._by_pair:
            name, setting = "compare_pairs", options.chunk
            self._shared = (slots + options.chunk * self._threads) * key
        else:
            name, setting = "compare_buckets", tables.buckets
            resident = max(1, RESIDENT_THREADS // self._threads)
            template += map(str, (TEAMS[options.kernel], str(options.linear).lower(), self._threads, resident))
            self._shared = 2 * slots * (key + tables.counts.itemsize)
        if self._shared > shared_limit() - self._threads // 32 * sums:
            raise InputError(
                f"two sub-tables take {self._shared:,} bytes of a block's shared memory, and the GPU has "
                f"{shared_limit():,}: give shorter sequences, a smaller chunk or smaller blocks"
            )
        instance = f"{name}<{', '.join(template)}>"
        self._kernel = compile_kernels("studies/hash_tables/tables.cu", (instance,)).get_function(instance)
        allow_shared(self._kernel, self._shared)
        arrays = [on_gpu(array) for array in (tables.keys, tables.counts, tables.offsets)]
        sizes = np.int32(len(tables)), np.int32(slots)
        self._arguments = (*arrays, *sizes, on_gpu(tables.ends), np.int32(tables.d + 1), np.int32(setting))

    @gpu_errors()
    def compare(self, rows: range) -> tuple[NDArray[Any], float]:
        """Compare rows: R and the seconds of the kernels, as in `comparison.load`."""
        out, before = self._tables.counters(len(rows)), self._clock.milliseconds
        step = max(1, min(ROWS_PER_LAUNCH, LAUNCH_BYTES // out[:, :1].nbytes)) if out.size else 1
        for low in range(0, len(rows), step):
            part = out[:, low : low + step]
            count, columns = part.shape[1:]
            counters = cupy.zeros(part.shape, part.dtype)
            arguments = (*self._arguments, np.int32(rows.start + low), np.int32(count), counters)
            grid = (-(-columns // self._threads), count) if self._by_pair else (count * columns,)
            self._clock.launch(self._kernel, grid, self._threads, arguments, self._shared)
            part[...] = self._clock.pending(counters.get())()
        return out, (self._clock.milliseconds - before) / 1000
