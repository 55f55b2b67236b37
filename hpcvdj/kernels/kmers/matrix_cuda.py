"""`matrix` on a GPU: F and G as bytes, multiplied by cuBLAS on the tensor cores, exact in 32-bit integers."""

from functools import cached_property
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas

from hpcvdj.kernels.device import allow_shared, gpu_errors, on_gpu, shared_limit
from hpcvdj.kernels.kmers.kmers_cuda import device_kmers, kernel
from hpcvdj.kernels.kmers.masks import neighbours
from hpcvdj.kernels.kmers.methods import KmerMethod, LoadedMethod, Pigeonhole, choose
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.pacing import Pacer

_BLOCK = 512
_INT8, _INT32, _COMPUTE_INT32 = 3, 10, 72
"""CUDA_R_8I, CUDA_R_32I and CUBLAS_COMPUTE_32I."""

_ALIGNED = 16

_PANEL = 1024
"""Rows of a product: of the symmetric result, what is left of a panel's diagonal is not computed."""


class Matrix:
    """The columns' k-mers and neighbourhoods on the GPU: F and G take (d + 2) 4^k bytes a sequence.

    Counts above 127, of repeats, do not fit into bytes: `pigeonhole` then takes over.
    """

    def __init__(self, columns: Profile, method: KmerMethod, pace: Pacer) -> None:
        self._columns, self._d, self._pace = columns, method.d, pace
        difference, distance = neighbours(method.k, method.d)
        self._difference = difference.astype(np.uint32), distance.astype(np.int32)
        with gpu_errors():
            self._tables = self._neighbourhoods(columns, method.d + 1)

    def _neighbourhoods(self, sequences: Profile, planes: int) -> Any:
        """int8 [planes, sequences, 4^k], or None if that is too narrow."""
        kmers, k = device_kmers(sequences), self._columns.k
        difference, distance = (part[self._difference[1] < planes] for part in self._difference)
        part_bits = 2 * k
        while planes << part_bits > shared_limit():
            part_bits -= 1
        table = cupy.empty((planes, len(sequences), 4**k), cupy.int8)
        overflow = cupy.zeros(1, cupy.int32)
        spread = kernel("matrix.cu", "neighbourhoods")
        allow_shared(spread, planes << part_bits)
        if len(sequences):
            arguments = (
                kmers.key, kmers.count, kmers.offsets, np.int32(len(sequences)), np.int32(k), np.int32(part_bits),
                on_gpu(difference), on_gpu(distance), np.int32(len(difference)), np.int32(planes), table, overflow,
            )  # fmt: skip
            grid = len(sequences), 1 << 2 * k - part_bits
            spread(grid, (_BLOCK,), arguments, shared_mem=planes << part_bits)
        return None if int(overflow[0]) else table

    @gpu_errors()
    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """Counters on the GPU, uint32 [d + 1, rows, columns]; rows are `rows`, or the columns first … last-1."""
        n = len(self._columns)
        row_table = None
        if self._tables is not None and rows is None:
            row_table = self._tables[:1, first or 0 : n if last is None else last]
        elif self._tables is not None and rows is not None:
            row_table = self._neighbourhoods(rows, 1)
        if row_table is None:
            return self._instead.counters(rows, first, last)
        row_table = row_table[0]
        counters = cupy.zeros((self._d + 1, len(row_table), n), cupy.uint32)
        for r in range(0, len(row_table), _PANEL):
            begin = 0 if first is None else (first + r) // _ALIGNED * _ALIGNED
            height = min(_PANEL, len(row_table) - r)
            for h in range(self._d + 1):
                _product(row_table[r : r + height], self._tables[h, begin:], counters[h, r : r + height, begin:], n)
        return counters

    @cached_property
    def _instead(self) -> LoadedMethod:
        return choose(Pigeonhole.name, self._columns.k, self._d, "cuda").load(self._columns, self._pace)


def _product(rows: Any, columns: Any, counters: Any, stride: int) -> None:
    """counters[i, j] = sum over x of rows[i, x] columns[j, x]; rows of `counters` are `stride` counters apart."""
    size = rows.shape[1]
    factor, zero = np.array([1], np.int32), np.array([0], np.int32)
    # cuBLAS counts columns first, so its result is the transpose: columns times rows.
    cublas.gemmEx(
        cupy.cuda.Device().cublas_handle, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, len(columns), len(rows), size,
        factor.ctypes.data, columns.data.ptr, _INT8, size, rows.data.ptr, _INT8, size,
        zero.ctypes.data, counters.data.ptr, _INT32, stride, _COMPUTE_INT32, cublas.CUBLAS_GEMM_DEFAULT,
    )  # fmt: skip
