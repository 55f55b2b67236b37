"""`bitslice` on a GPU: a block to a pair of sequences, a thread to a shift."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import allow_shared, compile_kernels, failures_named, on_gpu
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.bitslice_cpu import planes_of

_BLOCK = 256
_MOST_ROWS = 65535
"""What a grid's second dimension takes."""


class Bitslice:
    """As `motifs.cpu.bitslice.Bitslice`."""

    def __init__(self, columns: Profile, d: int) -> None:
        self._d, self._k = d, columns.k
        with failures_named():
            self._columns = on_gpu(_words(columns))

    @failures_named()
    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """Counters on the GPU, uint32 [d + 1, rows, columns]; rows are `rows`, or the columns first … last-1."""
        columns = self._columns
        mine = columns[first or 0 : len(columns) if last is None else last] if rows is None else on_gpu(_words(rows))
        found = cupy.zeros((self._d + 1, len(mine), len(columns)), cupy.uint32)
        shared = 8 * 3 * (mine.shape[2] + columns.shape[2]) + 4 * (self._d + 1)
        kernel = compile_kernels("motif_bitslice.cu").get_function("bitslice")
        allow_shared(kernel, shared)
        for r in range(0, len(mine) if len(columns) else 0, _MOST_ROWS):
            part = mine[r : r + _MOST_ROWS]
            whole = len(part) == len(mine)
            target = found if whole else cupy.zeros((self._d + 1, len(part), len(columns)), cupy.uint32)
            kernel(
                (len(columns), len(part)),
                (_BLOCK,),
                (
                    part, columns, np.int32(mine.shape[2]), np.int32(columns.shape[2]), np.int32(self._k),
                    np.int32(-1 if first is None else first + r), np.int32(self._d + 1), np.int32(len(part)),
                    np.int32(len(columns)), target,
                ),
                shared_mem=shared,
            )  # fmt: skip
            if not whole:
                found[:, r : r + len(part)] = target
        return found


def _words(some: Profile) -> NDArray[np.uint64]:
    """The bit planes, uint64 [sequences, 3, words]."""
    return np.packbits(planes_of(some), axis=-1, bitorder="little").view(np.uint64)
