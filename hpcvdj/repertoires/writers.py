"""Tables that are written: a class for each kind of table, which the ending of the name determines.

A table can be written in parts.  The parts are joined without decoding their values: bytes of text, members of gzip,
frames of zstd and row groups of Parquet are concatenated, and a folder contains the parts.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError, choices
from hpcvdj.public import OnFirstUse
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.readers import reader
from hpcvdj.storage.ahead import in_threads
from hpcvdj.storage.files import COPIED_BYTES, atomic_path, gzipped, require_writable
from hpcvdj.storage.folders import MARK, atomic_folder, exclusive_folder, mark_written, require_replaceable
from hpcvdj.storage.inputs import DigestedFile
from hpcvdj.storage.parquet import join_parquet

pq: Any = OnFirstUse("pyarrow.parquet")

_FILE = "part-{:06}.parquet"
_FILE_PATTERN = re.compile(r"part-[0-9]{6,}\.parquet")
"""The names of the files in a folder."""

_ROWS_TO_JUDGE = 1 << 13
"""The number of rows that decide which columns of a Parquet file are dictionaries."""


def packed(stream: IO[bytes], packing: str | None) -> AbstractContextManager[Any]:
    """A stream that packs its data into `stream`, with `gzip` or `zstd`; None packs nothing."""
    if packing == "gzip":
        return gzipped(stream)
    return pa.CompressedOutputStream(stream, "zstd") if packing == "zstd" else nullcontext(stream)


class TableWriter:
    """A new table in a file, of record batches of one schema; a context manager.

    name       of the kind
    endings    of the names of such tables
    is_folder  whether a table is a folder of files
    packing    of the file, as of `packed`

    path   the file, which may have any name
    first  whether its rows are the first of the table: later parts of a text have no header
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    is_folder: ClassVar[bool] = False
    packing: ClassVar[str | None] = None

    def __init__(self, path: Path, *, first: bool = True) -> None:
        self._first = first
        self._stack = ExitStack()
        plain = self._stack.enter_context(DigestedFile(path))
        self._stream: Any = self._stack.enter_context(packed(plain, self.packing))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch.  The first batch, which may have no rows, determines the columns."""
        raise NotImplementedError

    @classmethod
    def of_parts(cls) -> "type[TableWriter]":
        """The kind of the table's parts."""
        return cls

    @classmethod
    def join(cls, parts: Mapping[Path, str], target: Path, between: Callable[[], None]) -> None:
        """Make the table `target` of the parts of a table, in their order.

        parts    the SHA-256 of each part, by its path
        between  called between two steps
        """
        with open(target, "wb") as joined:
            for part in parts:
                with open(part, "rb") as stream:
                    while data := stream.read(COPIED_BYTES):
                        joined.write(data)
                        between()


class TsvWriter(TableWriter):
    """AIRR TSV: text without quotes."""

    name = "tsv"
    endings = (".tsv",)

    def write(self, batch: pa.RecordBatch) -> None:
        if self._first:
            self._stream.write("\t".join(batch.schema.names).encode() + b"\n")
            self._first = False
        parts = (batch.slice(first, reader.BATCH_ROWS) for first in range(0, batch.num_rows, reader.BATCH_ROWS))
        # A large batch has several parts; numbers become text on several cores.
        threads = None if batch.num_rows > reader.BATCH_ROWS else 0
        for lines in in_threads(lambda part: _lines(as_strings(part)), parts, threads):
            self._stream.write(lines)


class GzipWriter(TsvWriter):
    """AIRR TSV, packed with gzip; a part is a member."""

    name = "gzip"
    endings = (".tsv.gz",)
    packing = "gzip"


class ZstdWriter(TsvWriter):
    """AIRR TSV, packed with zstd; a part is a frame."""

    name = "zstd"
    endings = (".tsv.zst",)
    packing = "zstd"


class ParquetWriter(TableWriter):
    """Parquet, which keeps the types of columns."""

    name = "parquet"
    endings = (".parquet",)

    _writer: Any = None
    _schema: pa.Schema | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        # The rows determine which columns are dictionaries.  A table without rows has the columns of an empty batch.
        self._schema = batch.schema
        if batch.num_rows:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._stream, batch.schema, use_dictionary=_repetitive(batch))
            self._writer.write_batch(batch)

    def __exit__(self, *exception: object) -> None:
        if self._writer is None and self._schema is not None:
            self._writer = pq.ParquetWriter(self._stream, self._schema)
        if self._writer is not None:
            self._writer.close()
        super().__exit__(*exception)

    @classmethod
    def join(cls, parts: Mapping[Path, str], target: Path, between: Callable[[], None]) -> None:
        join_parquet(list(parts), target, between)


