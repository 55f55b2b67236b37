"""Copies of tables without some of their rows, in the same format."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.repertoires.readers import ParquetReader, TextReader, reader
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.writers import packed
from hpcvdj.storage.inputs import changed, packing, require_unchanged, unpacked

Keep = NDArray[np.bool_]


def require_filterable(table: Table) -> None:
    """Raise InputError for a table of which `write_without` cannot leave out rows."""
    if not isinstance(table.open(), ParquetReader | TextReader):
        raise InputError(
            f"{table.path}: only rows of text and Parquet can be left out; `hpcvdj convert` makes an AIRR table"
        )


def write_without(table: Table, rows: NDArray[np.int64], target: Path) -> None:
    """Write a table to a new file without some data rows; the bytes of other rows do not change if it is text.

    rows  int64: the data rows to leave out, from 0

    InputError if the table changed since the run began.
    """
    require_filterable(table)
    opened, keep = table.open(), np.ones(table.rows, dtype=bool)
    keep[rows] = False
    if isinstance(opened, TextReader):
        source_rows = _write_text(opened, keep, target)
    else:
        source_rows = _write_parquet(table.path, keep, target)
    if source_rows != len(keep):
        raise changed(table.path)
    require_unchanged(table.path, table.state)


def _write_parquet(path: Path, keep: Keep, target: Path) -> int:
    """Write the rows to keep; the number of rows in the table."""
    rows = 0
    with pq.ParquetFile(path) as source, pq.ParquetWriter(target, source.schema_arrow) as out:
        for batch in source.iter_batches(reader.BATCH_ROWS):
            out.write_batch(batch.filter(pa.array(keep[rows : rows + batch.num_rows])))
            rows += batch.num_rows
    return rows


def _write_text(opened: TextReader, keep: Keep, target: Path) -> int:
    """Write the rows to keep; the number of rows in the table."""
    rows = 0
    with (
        unpacked(opened.path) as source,
        open(target, "wb") as plain,
        packed(plain, packing(opened.path)) as out,
    ):
        for number, line in opened.lines(source):
            # Readers ignore empty lines.
            is_row = number > opened.lines_before_rows and line.strip(b"\r\n")
            if not is_row or (rows < len(keep) and keep[rows]):
                out.write(line)
            rows += bool(is_row)
    return rows
