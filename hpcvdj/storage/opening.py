"""Result files, checked when they are opened: they must contain only what hpcvdj writes."""

import math
import mmap
import struct
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import h5py

from hpcvdj.errors import InputError
from hpcvdj.storage.damage import damage, damaged


def root_attributes(path: Path) -> dict[str, Any]:
    """Return the attributes of a file that may not be a result.  Raise one of `MISREAD` if they cannot be read."""
    with _File(path, "r") as file:
        return dict(file.attrs)


def open_hdf5(path: Path, command: str, form: str, version: int) -> h5py.File:
    """Open a result file that `command` wrote.

    Raises InputError if the file does not exist, is not HDF5, is not of the format `form` in `version` or an earlier
    version, or contains what hpcvdj does not write, such as links to other files (`_require_sound`).  A dataset that
    later cannot be read raises an InputError that names it.
    """
    if path.is_dir():
        results = sorted(path.glob("*.h5"))
        inside = f"; it has {len(results):,} results, such as {results[0]}" if results else ""
        raise InputError(f"{path}: is a folder; name a result file{inside}")
    unfinished = (path.with_name(f"{path.name}.{kind}") for kind in ("parts", "checkpoint"))
    if not path.exists() and any(folder.is_dir() for folder in unfinished):
        raise InputError(f"{path}: is not complete; `{command}` with --resume continues it")
    if not path.is_file():
        raise InputError(f"{path}: no such result file; `{command}` writes one")
    try:
        file = _File(path, "r")
        file.path = path
    except OSError as error:
        raise InputError(
            f"{path}: not a result file, or a damaged one ({error}); give a file that `{command} -o NAME.h5` wrote"
        ) from None
    try:
        with damage(path):
            file_form, file_version = file.attrs.get("format"), file.attrs.get("format_version", 0)
            if not isinstance(file_form, str) or file_form != form:
                raise InputError(
                    f"{path}: its format is {file_form!r}, not {form!r}; give a file that `{command}` wrote"
                )
            if int(file_version) > version:
                raise InputError(
                    f"{path}: format {form} version {file_version} is newer than this hpcvdj reads ({version}); update "
                    "hpcvdj"
                )
            if "parts" in file.attrs:
                _require_heaps(path)
            _require_sound(path, file)
    except BaseException:
        file.close()
        raise
    return file


class OpenFile:
    """A result file, open for reading.  Use it as a context manager, or `close` it."""

    # As of `open_hdf5`.
    _command: ClassVar[str]
    _form: ClassVar[str]
    _version: ClassVar[int]

    def __init__(self, path: str | Path) -> None:
        if not isinstance(path, str | Path):
            raise InputError(f"a result is opened by its path, not by {path!r}")
        self.path = Path(path)
        self._file = open_hdf5(self.path, self._command, self._form, self._version)
        try:
            with damage(self.path):
                self._begin()
        except BaseException:
            self._file.close()
            raise

    def _begin(self) -> None:
        """Read what is needed at once.  Raise InputError unless the file has its layout."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file.  Arrays read so far stay usable, datasets do not."""
        self._file.close()


class _Reading:
    """A group whose datasets raise InputError if they cannot be read."""

    def __getitem__(self, name: Any) -> Any:
        item = super().__getitem__(name)  # type: ignore[misc]
        if isinstance(item, h5py.Dataset):
            return _Dataset(item.id)
        return _Group(item.id) if isinstance(item, h5py.Group) else item


