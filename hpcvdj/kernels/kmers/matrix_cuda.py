"""`matrix` on a GPU: F and G as bytes, multiplied by cuBLAS on the tensor cores, exact in 32-bit integers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas

from hpcvdj.kernels.device import allow_shared, compile_kernels, failures_named, on_gpu, shared_limit
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.matrix_cpu import neighbours
from hpcvdj.kernels.kmers.join_cuda import Pigeonhole
from hpcvdj.kernels.kmers.kmers_cuda import device_kmers

MAX_K = 9
"""F and G take (d + 2) 4^k bytes a sequence."""

_BLOCK = 512
_INT8, _INT32, _COMPUTE_INT32 = 3, 10, 72
"""CUDA_R_8I, CUDA_R_32I and CUBLAS_COMPUTE_32I."""

_ALIGNED = 16

_PANEL = 1024
"""Rows of a product: of the symmetric result, what is left of a panel's diagonal is not computed."""


class Matrix:
    """The columns' k-mers and neighbourhoods on the GPU.

    Counts above 127, of repeats, do not fit into bytes: `pigeonhole` then takes over.
    """

    def __init__(self, columns: Profile, d: int) -> None:
        self._d, self._k, self._n = d, columns.k, len(columns)
        self._columns = columns
        difference, distance = neighbours(columns.k, d)
        self._difference = difference.astype(np.uint32), distance.astype(np.int32)
        with failures_named():
            self._tables = self._neighbourhoods(columns, d + 1)

    def _neighbourhoods(self, some: Profile, planes: int) -> Any:
        """int8 [planes, sequences, 4^k], or None if that is too narrow."""
        kmers = device_kmers(some)
        difference, distance = (part[self._difference[1] < planes] for part in self._difference)
        part_bits = 2 * self._k
        while planes << part_bits > shared_limit():
            part_bits -= 1
        table = cupy.empty((planes, len(some), 4**self._k), cupy.int8)
        overflow = cupy.zeros(1, cupy.int32)
        kernel = compile_kernels("motif_matrix.cu").get_function("neighbourhoods")
        allow_shared(kernel, planes << part_bits)
        if len(some):
            kernel(
                (len(some), 1 << 2 * self._k - part_bits),
                (_BLOCK,),
                (
                    kmers.key, kmers.count, kmers.offsets, np.int32(len(some)), np.int32(self._k), np.int32(part_bits),
                    on_gpu(difference), on_gpu(distance), np.int32(len(difference)), np.int32(planes),
                    table, overflow,
                ),
                shared_mem=planes << part_bits,
            )  # fmt: skip
        return None if int(overflow[0]) else table

    @failures_named()
    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """Counters on the GPU, uint32 [d + 1, rows, columns]; rows are `rows`, or the columns first … last-1."""
        mine = None
        if self._tables is not None:
            mine = (
                self._tables[:1, first or 0 : self._n if last is None else last]
                if rows is None
                else self._neighbourhoods(rows, 1)
            )
        if mine is None:
            return self._instead.counters(rows, first, last)
        mine = mine[0]
        found = cupy.zeros((self._d + 1, len(mine), self._n), cupy.uint32)
        for r in range(0, len(mine), _PANEL):
            begin = 0 if first is None else (first + r) // _ALIGNED * _ALIGNED
            height = min(_PANEL, len(mine) - r)
            for h in range(self._d + 1):
                _product(mine[r : r + height], self._tables[h, begin:], found[h, r : r + height, begin:], self._n)
        return found

    @cached_property
    def _instead(self) -> Pigeonhole:
        return Pigeonhole(self._columns, self._d, min(self._k, self._d + 4))


def _product(rows: Any, columns: Any, found: Any, stride: int) -> None:
    """found[i, j] = sum over x of rows[i, x] columns[j, x]; rows of `found` lie `stride` counters apart."""
    size = rows.shape[1]
    one, zero = np.array([1], np.int32), np.array([0], np.int32)
    # cuBLAS counts columns first, so its result is the transpose: columns times rows.
    cublas.gemmEx(
        cupy.cuda.Device().cublas_handle, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, len(columns), len(rows), size,
        one.ctypes.data, columns.data.ptr, _INT8, size, rows.data.ptr, _INT8, size,
        zero.ctypes.data, found.data.ptr, _INT32, stride, _COMPUTE_INT32, cublas.CUBLAS_GEMM_DEFAULT,
    )  # fmt: skip
