"""Tables of several individuals: files, or tables in memory by the name of each individual."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.api.tables import Given
from hpcvdj.counting.tables import productive_reading
from hpcvdj.errors import InputError
from hpcvdj.repertoires.formats import REASON
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.repertoires.tables import as_arrow, table_batches, table_columns


def paths_or_table(tables: Any) -> list[Path] | pa.Table:
    """The paths of tables, or one table in memory; that of a dict names the individual of each row.

    InputError for a list of tables in memory.
    """
    if isinstance(tables, str | Path):
        return [Path(tables)]
    if isinstance(tables, Mapping):
        parts = [_named(table, str(name)) for name, table in tables.items()]
        if not all(READS in part.column_names for part in parts):
            parts = [part.drop_columns([READS] * (READS in part.column_names)) for part in parts]
        return pa.concat_tables(parts, promote_options="default")
    if isinstance(tables, Sequence):
        if not all(isinstance(path, str | Path) for path in tables):
            raise InputError("a list has the paths of tables; give tables in memory as a dict, by individual")
        return [Path(path) for path in tables]
    return as_arrow(tables)


def _named(table: Any, name: str) -> pa.Table:
    """What is read of a table in memory, in any format, or of a file, as AIRR fields; all of one individual."""
    given = Given.of(table).arrow
    further = [column for column in ("sequence_id", READS, REASON) if column in table_columns(given)]
    own = pa.Table.from_batches(table_batches(given, [*productive_reading().columns[1:], *further]))
    return own.append_column(REPERTOIRE, pa.array([name] * len(own), pa.large_string()))
