"""The k-mers of each sequence, found and sorted on the GPU; what the GPU methods share."""

from functools import cache
from typing import Any

import cupy
import numpy as np

from hpcvdj.kernels.device import compile_kernels, on_gpu
from hpcvdj.kernels.kmers.kmers import MAX_D, Kmers
from hpcvdj.kernels.kmers.masks import HASH_FACTOR
from hpcvdj.kernels.kmers.profile import Profile

THREADS = 256

FIELDS = MAX_D + 1
"""Runs of kept positions of a table, at most."""

TABLE = np.dtype(
    [
        ("field", [("right", np.int32), ("left", np.int32), ("mask", np.uint64)], FIELDS),
        ("mask", np.uint64),
        ("left_out", np.uint64, MAX_D),
        ("counts", np.uint32),
        ("key_bits", np.int32),
        ("plane", np.int32),
        ("unused", np.int32),
    ]
)

CONSTANTS = {
    "MAX_D": MAX_D,
    "FIELDS": FIELDS,
    "TABLE_BYTES": TABLE.itemsize,
    "HASH_FACTOR_HIGH": HASH_FACTOR >> 32,
    "HASH_FACTOR_LOW": HASH_FACTOR & 0xFFFFFFFF,
}
"""What host and device share."""


def kernel(file: str, name: str) -> Any:
    """A kernel of this folder for the current GPU, compiled when first needed."""
    return _kernel(cupy.cuda.Device().id, file, name)


@cache
def _kernel(device: int, file: str, name: str) -> Any:
    names = (name,) if "<" in name else ()
    return compile_kernels(f"kernels/kmers/{file}", names, **CONSTANTS).get_function(name)


def launch(file: str, name: str, threads: int, *arguments: Any, tables: int = 1) -> None:
    """Start at least so many threads of a kernel of this folder, for each of some tables."""
    kernel(file, name)((-(-threads // THREADS), tables), (THREADS,), arguments)


def owners(offsets: Any, n: int) -> Any:
    """The sequence of each of n bases or k-mers, int32."""
    return cupy.searchsorted(offsets, cupy.arange(n, dtype=cupy.int64), side="right").astype(cupy.int32) - cupy.int32(1)


def device_kmers(profile: Profile) -> Kmers:
    """The k-mers of a profile, from its bases; the arrays are on the GPU."""
    sequences, k = profile.sequences, profile.k
    profile.require_countable()
    n = len(sequences)
    if not len(sequences.codes):
        empty = cupy.empty(0, cupy.uint64)
        return Kmers(k, empty, empty.astype(cupy.uint32), cupy.zeros(n + 1, cupy.int64))
    key, owner = _windows(profile)
    if 2 * k + n.bit_length() <= 64:
        packed = (owner.astype(cupy.uint64) << cupy.uint64(2 * k)) | key
        packed.sort()
        owner = (packed >> cupy.uint64(2 * k)).astype(cupy.int32)
        key = packed & cupy.uint64((1 << 2 * k) - 1)
    else:
        order = cupy.lexsort(cupy.stack([key, owner.astype(cupy.uint64)]))
        key, owner = key[order], owner[order]
    new = cupy.ones(len(key), dtype=bool)
    new[1:] = (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])
    first = cupy.flatnonzero(new)
    count = cupy.diff(first, append=cupy.asarray([len(key)])).astype(cupy.uint32)
    if profile.distinct:
        count[:] = 1
    key, owner = key[first], owner[first]
    offsets = cupy.searchsorted(owner, cupy.arange(n + 1, dtype=cupy.int32)).astype(cupy.int64)
    return Kmers(k, key, count, offsets)


def _windows(profile: Profile) -> tuple[Any, Any]:
    """The k-mer of each window of unambiguous bases, and its sequence."""
    sequences, bases = profile.sequences, len(profile.sequences.codes)
    codes, sequence = on_gpu(sequences.codes), owners(on_gpu(sequences.offsets), bases)
    key, owner = cupy.empty(bases, cupy.uint64), cupy.empty(bases, cupy.int32)
    launch("windows.cu", "windows", bases, codes, sequence, cupy.int64(bases), cupy.int32(profile.k), key, owner)
    kept = owner >= 0
    return key[kept], owner[kept]
