"""As much of cupy as hpcvdj uses, on the host: NumPy holds the arrays, kernels are compiled by g++ (cuda_on_host.h).

With it the whole CUDA backend, kernels and host code, runs unchanged without a GPU: a check of logic, not of a GPU.
As cupy's, arrays do not mix with NumPy's; a kernel that writes beyond one of its arrays is an error.  cuBLAS's product
of bytes is NumPy's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import types
from contextlib import contextmanager
from pathlib import Path

import numpy as np

COMPILER = shutil.which("g++")
ORDERS = {"forward": 0, "backward": 1, "shuffled": 2}
SHARED_BYTES = 100_000
_HEADER = Path(__file__).with_name("cuda_on_host.h")
_DYNAMIC = re.compile(r"extern __shared__ (?:__align__\(\d+\) )?(\w+) (\w+)\[\];")
_POINTER = r"\1 *const \2 = (\1 *)shared_memory;"
_RUBBISH = 0x5A
_GUARD = 64
_ATTRIBUTES = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "T")
_METHODS = ("astype", "view", "reshape", "fill", "sort", "any", "all", "sum")


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """A device array: `host` is its content, `memory` the guarded bytes that it is a part of, if it is of any."""

    def __init__(self, host, memory=None):
        self.host, self.memory = np.asarray(host), memory

    def get(self, out=None, blocking=True):
        """A host copy."""
        if out is None:
            return np.array(self.host)
        out[...] = self.host
        return out

    def set(self, values, stream=None):
        """Take a host array's content, of the same shape and type."""
        assert isinstance(values, np.ndarray)
        assert values.flags.c_contiguous
        assert (values.shape, values.dtype) == (self.host.shape, self.host.dtype)
        self.host[...] = values

    @property
    def data(self):
        """Its address."""
        return types.SimpleNamespace(ptr=self.host.ctypes.data)

    def __array__(self, *arguments, **options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc, method, *arguments, **options):
        out = options.pop("out", None)
        if out is None:
            return _on_device(getattr(ufunc, method))(*arguments, **options)
        getattr(ufunc, method)(*_host(arguments), out=_host(out), **options)
        return out[0]

    def __getattr__(self, name):
        if name not in (*_ATTRIBUTES, *_METHODS):
            raise AttributeError(name)
        found = getattr(self.host, name)
        return self._part(found) if name == "T" else _on_device(found) if callable(found) else found

    def __getitem__(self, key):
        return self._part(self.host[_host(key)])

    def __setitem__(self, key, value):
        self.host[_host(key)] = _host(value)

    def __len__(self):
        return len(self.host)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __int__(self):
        return int(self.host)

    def __bool__(self):
        return bool(self.host)

    def _part(self, host):
        return Array(host, self.memory if np.may_share_memory(host, self.host) else None)


def _host(value):
    """What stands on the host for an argument; a NumPy array is none of the device's."""
    if isinstance(value, Array):
        return value.host
    if isinstance(value, tuple | list):
        return type(value)(map(_host, value))
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("a NumPy array among cupy's")
    return value


def _on_device(function):
    """A function of NumPy's, from device arrays to device arrays."""

    def call(*arguments, **options):
        found = function(*_host(arguments), **{name: _host(value) for name, value in options.items()})
        if isinstance(found, tuple):
            return tuple(map(Array, found))
        return found if found is None else Array(found)

    return call


def asarray(values, dtype=None):
    """A device copy."""
    if isinstance(values, Array):
        return values
    values = np.asarray(values, dtype)
    assert values.dtype.kind in "biuf", f"cupy has no arrays of {values.dtype}"
    array = empty(values.shape, values.dtype, "F" if values.flags.fnc else "C")
    array.host[...] = values
    return array


def zeros(shape, dtype=float):
    """Zeros on the device."""
    array = empty(shape, dtype)
    array.host[...] = 0
    return array


