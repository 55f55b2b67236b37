"""Tables of several individuals: files, or tables in memory by the name of each individual."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.api.tables import Given, is_column, listed
from hpcvdj.errors import InputError
from hpcvdj.repertoires.formats import REASON
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.repertoires.sequence_fields import fields_of_table
from hpcvdj.repertoires.tables import as_arrow, table_batches, table_columns


def paths_or_table(tables: Any) -> list[Path] | pa.Table:
    """The paths of tables, or one table in memory; that of a dict names the individual of each row.

    InputError for a list of tables in memory.
    """
    if isinstance(tables, str | Path):
        return [Path(tables)]
    if isinstance(tables, Mapping):
        parts = [_named(table, str(name)) for name, table in tables.items()]
        if not parts:
            raise InputError("an empty dict has no individuals; give the table of each by its name")
        # What some lack is no column of all; if it is needed, the reading says so.
        common = set.intersection(*({*part.column_names} for part in parts)) | {REASON}
        kept = [part.select([name for name in part.column_names if name in common]) for part in parts]
        return pa.concat_tables(kept, promote_options="default")
    if isinstance(tables, Sequence):
        if not all(isinstance(path, str | Path) for path in tables):
            raise InputError("a list has the paths of tables; give tables in memory as a dict, by individual")
        return [Path(path) for path in tables]
    return as_arrow(tables)


def _named(table: Any, name: str) -> pa.Table:
    """What is read of a table in memory, in any format, or of a file, as AIRR fields; all of one individual."""
    given = Given.of(listed(table) if is_column(table) else table).arrow
    wanted = ("v_call", "j_call", *fields_of_table(given), "sequence_id", READS, REASON)
    names = [name for name in wanted if name in table_columns(given)]
    batches = list(table_batches(given, names))
    # A table without rows may have no batch that tells the columns.
    own = pa.Table.from_batches(batches, None if batches else pa.schema([(name, pa.large_string()) for name in names]))
    return own.append_column(REPERTOIRE, pa.array([name] * len(own), pa.large_string()))
