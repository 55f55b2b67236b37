"""A table without some of its rows, in the format that it has."""

import io
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.repertoires.readers import ParquetReader, TextReader, reader
from hpcvdj.repertoires.tables import Table
from hpcvdj.storage.files import gzipped
from hpcvdj.storage.inputs import changed, packing, require_unchanged, unpacked

Keep = NDArray[np.bool_]


def require_filterable(table: Table) -> None:
    """Raise InputError for a table whose rows cannot be left out."""
    _copier(table)


def write_without(table: Table, rows: NDArray[np.int64], target: Path) -> None:
    """Write a table to a new file: all of it, byte by byte if it is text, but for some data rows.

    rows  int64: from 0, of this table

    InputError if the table is not what it was when the run began.
    """
    keep = np.ones(table.rows, dtype=bool)
    keep[rows] = False
    _copier(table)(table, keep, target)
    require_unchanged(table.path, table.state)


def _copier(table: Table) -> Callable[[Table, Keep, Path], None]:
    opened = table.open()
    if isinstance(opened, ParquetReader):
        return _parquet
    if isinstance(opened, TextReader):
        return _text
    raise InputError(
        f"{table.path}: only rows of text and Parquet can be left out; `hpcvdj convert` makes an AIRR table"
    )


def _parquet(table: Table, keep: Keep, target: Path) -> None:
    first = 0
    with pq.ParquetFile(table.path) as source, pq.ParquetWriter(target, source.schema_arrow) as out:
        for batch in source.iter_batches(reader.BATCH_ROWS):
            own = keep[first : first + batch.num_rows]
            first += batch.num_rows
            out.write_batch(batch.filter(pa.array(own)))
    if first != len(keep):
        raise changed(table.path)


def _text(table: Table, keep: Keep, target: Path) -> None:
    opened = table.open()
    assert isinstance(opened, TextReader)
    row = 0
    with (
        # Rows may end in a carriage return alone; Latin-1 has a letter for each byte.
        io.TextIOWrapper(unpacked(table.path), "latin-1", newline="") as source,
        open(target, "wb") as plain,
        _packing(packing(table.path), plain) as out,
    ):
        for number, text in enumerate(source):
            line = text.encode("latin-1")
            # Readers do not see empty lines either.
            if number < opened.lines_before_rows or not line.strip(b"\r\n"):
                out.write(line)
                continue
            if row >= len(keep):
                raise changed(table.path)
            if keep[row]:
                out.write(line)
            row += 1
    if row != len(keep):
        raise changed(table.path)


def _packing(kind: str | None, stream: Any) -> Any:
    """A stream into `stream` that packs what it gets."""
    if kind == "gzip":
        return gzipped(stream)
    if kind == "zstd":
        return pa.CompressedOutputStream(pa.PythonFile(stream, "w"), "zstd")
    return nullcontext(stream)
