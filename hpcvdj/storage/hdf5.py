"""HDF5 files that appear whole or not at all, and datasets that are packed while they are written."""

import io
import json
import math
import mmap
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.storage.files import atomic_path

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


class _SafeFile(io.FileIO):
    """The file below HDF5, which crashes at exit if it cannot write what it holds.

    The first write that fails is kept in `fault`.  That write and all later ones go to memory, so that HDF5 can read
    what it wrote and close normally; then the caller raises the fault.
    """

    fault: OSError | None = None

    def __init__(self, path: Path) -> None:
        super().__init__(path, "r+b")
        self._unwritten: list[tuple[int, bytes]] = []

    def write(self, data: Any) -> int:
        """Write all of `data`, or note the fault."""
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
        """Read what was written, on disk or not."""
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
        """Set the size, or note the fault."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.fault = self.fault or error
            return size or 0


class Hdf5Writer:
    """A new HDF5 file, open for writing: `file` is h5py's."""

    def __init__(self, file: h5py.File, raw: _SafeFile) -> None:
        self.file, self._raw = file, raw

    def check(self) -> None:
        """Raise the first fault of writing."""
        if self._raw.fault is not None:
            raise self._raw.fault

    def sync(self) -> None:
        """Have everything written so far on disk."""
        self.file.flush()
        os.fsync(self._raw.fileno())
        self.check()


@contextmanager
def atomic_hdf5(
    target: Path, *, overwrite: bool, temporary: Path | None = None, keep: bool = False
) -> Iterator[Hdf5Writer]:
    """Yield a writer of a new HDF5 file that becomes `target` if the block succeeds; arguments as of `atomic_path`.

    InputError and MachineError as `atomic_path` raises them.
    """
    with atomic_path(target, overwrite=overwrite, temporary=temporary, keep=keep) as path:
        # As of HDF5 1.10, attributes may have more than 64 KiB, and all that describes datasets has checksums.
        with _SafeFile(path) as raw, h5py.File(raw, "w", libver=("v110", "latest")) as file:
            yield Hdf5Writer(file, raw)
        if raw.fault is not None:
            raise raw.fault


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
        """Write chunks in their order until at most so many are `waiting` to be packed."""
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


def write_attributes(file: h5py.File, attributes: dict[str, Any]) -> None:
    """Write attributes of the root group; lists and dicts as JSON text.  Text is of fixed width: see `_File.attrs`."""
    for name, value in attributes.items():
        text = json.dumps(value) if isinstance(value, dict | list) else value
        if isinstance(text, str):
            encoded = text.encode(errors="surrogateescape")
            # HDF5 has no text of width 0.
            file.attrs.create(name, encoded, dtype=h5py.string_dtype("utf-8", max(1, len(encoded))))
        else:
            file.attrs[name] = text


def root_attributes(path: Path) -> dict[str, Any]:
    """The attributes of a file that may be no result; raises one of `MISREAD`."""
    with _File(path, "r") as file:
        return dict(file.attrs)


