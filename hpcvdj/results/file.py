"""The result file: HDF5, format `hpcvdj-counts` version 1, described dataset by dataset in docs/file_format.md.

It is written under a temporary name beside the target and moved there when it is complete, so that a reader
never sees half a file under the final name.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import h5py
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, MachineError
from hpcvdj.methods.base import Unit
from hpcvdj.repertoires.many import REPERTOIRE, Table
from hpcvdj.repertoires.repertoire import Excluded, Repertoire
from hpcvdj.results.packing import Column, PackedColumn
from hpcvdj.results.selection import Selection
from hpcvdj.results.views import HeldParts, parts_of
from hpcvdj.storage import AtomicHdf5, open_result, write_provenance

FORMAT = "hpcvdj-counts"
VERSION = 1

TEXT_ROWS = 1 << 19
"""Datasets of sequences are written in pieces of this many rows."""

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


class ResultWriter:
    """Root's end of a result: takes units' counters as they are done.  Use as a context manager.

    packed  columns are packed; units must then come in the order of their rows, each with all n-lengths
    """

    def __init__(
        self,
        target: Path,
        repertoire: Repertoire,
        max_n: int,
        *,
        overwrite: bool = False,
        packed: bool = False,
        temporary: Path | None = None,
    ) -> None:
        self.target, self.repertoire, self.max_n = target, repertoire, max_n
        self._column = PackedColumn if packed else Column
        self._atomic = AtomicHdf5(target, overwrite=overwrite, temporary=temporary)
        # What packed columns take is not known before.
        if not packed:
            self._require_space()

    def __enter__(self) -> ResultWriter:
        self._file = self._atomic.__enter__()
        try:
            shape = (len(self.repertoire), self.max_n + 1)
            self._counters = self._column(self._file, "counters", shape, np.uint64)
            self.counters = self._counters.dataset
            self._columns: NDArray[np.uint64] | None = None
            self._write_sequences()
            self._atomic.check()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def put(self, unit: Unit, counters: NDArray[np.uint64]) -> None:
        """Store the counters of a finished unit, uint64 [its rows, its n-lengths]."""
        if not len(unit.rows):
            return
        rows, n_lengths = unit.rows, unit.n_lengths
        if isinstance(self._counters, PackedColumn):
            if rows.start != self._counters.rows or len(n_lengths) <= self.max_n:
                raise ValueError(f"{unit} does not follow row {self._counters.rows}")
            self._counters.append(counters)
            self._atomic.check()
            return
        if len(n_lengths) <= self.max_n and self._columns is None:
            # A column lies 8 bytes in every row of the file: enumerated counters wait in memory for the others.
            self._columns = np.zeros(self.counters.shape, dtype=np.uint64)
        target = self.counters if self._columns is None else self._columns
        target[rows.start : rows.stop, n_lengths.start : n_lengths.stop] = counters
        self._atomic.check()

    def get(self, unit: Unit) -> NDArray[np.uint64]:
        """The counters of a unit that was put."""
        rows, n_lengths = unit.rows, unit.n_lengths
        source = self.counters if self._columns is None else self._columns
        return np.asarray(source[rows.start : rows.stop, n_lengths.start : n_lengths.stop])

    def finish(
        self, attributes: dict[str, Any], ranks: list[dict[str, str]], timings: Timings, tables: Sequence[Table] = ()
    ) -> None:
        """Write what is known only at the end: provenance and times."""
        if self._columns is not None:
            self.counters[...] = self._columns
        if isinstance(self._counters, PackedColumn):
            self._counters.close()
        write_provenance(self._file, {"format": FORMAT, "format_version": VERSION, **attributes}, ranks)
        self._write_timings(timings)
        if tables:
            write_tables(self._file, tables)
        self._file.flush()
        self._atomic.check()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        rows = len(repertoire)
        numbers = self._column(group, "row", (rows,), np.int64)
        widths = {"sequence_id": max(1, self._id_width()), "cdr3": max(1, repertoire.longest)}
        ids, cdr3s = (
            self._column(group, name, (rows,), h5py.string_dtype("utf-8", width)) for name, width in widths.items()
        )
        for first in range(0, rows, TEXT_ROWS):
            piece = slice(first, min(rows, first + TEXT_ROWS))
            numbers.append(repertoire.row[piece])
            # The view carries HDF5's UTF-8 tag, without which the bytes would not be taken as text.
            ids.append(repertoire.id_bytes(piece, widths["sequence_id"]).view(ids.dataset.dtype))
            cdr3s.append(repertoire.cdr3_bytes(piece).view(cdr3s.dataset.dtype))
        for column in (numbers, ids, cdr3s):
            column.close()
        pairs = self._file.create_group("pairs")
        sizes = np.diff(repertoire.offsets)
        for k, name in enumerate(("v_call", "j_call")):
            alleles = np.array([pair[k].allele.encode() for pair in repertoire.pairs], dtype=np.bytes_)
            self._fixed(pairs, name, alleles)
            # Rows of a pair stand together, so the column is runs of one text: it packs to nothing.
            self._fixed(group, name, np.repeat(alleles, sizes), compression="gzip", compression_opts=1)
        pairs.create_dataset("offset", data=repertoire.offsets)
        self._write_excluded(repertoire.excluded)
        if repertoire.repertoire_ids is not None:
            self._write_repertoires(repertoire, repertoire.repertoire_ids)

    def _write_repertoires(self, repertoire: Repertoire, names: list[str]) -> None:
        """Whose each row is, and how many rows each repertoire has."""
        texts = np.array([name.encode() for name in names], dtype=np.bytes_)
        rows = len(repertoire)
        packed = {"compression": "gzip", "compression_opts": 1} if rows else {}
        column = self._text(self._file["sequences"], REPERTOIRE, rows, max(1, texts.dtype.itemsize), **packed)
        for first in range(0, rows, TEXT_ROWS):
            piece = slice(first, min(rows, first + TEXT_ROWS))
            column[piece] = texts[repertoire.repertoire[piece]].astype(column.dtype)
        whose = np.array([name.encode() for name in repertoire.excluded.repertoire_id], dtype=np.bytes_)
        self._fixed(self._file["excluded"], REPERTOIRE, whose)
        excluded = Counter(repertoire.excluded.repertoire_id)
        counted = np.bincount(repertoire.repertoire, minlength=len(names)).tolist()
        found = {name: (n + excluded[name], n) for name, n in zip(names, counted, strict=True)}
        write_repertoires(self._file, found)

    def _write_excluded(self, excluded: Excluded) -> None:
        group = self._file.create_group("excluded")
        group.create_dataset("row", data=excluded.row)
        for name, texts in (("sequence_id", excluded.sequence_id), ("reason", excluded.reason)):
            self._fixed(group, name, np.array([text.encode() for text in texts], dtype=np.bytes_))

    @staticmethod
    def _text(group: h5py.Group, name: str, rows: int, width: int, **options: Any) -> h5py.Dataset:
        return group.create_dataset(name, (rows,), dtype=h5py.string_dtype("utf-8", width), **options)

    @staticmethod
    def _fixed(group: h5py.Group, name: str, values: NDArray[np.bytes_], **options: Any) -> None:
        write_texts(group, name, values, **(options if len(values) else {}))

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


def write_texts(group: h5py.Group, name: str, values: NDArray[np.bytes_], **options: Any) -> None:
    """A dataset of fixed-width texts."""
    text = h5py.string_dtype("utf-8", max(1, values.dtype.itemsize))
    group.create_dataset(name, data=values.astype(text), dtype=text, **options)


def write_repertoires(file: h5py.File, found: Mapping[str, tuple[int, int]]) -> None:
    """`/repertoires`: rows and counted sequences of each repertoire."""
    group = file.create_group("repertoires")
    write_texts(group, REPERTOIRE, np.array([name.encode() for name in found], dtype=np.bytes_))
    for k, name in enumerate(("rows", "sequences")):
        group.create_dataset(name, data=np.array([sizes[k] for sizes in found.values()], dtype=np.int64))


def write_tables(file: h5py.File, tables: Sequence[Table]) -> None:
    """`/tables`: those that were counted together."""
    group = file.create_group("tables")
    texts = {
        "path": [str(table.path.resolve()) for table in tables],
        "sha256": [table.sha256 for table in tables],
        REPERTOIRE: [table.name for table in tables],
    }
    for name, values in texts.items():
        write_texts(group, name, np.array([os.fsencode(value) for value in values], dtype=np.bytes_))
    for name in ("first_row", "rows"):
        group.create_dataset(name, data=np.array([getattr(table, name) for table in tables], dtype=np.int64))


def _large_string_offsets(ids: Any) -> NDArray[np.int64]:
    from hpcvdj.repertoires.columns import text_buffers

    return text_buffers(ids)[0] if ids is not None and len(ids) else np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class CountedTable:
    """A table that a result counts: rows `first_row` … `first_row + rows - 1` of the input are its rows.

    `repertoire_id` is that of rows of which the table does not say it.
    """

    path: Path
    sha256: str
    repertoire_id: str
    first_row: int
    rows: int


class Result:
    """A result file, open for reading.  Use as a context manager, or `close` it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = open_result(self.path, "hpcvdj count", FORMAT, VERSION)
        try:
            self._held = HeldParts(self.path, self._file)
        except BaseException:
            self._file.close()
            raise

    @property
    def parts(self) -> list[Path]:
        """The files that hold the rows of a result in parts; none of another."""
        return parts_of(self.path, self._file)

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; datasets read so far stay usable, `counters` does not."""
        self._file.close()
        self._held.release()

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
        """A dataset or group of the file by its path in docs/file_format.md, such as `sequences/cdr3`.

        Usable until the file is closed.
        """
        return self._file[name]

    @property
    def row(self) -> NDArray[np.int64]:
        """The 0-based data row of each sequence in the input, int64 [sequences]."""
        return np.asarray(self._file["sequences/row"][:])

    @property
    def cdr3(self) -> NDArray[np.bytes_]:
        """The CDR3 of each sequence, in A, C, G, T: fixed-width bytes [sequences]."""
        return np.asarray(self._file["sequences/cdr3"][:], dtype=np.bytes_)

    @property
    def provenance(self) -> dict[str, Any]:
        """The file's attributes: format, versions, command line, configuration, inputs, machine."""
        return {name: value.item() if hasattr(value, "item") else value for name, value in self._file.attrs.items()}

    @property
    def excluded(self) -> Excluded:
        """The rows that were not counted, and why."""
        group = self._file["excluded"]
        whose = _strings(group[REPERTOIRE]) if self.together else []
        return Excluded(np.asarray(group["row"][:]), _strings(group["sequence_id"]), _strings(group["reason"]), whose)

    @property
    def together(self) -> bool:
        """Whether tables were counted together: each sequence then has its repertoire."""
        return REPERTOIRE in self._file["sequences"]

    @property
    def repertoire_id(self) -> NDArray[np.bytes_]:
        """The repertoire of each sequence: fixed-width UTF-8 bytes [sequences]."""
        if self.together:
            return np.asarray(self._file["sequences"][REPERTOIRE][:], dtype=np.bytes_)
        return np.full(len(self), next(iter(self.repertoires)).encode())

    @property
    def repertoires(self) -> dict[str, int]:
        """How many sequences of each repertoire were counted, in the order of the input."""
        if self.together:
            group = self._file["repertoires"]
            return dict(zip(_strings(group[REPERTOIRE]), group["sequences"][:].tolist(), strict=True))
        return {str(self.provenance.get(REPERTOIRE) or self.path.stem): len(self)}

    @property
    def tables(self) -> list[CountedTable]:
        """The tables that were counted, one after another."""
        if self.together:
            group = self._file["tables"]
            paths = [Path(os.fsdecode(path)) for path in group["path"][:].tolist()]
            texts = [_strings(group[name]) for name in ("sha256", REPERTOIRE)]
            places = [group[name][:].tolist() for name in ("first_row", "rows")]
            return [CountedTable(*facts) for facts in zip(paths, *texts, *places, strict=True)]
        facts = self.provenance
        path, digest, name = (str(facts.get(key, "")) for key in ("junctions_path", "junctions_sha256", REPERTOIRE))
        return [CountedTable(Path(path), digest, name, 0, int(facts["rows_read"]))]

    @property
    def pairs(self) -> list[tuple[str, str, slice]]:
        """(V allele, J allele, its rows) of each V–J pair."""
        group = self._file["pairs"]
        offset = group["offset"][:].tolist()
        alleles = zip(_strings(group["v_call"]), _strings(group["j_call"]), strict=True)
        return [(v, j, slice(offset[k], offset[k + 1])) for k, (v, j) in enumerate(alleles)]

    def all(self) -> Selection:
        """All sequences, in the file's order."""
        return Selection(self, np.arange(len(self), dtype=np.int64))

    def pair(self, v_call: str, j_call: str) -> Selection:
        """The sequences of a V–J pair, by its alleles; InputError if none was counted.

        In a result of parts a pair stands in several of them; here it is whole.
        """
        found = [rows for v, j, rows in self.pairs if (v, j) == (v_call, j_call)]
        if not found:
            alleles = sorted({v for v, _, _ in self.pairs if v.partition("*")[0] == v_call.partition("*")[0]})
            has = f"of {v_call.partition('*')[0]} it has {', '.join(alleles)}" if alleles else "result.pairs lists all"
            raise InputError(f"{self.path}: no sequence was counted with {v_call} and {j_call}; {has}")
        return Selection(self, np.concatenate([np.arange(rows.start, rows.stop, dtype=np.int64) for rows in found]))

    def select(
        self,
        *,
        rows: Iterable[int] | None = None,
        sequence_id: str | Iterable[str] | None = None,
        v_call: str | None = None,
        j_call: str | None = None,
        min_pathways: int | None = None,
        repertoire_id: str | Iterable[str] | None = None,
    ) -> Selection:
        """The sequences that meet every condition given: see `Selection.select`."""
        return self.all().select(
            rows=rows,
            sequence_id=sequence_id,
            v_call=v_call,
            j_call=j_call,
            min_pathways=min_pathways,
            repertoire_id=repertoire_id,
        )

    def join(self, table: Any, on: Literal["sequence_id", "row"] = "sequence_id") -> Any:
        """A pandas AIRR table with the counters beside it: see `hpcvdj.results.joining.join`."""
        from hpcvdj.results.joining import join

        return join(self, table, on)

    def to_numpy(self) -> NDArray[np.uint64]:
        """All counters in memory, uint64 [sequences, n-lengths]."""
        return np.asarray(self.counters[:])

    def to_table(self) -> pa.Table:
        """All sequences as a pyarrow table, by V–J pair: row, ids, calls, cdr3, pathways_n0 …, pathways_total."""
        return self.all().to_table()

    def to_pandas(self) -> Any:
        """The same columns as a pandas DataFrame."""
        return self.all().to_pandas()


def counter_columns(counters: NDArray[np.uint64], counted: NDArray[np.bool_] | None = None) -> dict[str, pa.Array]:
    """Counters as the columns pathways_n0 … pathways_total; null where `counted` is false."""
    mask = None if counted is None else ~counted
    named = {f"pathways_n{m}": counters[:, m] for m in range(counters.shape[1])}
    named["pathways_total"] = counters.sum(axis=1, dtype=np.uint64)
    return {name: pa.array(np.ascontiguousarray(values), mask=mask) for name, values in named.items()}


def _strings(dataset: h5py.Dataset) -> list[str]:
    return [value.decode() for value in dataset[:].tolist()]
