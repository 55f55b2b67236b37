"""HDF5 datasets that are packed while they are written."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

try:
    from isal import isal_zlib as deflate
except ImportError:  # a processor that ISA-L does not support
    import zlib as deflate  # type: ignore[no-redef]

CHUNK_BYTES = 1 << 19
"""Approximate bytes of a chunk before packing; a chunk is packed, and read, as a whole."""

LEVEL = 1
"""Level of deflate: higher levels of ISA-L pack counters hardly better and take several times as long."""


def filters(dtype: Any) -> dict[str, Any]:
    """The filters of packed datasets of a type, as arguments of h5py.

    Text is not shuffled: CDR3s then take 1.4 times the time and 1.6 times the bytes.
    """
    shuffle = np.dtype(dtype).kind != "S"
    return {"shuffle": shuffle, "compression": "gzip", "compression_opts": LEVEL, "fletcher32": True}


class PackedDataset:
    """A dataset of one or two dimensions that is packed while it is written.

    The filters are HDF5's own (shuffle, deflate, fletcher32: HDF5 User's Guide, section 5.6), so any HDF5 reader
    opens the dataset.  They are applied here, chunk by chunk and by several threads, with a deflate that is several
    times as fast as that of HDF5's zlib.

    columns  columns of a chunk; all of them by default.  Blocks of one column can then be written column by column
    """

    def __init__(
        self, group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any, *, columns: int | None = None
    ) -> None:
        self._columns = columns or (shape[1] if len(shape) > 1 else 1)
        row_bytes = max(1, np.dtype(dtype).itemsize * self._columns)
        self._rows = int(max(1, min(shape[0], CHUNK_BYTES // row_bytes)))
        chunk = (self._rows, self._columns)[: len(shape)]
        # HDF5 has no chunks in a dataset without rows.
        packing = {"chunks": chunk, **filters(dtype)} if 0 not in shape else {}
        self.dataset = group.create_dataset(name, shape, dtype, **packing)
        # Each question to h5py waits for the thread that writes.
        self._dimensions = len(shape)
        across = -(-shape[1] // self._columns) if len(shape) > 1 else 1
        # By column of chunks: the rows that were put, and the chunk that is not full yet.
        self._filled = np.zeros(across, dtype=np.int64)
        self._held: dict[int, NDArray[Any]] = {}
        self._packing: deque[tuple[tuple[int, int], Future[bytes]]] = deque()

    def put(self, values: NDArray[Any], row: int = 0, column: int = 0) -> None:
        """Write a block whose first value is at (`row`, `column`); blocks of a column come in the order of the rows.

        The block's columns are whole chunks.
        """
        if not len(values):
            return
        values = values.reshape(len(values), -1)
        for across in range(column // self._columns, -(-(column + values.shape[1]) // self._columns)):
            left = across * self._columns - column
            self._put(values[:, left : left + self._columns], row, across)

    def _put(self, values: NDArray[Any], row: int, across: int) -> None:
        if row != self._filled[across]:
            raise ValueError(f"{self.dataset.name}: rows from {row} on do not follow those written before")
        done = 0
        while done < len(values):
            down, within = divmod(row + done, self._rows)
            size = self._size(down)
            taken = min(size - within, len(values) - done)
            if across not in self._held:
                self._held[across] = np.zeros((self._rows, self._columns), self.dataset.dtype)
            self._held[across][within : within + taken, : values.shape[1]] = values[done : done + taken]
            done += taken
            self._filled[across] += taken
            if within + taken == size:
                self._packing.append(((down, across), _threads().submit(_pack, self._held.pop(across))))
                self._write(waiting=2 * _thread_count())

    def _size(self, down: int) -> int:
        """Rows of a chunk that the dataset has."""
        return min(self._rows, len(self.dataset) - down * self._rows)

    def _write(self, waiting: int = 0) -> None:
        """Write chunks in their order until at most `waiting` of them are left."""
        while len(self._packing) > waiting:
            key, packed = self._packing.popleft()
            self.dataset.id.write_direct_chunk(self._start(*key), packed.result())

    def _start(self, down: int, across: int) -> tuple[int, ...]:
        return (down * self._rows, across * self._columns)[: self._dimensions]

    def close(self) -> None:
        """Write what was not written yet; ValueError unless all rows were put."""
        self._write()
        if (self._filled < len(self.dataset)).any():
            raise ValueError(f"{self.dataset.name}: rows are missing")

    def missing(self) -> list[tuple[range, range]]:
        """(columns, rows) of what was not put, for each column of chunks, in order."""
        rows, width = len(self.dataset), self.dataset.shape[1] if self.dataset.ndim > 1 else 1
        starts = range(0, width, self._columns)
        return [
            (range(start, min(width, start + self._columns)), range(filled, rows))
            for start, filled in zip(starts, self._filled.tolist(), strict=True)
            if filled < rows
        ]

    def state(self) -> dict[str, NDArray[Any]]:
        """What `restore` needs: where each written chunk is in the file, and the rows of chunks that are not full."""
        self._write()
        chunks = []
        for across, filled in enumerate(self._filled.tolist()):
            for down in range(-(-filled // self._rows) - (across in self._held)):
                info = self.dataset.id.get_chunk_info_by_coord(self._start(down, across))
                chunks.append((down, across, info.byte_offset, info.size))
        state = {"chunks": np.array(chunks, dtype=np.int64).reshape(-1, 4)}
        for across, held in self._held.items():
            down, within = divmod(int(self._filled[across]), self._rows)
            state[f"held {down} {across}"] = held[:within]
        return state

    def restore(self, state: dict[str, NDArray[Any]], path: Path) -> None:
        """Take over what another dataset of the same shape had in the file `path`; ValueError if it is damaged."""
        with open(path, "rb") as stream:
            most = os.fstat(stream.fileno()).st_size
            for down, across, offset, size in state["chunks"].astype(np.int64, casting="safe").tolist():
                self._require_next(down, across)
                if not (0 <= offset <= most and 0 <= size <= most):
                    raise ValueError(f"chunk {down}, {across} of {self.dataset.name} is not in {path.name}")
                stream.seek(offset)
                packed = stream.read(size)
                if len(packed) != size or _fletcher32(packed[:-_SUM_BYTES]) != packed[-_SUM_BYTES:]:
                    raise ValueError(f"chunk {down}, {across} of {self.dataset.name} has a wrong checksum")
                self.dataset.id.write_direct_chunk(self._start(down, across), packed)
                self._filled[across] += self._size(down)
        for name, rows in state.items():
            if name != "chunks":
                down, across = map(int, name.removeprefix("held ").split())
                self._require_next(down, across)
                if rows.ndim != 2 or rows.dtype != self.dataset.dtype or len(rows) >= self._size(down):
                    raise ValueError(f"{name} is of type {rows.dtype}, shape {rows.shape}")
                self._put(rows, down * self._rows, across)

    def _require_next(self, down: int, across: int) -> None:
        """Raise ValueError unless a chunk follows those that were put."""
        follows = 0 <= across < len(self._filled) and down * self._rows == self._filled[across] < len(self.dataset)
        if not follows:
            raise ValueError(f"chunk {down}, {across} of {self.dataset.name} does not follow those before it")


def write_packed(group: h5py.Group, name: str, values: NDArray[Any]) -> None:
    """Write a dataset of one or two dimensions, packed and with checksums."""
    packed = PackedDataset(group, name, values.shape, values.dtype)
    packed.put(values)
    packed.close()


_SUM_BYTES = 4


@cache
def _thread_count() -> int:
    return int(os.environ.get("NUMBA_NUM_THREADS", "1"))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_thread_count(), "hpcvdj-pack")


def packed_chunks(chunks: Iterable[NDArray[Any]]) -> Iterator[bytes]:
    """Chunks as HDF5 stores them with `filters`, packed by several threads, in order."""
    return _threads().map(_pack, chunks)


def _pack(values: NDArray[Any]) -> bytes:
    """A chunk as HDF5 stores it."""
    data = values.view(np.uint8).reshape(-1, values.itemsize)
    if filters(values.dtype)["shuffle"]:
        # The first bytes of all values, then the second ones, and so on.
        data = np.ascontiguousarray(data.T)
    packed: bytes = deflate.compress(data, LEVEL)
    return packed + _fletcher32(packed)


def _fletcher32(data: bytes) -> bytes:
    """HDF5's checksum of a chunk: sums of its 16-bit big-endian words modulo 65535, with 65535 in the place of 0.

    An odd last byte is the upper half of a word (HDF5 User's Guide, section 5.6; H5_checksum_fletcher32).
    """
    words = np.frombuffer(data + b"\0" * (len(data) % 2), dtype=">u2").astype(np.uint64)
    sums = int(words.sum()), int((words * np.arange(len(words), 0, -1, dtype=np.uint64)).sum())
    first, second = (value and (value - 1) % 0xFFFF + 1 for value in sums)
    return (second << 16 | first).to_bytes(_SUM_BYTES, "little")
