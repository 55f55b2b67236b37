"""Columns of a result that are packed while they are written.

HDF5's own filters, shuffle and deflate (HDF5 User's Guide, section 5.6), so that whatever reads HDF5 reads the columns;
but applied here, chunk by chunk, with a deflate several times faster than that of HDF5's zlib.
"""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

try:
    from isal import isal_zlib as deflate
except ImportError:  # a processor that ISA-L does not support
    import zlib as deflate  # type: ignore[no-redef]

CHUNK_BYTES = 1 << 19
"""Bytes of a chunk, about: it is packed, and read, as a whole."""

_LEVEL = 1


class Column:
    """A dataset that takes its rows in their order, from the first on.

    shape, dtype  as of the dataset; dtype has a fixed width
    """

    def __init__(self, group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.dataset = group.create_dataset(name, shape, dtype)
        self.rows = 0

    def append(self, values: NDArray[Any]) -> None:
        """Take the next rows."""
        self.dataset[self.rows : self.rows + len(values)] = values
        self.rows += len(values)

    def close(self) -> None:
        """ValueError unless there were as many rows as the dataset has."""
        if self.rows != len(self.dataset):
            raise ValueError(f"{self.dataset.name}: {self.rows} rows of {len(self.dataset)}")


class PackedColumn(Column):
    """The same, packed; complete when it is closed."""

    def __init__(self, group: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        row_bytes = np.dtype(dtype).itemsize * int(np.prod(shape[1:]))
        rows = max(1, min(shape[0], CHUNK_BYTES // max(1, row_bytes)))
        filters = {"chunks": (rows, *shape[1:]), "shuffle": True, "compression": "gzip", "compression_opts": _LEVEL}
        # HDF5 has no chunks of a dataset without rows.
        self.dataset = group.create_dataset(name, shape, dtype, **(filters if shape[0] else {}))
        self.rows = 0
        self._held = np.zeros((rows, *shape[1:]), self.dataset.dtype)

    def append(self, values: NDArray[Any]) -> None:
        """Take the next rows."""
        done = 0
        while done < len(values):
            place = self.rows % len(self._held)
            taken = min(len(self._held) - place, len(values) - done)
            self._held[place : place + taken] = values[done : done + taken]
            self.rows += taken
            done += taken
            if place + taken == len(self._held):
                self._write()

    def close(self) -> None:
        """Write the rows that no full chunk was made of; ValueError unless there were as many as the dataset has."""
        super().close()
        place = self.rows % len(self._held)
        if place:
            self._held[place:] = np.zeros(1, self._held.dtype)
            self._write()

    def _write(self) -> None:
        # Shuffle: the first bytes of all values, then the second ones, and so on.
        planes = np.ascontiguousarray(self._held.view(np.uint8).reshape(-1, self._held.itemsize).T)
        first = (self.rows - 1) // len(self._held) * len(self._held)
        start = (first, *[0] * (self._held.ndim - 1))
        self.dataset.id.write_direct_chunk(start, deflate.compress(planes, _LEVEL))