class ParquetFolderWriter(ParquetWriter):
    """A folder of Parquet files, which pandas, polars, DuckDB and Spark open as one table."""

    name = "parquet folder"
    endings = (".dataset",)
    is_folder = True

    def __init__(self, path: Path, *, first: bool = True) -> None:
        super().__init__(path / _FILE.format(0), first=first)

    @classmethod
    def of_parts(cls) -> type[TableWriter]:
        return ParquetWriter

    @classmethod
    def join(cls, parts: Mapping[Path, str], target: Path, between: Callable[[], None]) -> None:
        named = {_FILE.format(number): part for number, part in enumerate(parts)}
        for name, part in named.items():
            try:
                os.link(part, target / name)
            except OSError:
                # Some file systems do not support links.
                shutil.copyfile(part, target / name)
            between()
        mark_written(target, {name: parts[part] for name, part in named.items()})


def is_part(path: Path) -> bool:
    """Whether a file is part of a table of `ParquetFolderWriter`."""
    return _FILE_PATTERN.fullmatch(path.name) is not None and (path.parent / MARK).is_file()


def writer_of(path: Path) -> type[TableWriter]:
    """The kind of table with such a name; InputError if there is none."""
    name = path.name.lower()
    kind = next((kind for kind in choices(TableWriter).values() if name.endswith(kind.endings)), None)
    if kind is None:
        raise InputError(f"{path}: the name must end in {endings_in_words()}")
    return kind


def is_table(path: Path) -> bool:
    """Whether a path is named like a table that can be written."""
    return path.name.lower().endswith(_endings())


def endings_in_words() -> str:
    """The endings of the names of tables, for messages."""
    *others, last = _endings()
    return f"{', '.join(others)} or {last}"


def _endings() -> tuple[str, ...]:
    return tuple(ending for kind in choices(TableWriter).values() for ending in kind.endings)


def write_table(target: Path, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> int:
    """Write batches of one schema as an AIRR table of the kind that its name asks for; returns the number of rows.

    InputError for a name of no kind, and as of `atomic_path`.
    """
    kind = writer_of(target)
    with ExitStack() as stack:
        if kind.is_folder:
            stack.enter_context(exclusive_folder(target, overwrite=overwrite))
        return fill_table(stack.enter_context(new_table(target, overwrite=overwrite)), kind, batches)


def require_writable_table(target: Path, *, overwrite: bool) -> None:
    """Raise InputError, with the remedy, unless a table may be written at `target`."""
    check = require_replaceable if writer_of(target).is_folder else require_writable
    check(target, overwrite=overwrite)


def new_table(target: Path, *, overwrite: bool) -> AbstractContextManager[Path]:
    """Yield a temporary file or folder, which becomes the table `target` if the block succeeds.

    A folder must be written within `exclusive_folder`.
    """
    if writer_of(target).is_folder:
        return atomic_folder(target, overwrite=overwrite)
    return atomic_path(target, overwrite=overwrite)


def fill_table(
    path: Path,
    kind: type[TableWriter],
    batches: Iterable[pa.RecordBatch],
    *,
    first: bool = True,
    between: Callable[[], None] = lambda: None,
) -> int:
    """Write batches of one schema to a file; returns the number of rows.

    kind     of the table
    first    whether the rows are the first of their table
    between  called after each batch
    """
    rows = 0
    with kind(path, first=first) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write(batch)
            between()
    return rows


def _repetitive(batch: pa.RecordBatch) -> list[str]:
    """Columns with few distinct values in the first rows.  For other columns, a dictionary takes time for no gain."""
    first = batch.slice(0, _ROWS_TO_JUDGE)
    most = first.num_rows // 4
    # The first of these rows often show that a column has more values.
    fewer = most + most // 4 + 1
    return [
        name
        for name, column in zip(first.schema.names, first.columns, strict=True)
        if all(pc.count_distinct(rows).as_py() <= most for rows in (column.slice(0, fewer), column))
    ]


def _lines(batch: pa.RecordBatch) -> memoryview:
    """The lines of a batch of text; InputError for a value that has a tab or a line end."""
    # pyarrow.csv cannot write quote characters unquoted, as AIRR TSV has them: columns are joined to the file's bytes.
    joined = pc.binary_join_element_wise(*batch.columns, pa.scalar("\t", pa.large_string()))
    ended = pc.binary_join_element_wise(joined, *[pa.scalar(text, pa.large_string()) for text in ("", "\n")])
    lines = memoryview(ended.buffers()[2])
    values = np.frombuffer(lines, np.uint8)
    separators = [np.count_nonzero(values == byte) for byte in b"\t\n\r"]
    if separators != [(batch.num_columns - 1) * batch.num_rows, batch.num_rows, 0]:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pc.any(pc.match_substring_regex(column, "[\t\n\r]")).as_py():
                raise InputError(f"a {name} has a tab or a line end, which a TSV cannot hold; write .parquet")
    return lines
