"""Tables that are written: a class for each kind, which the ending of a name chooses.

A table that is written in parts is joined from them without a value being read or written again: bytes of text,
members of gzip, frames of zstd and row groups of Parquet follow each other, and a folder has the parts as they are.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hpcvdj.errors import InputError, choices
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.readers import reader
from hpcvdj.storage.files import COPIED_BYTES, atomic_path, gzipped, require_writable
from hpcvdj.storage.folders import atomic_folder, exclusive_folder, mark_written, require_replaceable
from hpcvdj.storage.parquet import join_parquet

_FILE = "part-{:06}.parquet"
"""The files of a folder."""


class TableWriter:
    """A new table in a file, of record batches of one schema; a context manager.

    name       of the kind
    endings    of the names of such tables
    is_folder  whether a table is a folder of files

    path   the file, which may have any name
    first  whether its rows are the first of the table: other parts of a text have no header
    """

    name: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    is_folder: ClassVar[bool] = False

    def __init__(self, path: Path, *, first: bool = True) -> None:
        self._first = first
        self._stack = ExitStack()
        self._stream: Any = self._stack.enter_context(open(path, "wb"))  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch; the first batch, which may have none, has the columns."""
        raise NotImplementedError

    @classmethod
    def of_parts(cls) -> "type[TableWriter]":
        """The kind of the parts of such tables."""
        return cls

    @classmethod
    def join(cls, parts: Mapping[Path, str], target: Path, between: Callable[[], None]) -> None:
        """Make the table `target` of the parts of a table, in their order; `between` is called between two steps.

        parts  the SHA-256 of each
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
        for first in range(0, batch.num_rows, reader.BATCH_ROWS):
            self._stream.write(_lines(as_strings(batch.slice(first, reader.BATCH_ROWS))))


class GzipWriter(TsvWriter):
    """The same, packed with gzip; a part is a member."""

    name = "gzip"
    endings = (".tsv.gz",)

    def __init__(self, path: Path, *, first: bool = True) -> None:
        super().__init__(path, first=first)
        self._stream = self._stack.enter_context(gzipped(self._stream))


class ZstdWriter(TsvWriter):
    """The same, packed with zstd; a part is a frame."""

    name = "zstd"
    endings = (".tsv.zst",)

    def __init__(self, path: Path, *, first: bool = True) -> None:
        super().__init__(path, first=first)
        self._stream = self._stack.enter_context(pa.CompressedOutputStream(self._stream, "zstd"))


class ParquetWriter(TableWriter):
    """Parquet, with columns of their types."""

    name = "parquet"
    endings = (".parquet",)

    _writer: pq.ParquetWriter | None = None
    _schema: pa.Schema | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        # Rows tell which columns are dictionaries; a table without any has its columns from an empty batch.
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
                # Some file systems have no links.
                shutil.copyfile(part, target / name)
            between()
        mark_written(target, {name: parts[part] for name, part in named.items()})


def writer_of(path: Path) -> type[TableWriter]:
    """The kind of table that a name asks for; InputError if there is none."""
    name = path.name.lower()
    kind = next((kind for kind in choices(TableWriter).values() if name.endswith(kind.endings)), None)
    if kind is None:
        raise InputError(f"{path}: the name must end in {endings_in_words()}")
    return kind


def is_table(path: Path) -> bool:
    """Whether a file is called like a table that can be written."""
    return path.name.lower().endswith(_endings())


def endings_in_words() -> str:
    """How the names of tables that are written end."""
    *others, last = _endings()
    return f"{', '.join(others)} or {last}"


def _endings() -> tuple[str, ...]:
    return tuple(ending for kind in choices(TableWriter).values() for ending in kind.endings)


def write_table(target: Path, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> int:
    """Write batches of one schema as an AIRR table, by the ending of its name; returns the number of rows.

    InputError for another ending, and as `atomic_path` raises it.
    """
    kind = writer_of(target)
    with ExitStack() as stack:
        if kind.is_folder:
            stack.enter_context(exclusive_folder(target, overwrite=overwrite))
        return fill_table(stack.enter_context(new_table(target, overwrite=overwrite)), kind, batches)


def require_writable_table(target: Path, *, overwrite: bool) -> None:
    """Raise InputError with the remedy unless a table may be written at `target`."""
    check = require_replaceable if writer_of(target).is_folder else require_writable
    check(target, overwrite=overwrite)


def new_table(target: Path, *, overwrite: bool) -> AbstractContextManager[Path]:
    """Yield a temporary file or folder that becomes the table `target` if the block succeeds.

    A folder is to be written within `exclusive_folder`.
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
    """Write batches of one schema to a file as a table of a kind; returns the number of rows.

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
    """Columns with few different values in the first rows; for others, making a dictionary takes time for nothing."""
    first = batch.slice(0, reader.BATCH_ROWS)
    most = first.num_rows // 4
    named = zip(first.schema.names, first.columns, strict=True)
    # Mostly, fewer rows show that there are more.
    fewer = most + most // 4 + 1
    return [
        name
        for name, column in named
        if all(pc.count_distinct(rows).as_py() <= most for rows in (column.slice(0, fewer), column))
    ]


def _lines(batch: pa.RecordBatch) -> memoryview:
    """The lines of a batch of text; InputError for a value that has a tab or a line end."""
    # pyarrow.csv cannot write a quote character unquoted, as AIRR TSV does; joined columns are the file's bytes.
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
