"""The reader of tables in memory: pandas, polars, pyarrow, and any object with the Arrow stream interface."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, few
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.formats.format import BY_HEADER, REASON, Opening, resembled
from hpcvdj.repertoires.readers import reader
from hpcvdj.repertoires.readers.reader import TableReader


class MemoryReader(TableReader):
    """A table in memory, with the columns of AIRR or of another program.

    The numbers of rows are their ids, because a table that joins several may repeat ids.  Results are returned row by
    row.
    """

    def __init__(self, table: Any, opening: Opening = BY_HEADER, name: str = "") -> None:
        """Read a table, which messages call `name`."""
        super().__init__(Path(f"the table {name}".rstrip()), opening)
        self.table = as_arrow(table)

    @cached_property
    def given_columns(self) -> list[str]:
        return list(map(str, self.table.column_names))

    @property
    def known_rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def heading(self) -> str:
        return str(self.path)

    def _announce(self) -> None:
        """Log nothing: the user knows the table."""

    @property
    def explains(self) -> bool:
        # A file that was read into memory may have the column already.
        return super().explains or REASON in self.given_columns

    def _missing_message(self, missing: list[str]) -> str:
        lacks = f"has no column {', '.join(missing)}"
        if missing == ["junction"] and (amino := self._only_amino_acids(missing)):
            return f"{self.path} {lacks}; {amino}"
        fault = resembled(self.given_columns) or lacks
        has = few(self.given_columns, 12)
        return f"{self.path} {fault}; rename its columns to the AIRR names (it has {has})"

    def given_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        try:
            yield from map(as_strings, self.table.select(columns).to_batches(max_chunksize=reader.BATCH_ROWS))
        except pa.ArrowInvalid as error:
            raise InputError(f"{self.path} has a value that is not text ({error}); convert it to UTF-8") from None

    def taken(self, rows: NDArray[np.int64], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The `columns` of data rows, which ascend."""
        table = self.table if len(rows) == self.table.num_rows else self.table.take(rows)
        part = MemoryReader(table, self.opening)
        part.path = self.path
        return part.batches(columns)


def is_column(values: Any) -> bool:
    """Whether values are sequences without a table: a list, or a column (Series) of any library."""
    return isinstance(values, list | tuple) or len(getattr(values, "shape", ())) == 1


def as_arrow(table: Any) -> pa.Table:
    """A pyarrow Table of a pandas or polars DataFrame, or of any object with the Arrow stream interface."""
    if isinstance(table, pa.Table):
        return table
    library = "" if is_column(table) else type(table).__module__.partition(".")[0]
    if library == "polars" and hasattr(table, "to_arrow"):
        # The Arrow stream of polars has types that pyarrow has no functions for.
        import polars

        return table.to_arrow(compat_level=polars.CompatLevel.oldest())
    if library == "pandas":
        if not table.columns.is_unique:
            twice = few(sorted({*map(str, table.columns[table.columns.duplicated()])}))
            raise InputError(f"the table has several columns of one name ({twice}); leave all but one out")
        try:
            return pa.Table.from_pandas(table, preserve_index=False)
        except pa.ArrowException as error:
            message = " ".join(map(str, error.args))
            raise InputError(f"the table has a column of mixed types ({message}); convert it to text") from None
        except (TypeError, OverflowError) as error:
            raise InputError(f"a column of the table cannot be read ({error}); convert it, or leave it out") from None
    if hasattr(table, "__arrow_c_stream__") and not is_column(table):
        return pa.table(table)
    remedy = "give a pandas, polars or pyarrow table"
    if isinstance(table, list | tuple):
        remedy += "; put several together, with a column repertoire_id that says which rows are of which"
    raise InputError(f"cannot read junctions from a {type(table).__name__}; {remedy}")
