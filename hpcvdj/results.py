"""The result file: HDF5, format `hpcvdj-counts` version 1, described dataset by dataset in docs/file_format.md.

It is written under a temporary name beside the target and moved there when it is complete, so that a reader
never sees half a file under the final name.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError
from hpcvdj.methods.base import Unit
from hpcvdj.repertoire import Excluded, Repertoire

FORMAT = "hpcvdj-counts"
VERSION = 1

TEXT_ROWS = 1 << 19
"""Text datasets are written in pieces of this many rows."""

_SLACK_BYTES = 1 << 20


@dataclass(frozen=True)
class Timings:
    """Seconds of each unit, the maximum over ranks, and of each rank in all.

    units   list of Unit; kernel, reduce, wall  float64 [units]
    rank_kernel, rank_reduce  float64 [ranks]
    """

    units: list[Unit]
    kernel: NDArray[np.float64]
    reduce: NDArray[np.float64]
    wall: NDArray[np.float64]
    rank_kernel: NDArray[np.float64]
    rank_reduce: NDArray[np.float64]


@contextmanager
def atomic_path(target: Path, *, overwrite: bool, temporary: Path | None = None) -> Iterator[Path]:
    """A temporary path beside `target` that becomes `target` when the block ends well, and vanishes if not.

    `temporary` may name it; it must be on the same file system.

    InputError before anything is done if the target exists (and `overwrite` is false) or cannot be written;
    MachineError if the disk fills up.
    """
    require_writable(target, overwrite=overwrite)
    temporary = temporary or target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise _write_fault(target, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def require_writable(target: Path, *, overwrite: bool) -> None:
    """InputError with the remedy unless a file may be made at `target`."""
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file")
    if target.exists() and not overwrite:
        raise InputError(f"{target}: exists already; give another name, or --overwrite to replace it")
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; make it first, or write elsewhere")
    probe = target.with_name(f".{target.name}.{os.getpid()}.probe")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror}); write elsewhere") from None


def _write_fault(target: Path, error: OSError) -> MachineError:
    if error.errno == errno.ENOSPC or "No space left" in str(error):
        return MachineError(f"{target}: the disk is full; nothing was left there: free space or write elsewhere")
    return MachineError(f"{target}: writing failed ({error}); nothing was left there")


class _ResultFile(io.FileIO):
    """The file under HDF5, which crashes at exit if it cannot write out what it holds.

    The first write that fails is kept in `fault` and the later ones are swallowed, so that HDF5 closes in peace
    and the writer can raise.
    """

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of `data`, or note why not."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and self.fault is None:
            try:
                done += super().write(view[done:]) or 0
            except OSError as error:
                self.fault = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the size, or note why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.fault = self.fault or error
            return size or 0

    def check(self) -> None:
        """Raise the first fault."""
        if self.fault is not None:
            raise self.fault


class ResultWriter:
    """Root's end of a result: takes units' counters as they are done.  Use as a context manager."""

    def __init__(
        self,
        target: Path,
        repertoire: Repertoire,
        max_n: int,
        *,
        overwrite: bool = False,
        temporary: Path | None = None,
    ) -> None:
        self.target, self.repertoire, self.max_n = target, repertoire, max_n
        self._atomic = atomic_path(target, overwrite=overwrite, temporary=temporary)
        self._require_space()

    def __enter__(self) -> ResultWriter:
        self._path = self._atomic.__enter__()
        try:
            self._raw = _ResultFile(self._path, "w+b")
            self._file = h5py.File(self._raw, "w")
            shape = (len(self.repertoire), self.max_n + 1)
            self.counters = self._file.create_dataset("counters", shape, dtype=np.uint64)
            self._columns: NDArray[np.uint64] | None = None
            self._write_sequences()
            self._raw.check()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def put(self, unit: Unit, counters: NDArray[np.uint64]) -> None:
        """Store the counters of a finished unit, uint64 [its rows, its n-lengths]."""
        if not len(unit.rows):
            return
        rows, n_lengths = unit.rows, unit.n_lengths
        if len(n_lengths) <= self.max_n and self._columns is None:
            # A column lies 8 bytes in every row of the file: enumerated counters wait in memory for the others.
            self._columns = np.zeros(self.counters.shape, dtype=np.uint64)
        target = self.counters if self._columns is None else self._columns
        target[rows.start : rows.stop, n_lengths.start : n_lengths.stop] = counters
        self._raw.check()

    def get(self, unit: Unit) -> NDArray[np.uint64]:
        """The counters of a unit that was put."""
        rows, n_lengths = unit.rows, unit.n_lengths
        source = self.counters if self._columns is None else self._columns
        return np.asarray(source[rows.start : rows.stop, n_lengths.start : n_lengths.stop])

    def finish(self, attributes: dict[str, Any], ranks: list[dict[str, str]], timings: Timings) -> None:
        """Write what is known only at the end: provenance and times."""
        if self._columns is not None:
            self.counters[...] = self._columns
        for name, value in {"format": FORMAT, "format_version": VERSION, **attributes}.items():
            self._file.attrs[name] = json.dumps(value) if isinstance(value, dict | list) else value
        group = self._file.create_group("ranks")
        for key in ranks[0]:
            group.create_dataset(key, data=[facts[key] for facts in ranks], dtype=h5py.string_dtype())
        self._write_timings(timings)
        self._file.flush()
        self._raw.check()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if hasattr(self, "_file"):
                self._file.close()
                self._raw.close()
                if kind is None:
                    self._raw.check()
        except OSError as error:
            kind, value, trace = type(error), error, error.__traceback__
            self._atomic.__exit__(kind, value, trace)
            raise
        self._atomic.__exit__(kind, value, trace)

    def _require_space(self) -> None:
        folder = self.target.parent
        if not folder.is_dir():
            return
        needed = self.bytes_needed()
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise MachineError(
                f"{self.target}: the result takes {needed / 1e6:,.1f} MB and the disk has {free / 1e6:,.1f} MB free; "
                "free space, write elsewhere, or count fewer n-lengths"
            )

    def bytes_needed(self) -> int:
        """Bytes that the result file will take, about."""
        rows = len(self.repertoire)
        per_row = 8 * (self.max_n + 1) + 8 + self._id_width() + max(1, self.repertoire.longest) + 4
        return rows * per_row + _SLACK_BYTES

    def _id_width(self) -> int:
        offsets = _large_string_offsets(self.repertoire.sequence_id)
        return int(np.diff(offsets).max()) if len(offsets) > 1 else 1

    def _write_sequences(self) -> None:
        repertoire = self.repertoire
        group = self._file.create_group("sequences")
        group.create_dataset("row", data=repertoire.row)
        rows = len(repertoire)
        texts = {
            "sequence_id": self._text(group, "sequence_id", rows, max(1, self._id_width())),
            "cdr3": self._text(group, "cdr3", rows, max(1, repertoire.longest)),
        }
        for first in range(0, rows, TEXT_ROWS):
            piece = slice(first, min(rows, first + TEXT_ROWS))
            ids = repertoire.id_bytes(piece, texts["sequence_id"].dtype.itemsize)
            # The view carries HDF5's UTF-8 tag, without which the bytes would not be taken as text.
            texts["sequence_id"][piece] = ids.view(texts["sequence_id"].dtype)
            texts["cdr3"][piece] = repertoire.cdr3_bytes(piece).view(texts["cdr3"].dtype)
        pairs = self._file.create_group("pairs")
        sizes = np.diff(repertoire.offsets)
        for k, name in enumerate(("v_call", "j_call")):
            alleles = np.array([pair[k].allele.encode() for pair in repertoire.pairs], dtype=np.bytes_)
            self._fixed(pairs, name, alleles)
            # Rows of a pair stand together, so the column is runs of one text: it packs to nothing.
            self._fixed(group, name, np.repeat(alleles, sizes), compression="gzip", compression_opts=1)
        pairs.create_dataset("offset", data=repertoire.offsets)
        self._write_excluded(repertoire.excluded)

    def _write_excluded(self, excluded: Excluded) -> None:
        group = self._file.create_group("excluded")
        group.create_dataset("row", data=excluded.row)
        for name, texts in (("sequence_id", excluded.sequence_id), ("reason", excluded.reason)):
            self._fixed(group, name, np.array([text.encode() for text in texts], dtype=np.bytes_))

    @staticmethod
    def _text(group: h5py.Group, name: str, rows: int, width: int) -> h5py.Dataset:
        return group.create_dataset(name, (rows,), dtype=h5py.string_dtype("utf-8", width))

    def _fixed(self, group: h5py.Group, name: str, values: NDArray[np.bytes_], **options: Any) -> None:
        text = h5py.string_dtype("utf-8", max(1, values.dtype.itemsize))
        group.create_dataset(name, data=values.astype(text), dtype=text, **(options if len(values) else {}))

    def _write_timings(self, timings: Timings) -> None:
        group = self._file.create_group("timings")
        units = timings.units
        columns = {
            "pair_first": [u.pairs.start for u in units],
            "pair_stop": [u.pairs.stop for u in units],
            "n_first": [u.n_lengths.start for u in units],
            "n_stop": [u.n_lengths.stop for u in units],
            "sequences": [len(u.rows) for u in units],
            "tasks": [u.tasks for u in units],
        }
        for name, values in columns.items():
            group.create_dataset(name, data=np.array(values, dtype=np.int64))
        for name in ("kernel", "reduce", "wall", "rank_kernel", "rank_reduce"):
            group.create_dataset(f"{name}_seconds", data=getattr(timings, name))


def _large_string_offsets(ids: Any) -> NDArray[np.int64]:
    from hpcvdj.columns import text_buffers

    return text_buffers(ids)[0] if ids is not None and len(ids) else np.zeros(1, dtype=np.int64)


class Result:
    """A result file, open for reading.  Use as a context manager, or `close` it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"{self.path}: no such result file; `hpcvdj count` writes one")
        try:
            self._file = h5py.File(self.path, "r")
        except OSError as error:
            raise InputError(f"{self.path}: not a readable HDF5 file ({error}); count again") from None
        self._require_version()

    def _require_version(self) -> None:
        found = self._file.attrs.get("format")
        version = int(self._file.attrs.get("format_version", 0))
        if found != FORMAT:
            self._file.close()
            raise InputError(f"{self.path}: not an hpcvdj result (its format is {found!r}, not {FORMAT!r})")
        if version > VERSION:
            self._file.close()
            raise InputError(
                f"{self.path}: format {FORMAT} version {version} is newer than this hpcvdj reads ({VERSION}); "
                "update hpcvdj"
            )

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; datasets read so far stay usable, `counters` does not."""
        self._file.close()

    def __len__(self) -> int:
        return int(self._file["counters"].shape[0])

    @property
    def max_n(self) -> int:
        """The largest n-length counted."""
        return int(self._file["counters"].shape[1]) - 1

    @property
    def counters(self) -> h5py.Dataset:
        """uint64 [sequences, n-lengths]: rows grouped by V–J pair, column m is n-length m."""
        return self._file["counters"]

    def dataset(self, name: str) -> Any:
        """A dataset or group of the file by its path in docs/file_format.md, such as `sequences/cdr3`."""
        return self._file[name]

    @property
    def row(self) -> NDArray[np.int64]:
        """The 0-based data row of each sequence in the input, int64 [sequences]."""
        return np.asarray(self._file["sequences/row"][:])

    @property
    def provenance(self) -> dict[str, Any]:
        """The file's attributes: format, versions, command line, configuration, inputs, machine."""
        return {name: value.item() if hasattr(value, "item") else value for name, value in self._file.attrs.items()}

    @property
    def excluded(self) -> Excluded:
        """The rows that were not counted, and why."""
        group = self._file["excluded"]
        return Excluded(np.asarray(group["row"][:]), _strings(group["sequence_id"]), _strings(group["reason"]))

    @property
    def pairs(self) -> list[tuple[str, str, slice]]:
        """(V allele, J allele, its rows) of each V–J pair."""
        group = self._file["pairs"]
        offset = group["offset"][:].tolist()
        alleles = zip(_strings(group["v_call"]), _strings(group["j_call"]), strict=True)
        return [(v, j, slice(offset[k], offset[k + 1])) for k, (v, j) in enumerate(alleles)]

    def to_table(self) -> pa.Table:
        """All sequences as a pyarrow table, by V–J pair: row, ids, calls, cdr3, pathways_n0 …, pathways_total."""
        group = self._file["sequences"]
        columns: dict[str, Any] = {"row": self.row}
        for name in ("sequence_id", "v_call", "j_call", "cdr3"):
            columns[name] = pa.array(_strings(group[name]), pa.string())
        return pa.table({**columns, **counter_columns(self.counters[:])})


def counter_columns(counters: NDArray[np.uint64], counted: NDArray[np.bool_] | None = None) -> dict[str, pa.Array]:
    """Counters as the columns pathways_n0 … pathways_total; null where `counted` is false."""
    mask = None if counted is None else ~counted
    named = {f"pathways_n{m}": counters[:, m] for m in range(counters.shape[1])}
    named["pathways_total"] = counters.sum(axis=1, dtype=np.uint64)
    return {name: pa.array(np.ascontiguousarray(values), mask=mask) for name, values in named.items()}


def _strings(dataset: h5py.Dataset) -> list[str]:
    return [value.decode() for value in dataset[:].tolist()]
