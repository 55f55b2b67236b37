"""HDF5 files that appear only when they are complete."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from hpcvdj.storage.files import atomic_path


class _SafeFile(io.FileIO):
    """The file below HDF5, which crashes at exit if it cannot write what it holds.

    `fault` keeps the error of the first write that fails.  That write and all later ones go to memory, so that HDF5
    can read what it wrote and close normally.  Then the caller raises the fault.
    """

    fault: OSError | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path, "r+b")
        self._unwritten: list[tuple[int, bytes]] = []

    def write(self, data: Any) -> int:
        """Write all of `data`, or keep the fault."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and self.fault is None:
            try:
                done += super().write(view[done:]) or 0
            except OSError as error:
                self.fault = error
        if done < len(view):
            self._unwritten.append((self.tell(), bytes(view[done:])))
            self.seek(len(view) - done, os.SEEK_CUR)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        """Read written data, from the disk or from memory."""
        if not self._unwritten:
            return super().readinto(buffer) or 0
        view = memoryview(buffer).cast("B")
        first = self.tell()
        size = super().readinto(view) or 0
        view[size:] = bytes(len(view) - size)
        for position, data in self._unwritten:
            low, high = max(position, first), min(position + len(data), first + len(view))
            if low < high:
                view[low - first : high - first] = data[low - position : high - position]
        self.seek(first + len(view))
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or keep the fault."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.fault = self.fault or error
            return size or 0


class Hdf5Writer:
    """A new HDF5 file, open for writing; `file` is the file of h5py."""

    def __init__(self, file: h5py.File, raw: _SafeFile) -> None:
        self.file, self._raw = file, raw

    def check(self) -> None:
        """Raise the first fault of writing."""
        if self._raw.fault is not None:
            raise self._raw.fault


@contextmanager
def atomic_hdf5(target: Path, *, overwrite: bool) -> Iterator[Hdf5Writer]:
    """Yield a writer of a new HDF5 file, which becomes `target` if the block succeeds.

    Arguments and errors are those of `atomic_path`.
    """
    with atomic_path(target, overwrite=overwrite) as path:
        # As of HDF5 1.10, attributes may have more than 64 KiB, and the descriptions of datasets have checksums.
        with _SafeFile(path) as raw, h5py.File(raw, "w", libver=("v110", "latest")) as file:
            yield Hdf5Writer(file, raw)
        if raw.fault is not None:
            raise raw.fault


def write_attributes(file: h5py.File, attributes: dict[str, Any]) -> None:
    """Write attributes of the root group, lists and dicts as JSON.  Text has a fixed width: `opening` says why."""
    for name, value in attributes.items():
        text = json.dumps(value) if isinstance(value, dict | list) else value
        if isinstance(text, str):
            encoded = text.encode(errors="surrogateescape")
            # HDF5 has no text of width 0.
            file.attrs.create(name, encoded, dtype=h5py.string_dtype("utf-8", max(1, len(encoded))))
        else:
            file.attrs[name] = text