class _File(_Reading, h5py.File):  # type: ignore[misc]
    """A result file that is open for reading, by its `path`."""

    path: Path

    def __getitem__(self, name: Any) -> Any:
        if not self:
            raise InputError(f"{self.path}: is closed; open it again, or read what you need before you close it")
        return super().__getitem__(name)

    @cached_property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the root group.  Raises ValueError for values of variable length.

        HDF5 stores these in global heaps, and HDF5 2.0 hangs when it reads a heap that was overwritten with zeros.  So
        hpcvdj writes texts of fixed width, and reads no others.
        """
        stored, values = h5py.AttributeManager(self), {}
        for name in stored:
            if stored.get_id(name).dtype.kind == "O":
                by = ", as in files of hpcvdj 0.1, which are not read" if name == "format" else ""
                raise ValueError(f"its attribute {name} is of variable length{by}")
            value = stored[name]
            values[name] = value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
        return values


class _Group(_Reading, h5py.Group):  # type: ignore[misc]
    """A group of a result file."""


class _Dataset(h5py.Dataset):  # type: ignore[misc]
    """A dataset of a result file."""

    def __getitem__(self, *arguments: Any, **options: Any) -> Any:
        if not self:
            raise InputError("the result of this dataset is closed; open it again, or read values before you close it")
        try:
            return super().__getitem__(*arguments, **options)
        except OSError as error:
            raise damaged(Path(self.file.filename), f"{self.name} cannot be read ({error})") from None


MOST_CHUNK_BYTES = 1 << 28
"""The most bytes of a chunk, which HDF5 unpacks as a whole; `packed` writes chunks of `CHUNK_BYTES`, or of one row."""

_HEAP = b"GCOL\x01\0\0\0"
_HEAP_HEADER = struct.Struct("<8xQ")
_HEAP_OBJECT = struct.Struct("<H6xQ")


def _require_heaps(path: Path) -> None:
    """Raise InputError unless the objects of each global heap follow each other up to the heap's end.

    Views list their parts in global heaps.  These have no checksum (HDF5 File Format Specification, section III.E).
    """
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        heap = data.find(_HEAP)
        while heap >= 0:
            size = _HEAP_HEADER.unpack_from(data, heap)[0] if heap + _HEAP_HEADER.size <= len(data) else 0
            position, end = heap + _HEAP_HEADER.size, heap + size
            while position + _HEAP_OBJECT.size <= end <= len(data):
                index, size = _HEAP_OBJECT.unpack_from(data, position)
                # The size of the free space, object 0, includes its header.
                step = _HEAP_OBJECT.size + -(-size // 8) * 8 if index else size
                if step < _HEAP_OBJECT.size:
                    break
                position += step
            if not end - _HEAP_OBJECT.size < position <= end <= len(data):
                raise damaged(path, f"the list of its parts at byte {heap}")
            heap = data.find(_HEAP, heap + 1)


def _require_sound(path: Path, group: h5py.Group) -> None:
    """Raise InputError unless a group contains only what hpcvdj writes.

    A result contains its own values and views of its parts, but no links and no storage in other files.  Every
    dataset must have all the values that its shape declares, so that a small file cannot claim to be a large one.
    """
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise InputError(
                f"{path}: {group.name.rstrip('/')}/{name} is a link, which no result has; do not trust this file"
            )
        item = group[name]
        if isinstance(item, h5py.Group):
            _require_sound(path, item)
        elif isinstance(item, h5py.Dataset):
            _require_stored(path, item)
        else:
            raise damaged(path, f"{item.name} is neither a group nor a dataset")


def _require_stored(path: Path, dataset: h5py.Dataset) -> None:
    if dataset.external:
        raise InputError(f"{path}: {dataset.name} is stored in another file; do not trust this file")
    if dataset.dtype.kind not in "iufS":
        raise damaged(path, f"{dataset.name} has values of type {dataset.dtype}")
    if dataset.is_virtual:
        for source in dataset.virtual_sources():
            # HDF5 takes a single % for the beginning of a format.
            name = source.file_name.replace("%%", "")
            part = Path(source.file_name.replace("%%", "%"))
            if "%" in name or len(part.parts) != 2 or not part.parts[0].endswith(".parts"):
                raise InputError(f"{path}: {dataset.name} shows {part}, which is not a part; do not trust this file")
        return
    if dataset.chunks is None:
        stored = dataset.id.get_storage_size() == dataset.nbytes
    else:
        sizes = zip(dataset.shape, dataset.chunks, strict=True)
        chunks = math.prod(-(-size // chunk) for size, chunk in sizes)
        # Motif counters lack the chunks without a pair.
        stored = dataset.id.get_num_chunks() == chunks or (dataset.ndim == 4 and dataset.id.get_num_chunks() < chunks)
        stored &= math.prod(dataset.chunks) * dataset.dtype.itemsize <= MOST_CHUNK_BYTES
    if not stored:
        raise damaged(path, f"{dataset.name} does not have the values that its shape {dataset.shape} declares")
