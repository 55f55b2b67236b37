"""How many sequences are within one exchanged letter of each sequence, on a GPU."""

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.device import compile_kernels, gpu_errors, on_gpu
from hpcvdj.kernels.neighbours.blocks import blocks

FILE = "kernels/neighbours/degrees.cu"

ROWS = 1 << 20
"""Sequences on the GPU at a time, unless a block has more: the slots of a hash table are then in the GPU's cache."""

THREADS = 256

MOST_GRID = 1 << 20
"""Blocks of threads of a launch, at most."""


@gpu_errors()
def degrees(
    letters: NDArray[np.uint8], lengths: NDArray[np.int64], classes: NDArray[np.int64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """As `hpcvdj.kernels.neighbours.degrees_cpu.degrees`, and with the same results."""
    order, starts = blocks(lengths, classes)
    letters, lengths, weights = letters[order], lengths[order], weights[order]
    in_blocks = np.empty(weights.shape, dtype=np.int64)
    module = compile_kernels(FILE)
    for chunk in _chunks(starts):
        rows = slice(starts[chunk.start], starts[chunk.stop])
        block = np.repeat(np.arange(len(chunk), dtype=np.int32), np.diff(starts[chunk.start : chunk.stop + 1]))
        in_blocks[rows] = _degrees(module, letters[rows], lengths[rows].astype(np.int32), block, weights[rows])
    out = np.empty_like(in_blocks)
    out[order] = in_blocks
    return out


def _chunks(starts: NDArray[np.int64]) -> Iterator[range]:
    """Runs of blocks with at most `ROWS` sequences, or one block with more."""
    first = 0
    while first < len(starts) - 1:
        fitting = int(np.searchsorted(starts, starts[first] + ROWS, side="right")) - 1
        stop = max(first + 1, fitting)
        yield range(first, stop)
        first = stop


def _degrees(
    module: Any, letters: NDArray[np.uint8], lengths: NDArray[np.int32], block: NDArray[np.int32],
    weights: NDArray[np.int64],
) -> NDArray[np.int64]:  # fmt: skip
    """The degrees of sequences in blocks, which have the numbers `block`."""
    rows, kinds = weights.shape
    bits = (2 * rows - 1).bit_length()
    sequences = (on_gpu(letters), np.int32(letters.shape[1]), on_gpu(lengths), on_gpu(block))
    weighted = (on_gpu(weights), np.int32(kinds), np.int64(rows))
    hashes, out = cupy.empty((rows,), np.uint64), cupy.empty((rows, kinds), np.int64)
    slots, sums = cupy.empty((1 << bits,), np.uint64), cupy.empty((1 << bits, kinds), np.uint64)
    slot_of = cupy.empty((rows,), np.uint32)
    grid, threads = (min(MOST_GRID, -(-rows // THREADS)),), (THREADS,)
    begin, add, take = map(module.get_function, ("begin", "add", "take"))
    begin(grid, threads, (*sequences, *weighted, hashes, out))
    for position in map(np.int32, range(int(lengths.max()))):
        slots.fill(np.uint64(0xFFFFFFFFFFFFFFFF))
        sums.fill(0)
        add(grid, threads, (*sequences, *weighted, hashes, position, np.int32(bits), slots, sums, slot_of))
        take(grid, threads, (sequences[2], *weighted[1:], position, sums, slot_of, out))
    return np.asarray(out.get())