def open_hdf5(path: Path, command: str, form: str, version: int) -> h5py.File:
    """Open a result file that `command` wrote.

    InputError if it does not exist, is not HDF5, or is not of the format `form` in `version` or an earlier one; if it
    has what no result has, such as links to other files (`_require_sound`).  What cannot be read later is an InputError
    too, which names the dataset.
    """
    if path.is_dir():
        results = sorted(path.glob("*.h5"))
        inside = f"; it has {len(results):,} results, such as {results[0]}" if results else ""
        raise InputError(f"{path}: is a folder; name a result file{inside}")
    if not path.exists() and path.with_name(path.name + ".checkpoint").is_dir():
        raise InputError(f"{path}: is not complete; `{command}` with --resume continues it")
    if not path.is_file():
        raise InputError(f"{path}: no such result file; `{command}` writes one")
    try:
        file = _File(path, "r")
    except OSError as error:
        raise InputError(
            f"{path}: not a result file, or a damaged one ({error}); give a file that `{command}` wrote"
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
            _require_sound(path, file, file.older)
    except BaseException:
        file.close()
        raise
    return file


MISREAD = OSError, LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError
"""What a damaged file makes h5py, NumPy and JSON raise."""


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """Within the block, what a damaged file makes h5py, NumPy and JSON raise is an InputError that names the file."""
    try:
        yield
    except InputError as error:
        raise (error if str(path) in str(error) else damaged(path, str(error))) from None
    except MISREAD as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise damaged(path, said) from None


def damaged(path: Path, what: str) -> InputError:
    """The error to raise for a result that is damaged: what is wrong."""
    return InputError(f"{path}: is damaged: {what}; copy it again, or make it again")


class _Reading:
    """A group whose datasets raise InputError if they cannot be read."""

    def __getitem__(self, name: Any) -> Any:
        found = super().__getitem__(name)  # type: ignore[misc]
        if isinstance(found, h5py.Dataset):
            return _Dataset(found.id)
        return _Group(found.id) if isinstance(found, h5py.Group) else found


class _File(_Reading, h5py.File):  # type: ignore[misc]
    """A result file that is open for reading."""

    @cached_property
    def older(self) -> bool:
        """Whether texts may be of variable length, as `format` itself is; hpcvdj writes texts of fixed width now.

        HDF5 stores variable length in global heaps.  HDF5 2.0 never returns from reading a heap that was overwritten
        with zeros, so values of variable length are read in older files only.
        """
        stored = h5py.AttributeManager(self)
        return "format" in stored and stored.get_id("format").dtype.kind == "O"

    @cached_property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the root group; ValueError if one is of variable length, unless the file is older."""
        stored, values = h5py.AttributeManager(self), {}
        for name in stored:
            if stored.get_id(name).dtype.kind == "O" and not self.older:
                raise ValueError(f"its attribute {name} is of variable length")
            value = stored[name]
            values[name] = value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
        return values


class _Group(_Reading, h5py.Group):  # type: ignore[misc]
    """A group of it."""


class _Dataset(h5py.Dataset):  # type: ignore[misc]
    """A dataset of it."""

    def __getitem__(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().__getitem__(*arguments, **options)
        except OSError as error:
            raise damaged(Path(self.file.filename), f"{self.name} cannot be read ({error})") from None


MOST_CHUNK_BYTES = 1 << 28
"""A chunk is unpacked as a whole; hpcvdj writes chunks of `CHUNK_BYTES`, or of one row."""


MOST_TEXTS = 1 << 20
"""Version 1 stored the facts of ranks as text of variable length."""


_HEAP = b"GCOL\x01\0\0\0"
_HEAP_HEADER = struct.Struct("<8xQ")
_HEAP_OBJECT = struct.Struct("<H6xQ")


def _require_heaps(path: Path) -> None:
    """Raise InputError unless the objects of each global heap follow each other up to the heap's end.

    Views list their parts in global heaps, which have no checksum (HDF5 File Format Specification, section III.E).
    """
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        heap = data.find(_HEAP)
        while heap >= 0:
            size = _HEAP_HEADER.unpack_from(data, heap)[0] if heap + _HEAP_HEADER.size <= len(data) else 0
            place, end = heap + _HEAP_HEADER.size, heap + size
            while place + _HEAP_OBJECT.size <= end <= len(data):
                index, size = _HEAP_OBJECT.unpack_from(data, place)
                # The free space, object 0, counts its own header.
                step = _HEAP_OBJECT.size + -(-size // 8) * 8 if index else size
                if step < _HEAP_OBJECT.size:
                    break
                place += step
            if not end - _HEAP_OBJECT.size < place <= end <= len(data):
                raise damaged(path, f"the list of its parts at byte {heap}")
            heap = data.find(_HEAP, heap + 1)


def _require_sound(path: Path, group: h5py.Group, older: bool) -> None:
    """Raise InputError unless a group has only what hpcvdj writes, or wrote if the file is `older`.

    A result shows its own content and that of its parts: no links, no storage in other files.  What a dataset has is in
    the file as its shape says, so that a small file cannot declare more than it has.
    """
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise InputError(
                f"{path}: {group.name.rstrip('/')}/{name} is a link, which no result has; do not trust this file"
            )
        item = group[name]
        if isinstance(item, h5py.Group):
            _require_sound(path, item, older)
        elif isinstance(item, h5py.Dataset):
            _require_stored(path, item, older)
        else:
            raise damaged(path, f"{item.name} is neither a group nor a dataset")


def _require_stored(path: Path, dataset: h5py.Dataset, older: bool) -> None:
    if dataset.external:
        raise InputError(f"{path}: {dataset.name} is stored in another file; do not trust this file")
    if older and h5py.check_string_dtype(dataset.dtype) and dataset.dtype.kind == "O" and dataset.size <= MOST_TEXTS:
        return
    if dataset.dtype.kind not in "iufS":
        raise damaged(path, f"{dataset.name} has values of type {dataset.dtype}")
    if dataset.is_virtual:
        for source in dataset.virtual_sources():
            # HDF5 takes a single % for the beginning of a format.
            name = source.file_name.replace("%%", "")
            place = Path(source.file_name.replace("%%", "%"))
            if "%" in name or len(place.parts) != 2 or not place.parts[0].endswith(".parts"):
                raise InputError(f"{path}: {dataset.name} shows {place}, which is not a part; do not trust this file")
        return
    if dataset.chunks is None:
        stored = dataset.id.get_storage_size() == dataset.nbytes
    else:
        sizes = zip(dataset.shape, dataset.chunks, strict=True)
        chunks = math.prod(-(-size // chunk) for size, chunk in sizes)
        # Motif counters have only the chunks with a pair.
        stored = dataset.id.get_num_chunks() == chunks or (dataset.ndim == 4 and dataset.id.get_num_chunks() < chunks)
        stored &= math.prod(dataset.chunks) * dataset.dtype.itemsize <= MOST_CHUNK_BYTES
    if not stored:
        raise damaged(path, f"{dataset.name} does not have the values that its shape {dataset.shape} declares")