def empty(shape, dtype=float, order="C"):
    """Rubbish on the device, and more of it on both sides, which is to stay."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.full(size + 2 * _GUARD, _RUBBISH, np.uint8)
    return Array(np.ndarray(shape, dtype, memory, _GUARD, order=order), memory)


def ndarray(shape, dtype, pointer):
    """The device array at an address."""
    return Array(_at(pointer, shape, dtype))


def _at(pointer, shape, dtype, stride=None):
    """The array at an address, rows `stride` elements apart."""
    itemsize = np.dtype(dtype).itemsize
    size = (int(np.prod(shape)) if stride is None else (shape[0] - 1) * stride + shape[1]) * itemsize
    strides = None if stride is None else (stride * itemsize, itemsize)
    return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(pointer), strides=strides)


def _gemm_ex(
    handle, op_a, op_b, m, n, k, alpha, a, a_type, a_stride, b, b_type, b_stride, beta, c, c_type, c_stride, compute,
    algorithm,
):  # fmt: skip
    """cuBLAS: columns first, C = alpha A^T B + beta C, of bytes, in 32-bit integers."""
    assert (op_a, op_b, a_type, b_type, c_type, compute) == (1, 0, 3, 3, 10, 72)
    assert not any(place % 4 for place in (a, b, a_stride, b_stride)), "bytes have to begin at words"
    assert min(a_stride, b_stride) >= k
    assert c_stride >= m
    if not m * n:
        return
    left, right, found = (
        _at(a, (m, k), np.int8, a_stride),
        _at(b, (n, k), np.int8, b_stride),
        _at(c, (n, m), np.int32, c_stride),
    )
    # Exact in doubles, whose product is fast: sums of products of bytes stay far below 2^53.
    product = (right.astype(np.float64) @ left.astype(np.float64).T).astype(np.int64)
    scale, before = (_at(pointer, (1,), np.int32)[0] for pointer in (alpha, beta))
    found[...] = (scale * product + (before * found if before else 0)).astype(np.int32)


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
        arrays = [argument for argument in arguments if isinstance(argument, Array)]
        values = [
            np.array(argument.data.ptr if isinstance(argument, Array) else _host(argument)) for argument in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        state = Fake.state
        failure = self._function(grid, block[0], ctypes.c_size_t(shared_mem), pointers, ORDERS[state.order], state.seed)
        if failure is not None:
            raise CUDAError(failure.decode())
        for array in arrays:
            if array.memory is not None and not _guarded(array.memory):
                raise CUDAError("writes beyond an array")


def _guarded(memory):
    """Whether what lies on both sides of an array is as it was."""
    return (memory[:_GUARD] == _RUBBISH).all() and (memory[-_GUARD:] == _RUBBISH).all()


class RawModule:
    """Kernels compiled by g++, once per text."""

    def __init__(self, code, options, name_expressions=None):
        self._names = name_expressions
        self._code = Fake.state.change(code)
        self._libraries = {}

    def get_function(self, name):
        """A kernel, by its name or template instance."""
        launch = self._library(name).launch
        launch.restype = ctypes.c_char_p
        return Function(launch)

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
    text = f"""#include "{_HEADER.name}"
{_DYNAMIC.sub(_POINTER, code)}
extern "C" const char *launch(
    const unsigned *grid, unsigned threads, size_t bytes, void **arguments, int order, unsigned seed)
{{
    return run_grid(grid, threads, bytes, [](void **a) {{ call({name}, a); }}, arguments, order, seed);
}}
"""
    folder = Fake.state.folder
    # g++ takes the precompiled header, which it finds first; the header itself takes longer than most kernels.
    precompiled = folder / f"{_HEADER.name}.gch"
    if not precompiled.exists():
        _run_compiler(precompiled, "-x", "c++-header", _HEADER)
    key = hashlib.sha256((text + _HEADER.read_text()).encode()).hexdigest()[:24]
    target = folder / f"{key}.so"
    if not target.exists():
        source = folder / f"{key}-{os.getpid()}.cpp"
        source.write_text(text)
        _run_compiler(target, "-shared", source)
    return target


def _run_compiler(target, *words):
    """Make `target`, which another process may make at the same time."""
    options = ["-std=c++17", "-O1", "-fPIC", "-w", "-U_FORTIFY_SOURCE", f"-DSHARED_BYTES={SHARED_BYTES}"]
    own = target.with_name(f"{os.getpid()}-{target.name}")
    subprocess.run([COMPILER, *options, "-o", own, *words], check=True, capture_output=True, timeout=300)
    own.replace(target)


def without_barrier(number, barrier="__syncthreads();"):
    """A change of a kernel's text: its `number`-th barrier is gone, if it has so many."""

    def change(code):
        parts = code.split(barrier)
        if number + 1 >= len(parts):
            return code
        return barrier.join([*parts[:number], parts[number] + parts[number + 1], *parts[number + 2 :]])

    return change


