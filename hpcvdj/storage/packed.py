"""HDF5 datasets that hpcvdj compresses while it writes them."""

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

try:
    from isal import isal_zlib as deflate
except ImportError:  # a processor that ISA-L does not support
    import zlib as deflate  # type: ignore[no-redef]

CHUNK_BYTES = 1 << 19
"""Approximate bytes of a chunk before compression; HDF5 compresses and reads a chunk as a whole."""

LEVEL = 1
"""Level of deflate: higher levels of ISA-L pack counters hardly better and take several times as long."""


def filters(dtype: Any) -> dict[str, Any]:
    """Return the filters of packed datasets of a type, as arguments of h5py.

    Text is not shuffled: shuffled CDR3s take 1.4 times the time and 1.6 times the bytes.
    """
    shuffle = np.dtype(dtype).kind != "S"
    return {"shuffle": shuffle, "compression": "gzip", "compression_opts": LEVEL, "fletcher32": True}


class PackedDataset:
    """A dataset of one or two dimensions that is compressed while it is written, in blocks of rows.

    The filters are HDF5's own (shuffle, deflate, fletcher32: HDF5 User's Guide, section 5.6), so any HDF5 reader
    opens the dataset.  Several threads apply them here, chunk by chunk, with a deflate that is several times as fast
    as HDF5's zlib.
    """

    def __init__(self, group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        row_bytes = max(1, np.dtype(dtype).itemsize * math.prod(shape[1:]))
        self._rows = int(max(1, min(shape[0], CHUNK_BYTES // row_bytes)))
        # A dataset without rows cannot have chunks.
        packing = {"chunks": (self._rows, *shape[1:]), **filters(dtype)} if 0 not in shape else {}
        self.dataset = group.create_dataset(name, shape, dtype, **packing)
        # Keep shape and type: each question to h5py waits for the thread that writes.
        self._shape, self._dtype = shape, np.dtype(dtype)
        # The number of rows so far, and the chunk that is not full yet.
        self._filled = 0
        self._held: NDArray[Any] | None = None
        self._packing: deque[tuple[int, Future[bytes]]] = deque()

    def put(self, values: NDArray[Any]) -> None:
        """Write the next rows."""
        done = 0
        while done < len(values):
            number, within = divmod(self._filled, self._rows)
            size = min(self._rows, self._shape[0] - number * self._rows)
            taken = min(size - within, len(values) - done)
            if self._held is None:
                self._held = np.zeros((self._rows, *self._shape[1:]), self._dtype)
            self._held[within : within + taken] = values[done : done + taken]
            done += taken
            self._filled += taken
            if within + taken == size:
                self._packing.append((number, _threads().submit(_pack, self._held)))
                self._held = None
                self._write(waiting=2 * _thread_count())

    def _write(self, waiting: int = 0) -> None:
        """Write chunks in their order until at most `waiting` of them are left."""
        while len(self._packing) > waiting:
            number, packed = self._packing.popleft()
            start = (number * self._rows, *[0] * (len(self._shape) - 1))
            self.dataset.id.write_direct_chunk(start, packed.result())

    def close(self) -> None:
        """Write the remaining chunks.  Raise ValueError unless all rows were put."""
        self._write()
        if self._filled < self._shape[0]:
            raise ValueError(f"{self.dataset.name}: rows are missing")


def write_packed(group: h5py.Group, name: str, values: NDArray[Any]) -> None:
    """Write a dataset of one or two dimensions, packed and with checksums."""
    packed = PackedDataset(group, name, values.shape, values.dtype)
    packed.put(values)
    packed.close()


@cache
def _thread_count() -> int:
    return int(os.environ.get("NUMBA_NUM_THREADS", "1"))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_thread_count(), "hpcvdj-pack")


def packed_chunks(chunks: Iterable[NDArray[Any]]) -> Iterator[bytes]:
    """Return chunks as HDF5 stores them with `filters`, in order.  Several threads compress them."""
    return _threads().map(_pack, chunks)


def _pack(values: NDArray[Any]) -> bytes:
    data = values.view(np.uint8).reshape(-1, values.itemsize)
    if filters(values.dtype)["shuffle"]:
        # Shuffle: the first bytes of all values, then the second bytes, and so on.
        data = np.ascontiguousarray(data.T)
    packed: bytes = deflate.compress(data, LEVEL)
    return packed + _fletcher32(packed)


def _fletcher32(data: bytes) -> bytes:
    """Return HDF5's checksum of a chunk: sums of its 16-bit big-endian words modulo 65535, with 65535 instead of 0.

    An odd last byte is the upper half of a word (HDF5 User's Guide, section 5.6; H5_checksum_fletcher32).
    """
    words = np.frombuffer(data + b"\0" * (len(data) % 2), dtype=">u2").astype(np.uint64)
    sums = int(words.sum()), int((words * np.arange(len(words), 0, -1, dtype=np.uint64)).sum())
    first, second = (value and (value - 1) % 0xFFFF + 1 for value in sums)
    return (second << 16 | first).to_bytes(4, "little")
