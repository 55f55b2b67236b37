"""As much of cupy as hpcvdj uses, on the host: arrays are NumPy's, kernels are compiled by g++ (cuda_on_host.h).

With it the whole CUDA backend, kernels and host code, runs unchanged without a GPU: a check of logic, not of a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import types
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++")
ORDERS = {"forward": 0, "backward": 1, "shuffled": 2}
SHARED_BYTES = 100_000
_HEADER = Path(__file__).with_name("cuda_on_host.h")
_RUBBISH = 0x5A


class Array(np.ndarray):
    """A device array."""

    def get(self, out=None, blocking=True):
        """A host copy."""
        if out is None:
            return np.array(self)
        out[...] = self
        return out


def asarray(values):
    """A device copy."""
    return np.array(values).view(Array)


def zeros(shape, dtype):
    """Zeros on the device."""
    return np.zeros(shape, dtype).view(Array)


def empty(shape, dtype):
    """Rubbish on the device."""
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[:] = _RUBBISH
    return array.view(Array)


def ndarray(shape, dtype, pointer):
    """The device array at an address."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype).reshape(shape).view(Array)


class Function:
    """A compiled kernel."""

    max_dynamic_shared_size_bytes = 48 * 1024

    def __init__(self, function):
        self._function = function

    def __call__(self, grid, block, arguments, *, shared_mem=0):
        assert shared_mem <= max(self.max_dynamic_shared_size_bytes, 48 * 1024), "shared memory was not asked for"
        assert shared_mem <= SHARED_BYTES
        assert block[0] <= 1024
        assert all(number > 0 for number in grid)
        assert all(number <= 65535 for number in grid[1:])
        grid = (ctypes.c_uint * 3)(*(*grid, 1, 1)[:3])
        values = [
            np.array([argument.ctypes.data if isinstance(argument, np.ndarray) else argument]) for argument in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        state = Fake.state
        self._function(grid, block[0], ctypes.c_size_t(shared_mem), pointers, ORDERS[state.order], state.seed)


class RawModule:
    """Kernels compiled by g++, once per text."""

    def __init__(self, code, options, name_expressions=None):
        self._names = name_expressions
        self._code = Fake.state.change(code)
        self._libraries = {}

    def get_function(self, name):
        """A kernel, by its name or template instance."""
        return Function(self._library(name).launch)

    def get_global(self, name):
        """The address of a `__constant__` array; one kernel to a module."""
        (library,) = self._libraries.values()
        return ctypes.addressof(ctypes.c_char.in_dll(library, name))

    def _library(self, name):
        if name not in self._libraries:
            self._libraries[name] = ctypes.CDLL(str(_compile(self._code, name)))
        return self._libraries[name]


def _compile(code, name):
    """A shared library of `code` with `launch` for the kernel `name`."""
    text = f"""#include "{_HEADER}"
{code.replace("extern __shared__", "extern")}
alignas(16) unsigned char shared[{SHARED_BYTES}];
extern "C" void launch(const unsigned *grid, unsigned threads, size_t bytes, void **arguments, int order, unsigned seed)
{{
    run_grid(grid, threads, shared, bytes, [](void **a) {{ call({name}, a); }}, arguments, order, seed);
}}
"""
    key = hashlib.sha256((text + _HEADER.read_text()).encode()).hexdigest()[:24]
    target = Fake.state.folder / f"{key}.so"
    if not target.exists():
        source = target.with_suffix(".cpp")
        source.write_text(text)
        options = ["-std=c++17", "-O1", "-fPIC", "-shared", "-w"]
        subprocess.run([COMPILER, *options, "-o", target, source], check=True, capture_output=True, timeout=300)
    return target


class _Device:
    def __init__(self, number=0):
        self.attributes = {"MultiProcessorCount": 1, "MaxSharedMemoryPerBlockOptin": SHARED_BYTES}
        self.mem_info = (1, 2)

    def use(self):
        """Nothing to choose."""


class _Event:
    def record(self):
        """All is done already."""

    def synchronize(self):
        """All is done already."""


class OutOfMemoryError(Exception):
    """cupy's."""


class CUDAError(Exception):
    """cupy's."""


class Fake:
    """The modules `cupy` and `cupyx`, and what the tests may set: fibers' order, a change of the kernels' text."""

    state: Fake

    def __init__(self, folder):
        self.folder, self.order, self.seed = folder, "forward", 1
        self.change = lambda code: code
        Fake.state = self

    def modules(self):
        """Name → module."""
        cuda = types.SimpleNamespace(
            Device=_Device,
            Event=_Event,
            get_elapsed_time=lambda start, end: 0.0,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            driver=types.SimpleNamespace(CUDADriverError=CUDAError),
            runtime=types.SimpleNamespace(
                CUDARuntimeError=CUDAError,
                getDeviceCount=lambda: 1,
                getDeviceProperties=lambda number: {"name": b"host"},
                runtimeGetVersion=lambda: 13000,
                driverGetVersion=lambda: 13000,
            ),
        )
        names = {"asarray": asarray, "zeros": zeros, "empty": empty, "ndarray": ndarray, "RawModule": RawModule}
        pool = types.SimpleNamespace(free_all_blocks=lambda: None)
        cupy = types.ModuleType("cupy")
        vars(cupy).update(names, cuda=cuda, __version__="fake", get_default_memory_pool=lambda: pool)
        cupyx = types.ModuleType("cupyx")
        vars(cupyx).update(empty_pinned=lambda shape, dtype: np.empty(shape, dtype))
        return {"cupy": cupy, "cupyx": cupyx}
