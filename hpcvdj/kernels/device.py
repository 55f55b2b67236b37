"""What the GPU kernels share: compiling, timing, and work in batches that fit into memory."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_type_hints

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import MachineError, option
from hpcvdj.kernels.kernel import Pending
from hpcvdj.kernels.source import OPTIONS, source
from hpcvdj.kernels.structs import element, struct_type


def compile_kernels(file: str, names: tuple[str, ...] = (), **shared: int | type) -> Any:
    """A cupy module of a kernel file for the current GPU.

    names   C++ expressions of template instances
    shared  what host and device share, as `source` takes it
    """
    return cupy.RawModule(code=source(file, **shared), options=OPTIONS, name_expressions=names or None)


def set_constant(module: Any, name: str, values: NDArray[Any]) -> None:
    """Copy `values` to the start of a `__constant__` array."""
    pointer = module.get_global(name)
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    # Not with cupy.asarray, which keeps page-locked copies, another one whenever the last is still being read.
    cupy.ndarray(raw.shape, np.uint8, pointer).set(raw, stream=cupy.cuda.get_current_stream())


@contextmanager
def gpu_errors() -> Iterator[None]:
    """Raise MachineError, in one line, for what goes wrong on the GPU; also a decorator."""
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise MachineError(
            f"the GPU has too little memory ({_memory()}; {error}): stop other programs on it, use smaller "
            f"{option('batch_rows')}, or use {option('backend', 'cpu')}"
        ) from None
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise MachineError(f"the GPU failed ({error}): check it with nvidia-smi, then start again") from None


def _memory() -> str:
    free, total = cupy.cuda.Device().mem_info
    return f"{free / 1e9:.2f} of {total / 1e9:.2f} GB free"


def on_gpu(values: NDArray[Any]) -> cupy.ndarray:
    """A copy of `values` on the GPU, without the page-locked copy in between that cupy.asarray keeps for each size."""
    copy = cupy.empty(values.shape, values.dtype)
    copy.set(np.ascontiguousarray(values))
    return copy


class Struct:
    """A NamedTuple of arrays and integers as a struct that a kernel takes; its arrays are copied to the GPU."""

    def __init__(self, values: Any) -> None:
        self.value = np.zeros((), struct_type(type(values)))
        self._arrays = []
        for (name, hint), value in zip(get_type_hints(type(values)).items(), values, strict=True):
            kind = element(hint)
            if kind is None:
                self.value[name] = value
                continue
            array = on_gpu(np.asarray(value, np.int32 if kind is np.int64 else kind))
            self._arrays.append(array)
            self.value[name] = array.data.ptr, len(value), math.prod(value.shape[1:])


class DeviceClock:
    """Milliseconds that kernels ran on the GPU, by events around each launch."""

    def __init__(self) -> None:
        self.milliseconds = 0.0
        self._running: list[tuple[Any, Any]] = []

    def launch(self, kernel: Any, grid: tuple[int, ...], threads: int, arguments: tuple[Any, ...], shared: int) -> None:
        """Launch `kernel` with `shared` bytes of dynamic shared memory, between two events; a `Struct` is passed by
        value."""
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        values = tuple(argument.value if isinstance(argument, Struct) else argument for argument in arguments)
        kernel(grid, (threads,), values, shared_mem=shared)
        end.record()
        self._running.append((start, end))

    def pending(self, counters: NDArray[Any]) -> Pending:
        """Waits for the launches since the last call, adds up their times, and returns `counters`."""
        launches, self._running = self._running, []
        copied = cupy.cuda.Event()
        copied.record()

        @gpu_errors()
        def wait() -> NDArray[Any]:
            copied.synchronize()
            self.milliseconds += sum(cupy.cuda.get_elapsed_time(start, end) for start, end in launches)
            return counters

        return wait


class HostArrays:
    """Two host arrays that take turns, so that one can be read while the GPU copies to the other."""

    def __init__(self, columns: int) -> None:
        self._arrays = [np.empty((0, columns), dtype=np.uint64)] * 2

    def next(self, rows: int) -> NDArray[np.uint64]:
        """The array that was not given last time, or as much of it as `rows` rows; what is in it is undefined.

        The GPU copies at full speed to page-locked memory; it is plain memory if none of that is left.
        """
        self._arrays.reverse()
        columns = self._arrays[0].shape[1]
        if len(self._arrays[0]) < rows:
            # cupy keeps page-locked memory for the next array of the very same size: sizes must be few.
            size = rows * columns
            most = 1 << (size - 1).bit_length()
            try:
                # As cupyx.empty_pinned, without importing cupyx, which takes 0.1 s, and 0.9 s in each of 32 ranks.
                pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(8 * most), np.uint64, most)
            except (cupy.cuda.runtime.CUDARuntimeError, MemoryError):
                pinned = np.empty(size, np.uint64)
            self._arrays[0] = pinned[:size].reshape(rows, columns)
        return self._arrays[0][:rows]


def shared_limit() -> int:
    """Bytes of shared memory that one block may have on the current GPU."""
    return int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


def allow_shared(kernel: Any, size: int) -> None:
    """Let a block of `kernel` have `size` bytes of shared memory; more than 48 KiB must be asked for."""
    if size > 48 * 1024:
        kernel.max_dynamic_shared_size_bytes = size


def fitting_threads(kernel: Any, threads: int, shared: Callable[[int], int]) -> int:
    """Threads, at most `threads`, for which a block of `kernel` has `shared(threads)` bytes of memory, now allowed."""
    while threads > 32 and shared(threads) > shared_limit():
        threads = max(32, threads // 2)
    allow_shared(kernel, shared(threads))
    return threads


ROWS = 1 << 24
"""Sequences on the GPU at a time, at most; fewer where memory is short."""


def in_batches(work: Callable[[int, int], None], first: int, last: int, rows: int, smallest: int = 1024) -> int:
    """Run work(begin, end) for first … last - 1, `rows` at a time, or half as many while the GPU lacks memory.

    Returns how many fitted.  MachineError if not even `smallest` do.
    """
    while first < last:
        end = min(last, first + rows)
        try:
            work(first, end)
            first = end
        except cupy.cuda.memory.OutOfMemoryError:
            cupy.get_default_memory_pool().free_all_blocks()
            if rows <= smallest:
                raise MachineError(
                    f"the GPU has {_memory()}, too little for {rows:,} sequences; "
                    f"stop other programs on it, or use {option('backend', 'cpu')}"
                ) from None
            rows = max(smallest, rows // 2)
    return rows