class _Device:
    def __init__(self, number=0):
        self.id, self.cublas_handle = number, 0
        self.attributes = {"MultiProcessorCount": 1, "MaxSharedMemoryPerBlockOptin": SHARED_BYTES}
        self.mem_info = (1 << 28, 1 << 29)

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


_NUMPY = (
    "arange", "array", "count_nonzero", "diff", "flatnonzero", "full", "lexsort", "maximum", "nonzero", "ones",
    "partition", "searchsorted", "stack", "take", "where", "zeros_like",
)  # fmt: skip
"""Functions that are NumPy's, by name and meaning."""

_TYPES = ("bool_", "int8", "int32", "int64", "uint32", "uint64", "float64", "inf")


def _forget_modules():
    """Have the modules that import cupy, or what holds it, imported again when they are needed next."""
    for name in [name for name in sys.modules if name.startswith("hpcvdj.")]:
        if hasattr(sys.modules[name], "cupy") or name.endswith("_cuda"):
            module = sys.modules.pop(name)
            parent, _, own = name.rpartition(".")
            if getattr(sys.modules.get(parent), own, None) is module:
                delattr(sys.modules[parent], own)


class Fake:
    """The module `cupy`, and what the tests may set: fibers' order, a change of the kernels' text."""

    state: Fake

    def __init__(self, folder):
        self.folder, self.order, self.seed = folder, "forward", 1
        self.change = lambda code: code
        Fake.state = self

    @contextmanager
    def installed(self, monkeypatch):
        """The stand-in in the place of cupy, for every module of hpcvdj that imports it."""
        _forget_modules()
        for name, module in self.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr("hpcvdj.kernels.backends.gpu_uuid", lambda device: "GPU-host")
        yield
        # These modules hold the stand-in; the next import is to find the real cupy.
        _forget_modules()

    def modules(self):
        """Name → module."""
        cuda = types.SimpleNamespace(
            Device=_Device,
            Event=_Event,
            alloc_pinned_memory=bytearray,
            get_current_stream=lambda: None,
            get_elapsed_time=lambda start, end: 0.0,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            cublas=types.SimpleNamespace(gemmEx=_gemm_ex, CUBLAS_OP_N=0, CUBLAS_OP_T=1, CUBLAS_GEMM_DEFAULT=-1),
            driver=types.SimpleNamespace(CUDADriverError=CUDAError),
            runtime=types.SimpleNamespace(
                CUDARuntimeError=CUDAError,
                getDeviceCount=lambda: 1,
                getDeviceProperties=lambda number: {"name": b"host"},
                runtimeGetVersion=lambda: 13000,
                driverGetVersion=lambda: 13000,
            ),
        )
        names = {name: _on_device(getattr(np, name)) for name in _NUMPY} | {name: getattr(np, name) for name in _TYPES}
        names |= {"asarray": asarray, "zeros": zeros, "empty": empty, "ndarray": ndarray, "RawModule": RawModule}
        pool = types.SimpleNamespace(free_all_blocks=lambda: None)
        cupy = types.ModuleType("cupy")
        vars(cupy).update(names, cuda=cuda, __version__="fake", get_default_memory_pool=lambda: pool)
        return {"cupy": cupy, "cupy.cuda": cuda}
