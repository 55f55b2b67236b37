"""Export the counted table with the values beside it: every input row, in the order of the input."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from hpcvdj.errors import InputError, option
from hpcvdj.repertoires.batches import with_columns
from hpcvdj.repertoires.formats.format import REQUIRED
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.table import Table
from hpcvdj.repertoires.writers import require_writable_table, write_table
from hpcvdj.results.attributes import facts_of_result
from hpcvdj.results.facts import Facts, Targets
from hpcvdj.results.lookup import Lookup, require_new_columns
from hpcvdj.results.reader import Result
from hpcvdj.runs.progress import Progress
from hpcvdj.storage.ahead import ahead
from hpcvdj.storage.files import require_distinct
from hpcvdj.storage.inputs import file_digest, file_state, require_regular


def export(
    result_path: str | Path,
    target: str | Path,
    *,
    junctions: str | Path | None = None,
    airr: bool = False,
    overwrite: bool = False,
    facts: Facts | None = None,
    between: Callable[[], None] = lambda: None,
) -> int:
    """Write the input of a result with its values to a table.

    Tables that were counted together are written one after another, with the columns of all of them and
    `repertoire_id`.

    result_path  a result file of `hpcvdj count`
    target       the table to write: .tsv, .tsv.gz, .tsv.zst or .parquet
    junctions    where the input is now, if it was moved; a folder for several tables
    airr         add the columns of `REQUIRED` that the input lacks, empty
    overwrite    replace what is there
    facts        facts to write beside the table, with the attributes of the result; None writes no file of facts
    between      called after each batch of rows

    Returns the number of rows.  Raises InputError if the input is missing, or is another table.
    """
    target = Path(target)
    require_writable_table(target, overwrite=overwrite)
    with Result(result_path) as result:
        if "first_row" in result.provenance:
            raise InputError(f"{result.path}: is a part of a result, with some rows of its table; name the result")
        tables = counted_tables(result, Path(junctions) if junctions else None)
        together = result.together
        described = facts_of_result(result.provenance) | (facts or {})
        lookup = Lookup(result.quantity, result.to_numpy(), result.row, result.excluded)
    require_distinct(target, *(table.path for table in tables))
    for table in tables:
        require_new_columns(table.open().columns, table.path, lookup.quantity, lookup.values.shape[1])

    def batches() -> Iterator[pa.RecordBatch]:
        rows = 0
        with Progress(sum(table.rows for table in tables), "rows", shown=True, what="writing the table") as progress:
            for batch in Inputs(tuple(tables), together=together).all_rows(between):
                empty = pa.nulls(batch.num_rows, pa.string())
                lacking = {name: empty for name in REQUIRED if airr and name not in batch.schema.names}
                yield with_columns(batch, lacking | lookup.columns(rows, batch.num_rows))
                rows += batch.num_rows
                progress.advance(batch.num_rows)

    if facts is None:
        return write_table(target, ahead(batches()), overwrite=overwrite)
    Targets(target).write(described, {target: ahead(batches())}, overwrite=overwrite)
    return sum(table.rows for table in tables)


def counted_tables(result: Result, moved: Path | None = None) -> list[Table]:
    """Return the tables that a result counts, where they are now.

    moved  where the tables are, if they were moved: the only table, or a folder

    Raises InputError if a table is missing, or if there is another table in its place.
    """
    tables = result.tables
    if moved is not None and len(tables) > 1 and not moved.is_dir():
        raise InputError(f"{moved}: {result.path} counts {len(tables):,} tables; name the folder that has them")
    return [_located(result, table, moved) for table in tables]


def _located(result: Result, table: Table, moved: Path | None) -> Table:
    """Return the table where it is now, in the state in which its digest was taken."""
    path = moved or table.path
    if moved is not None and moved.is_dir():
        path = moved / table.path.name
        if result.together:
            # Tables of the same name may be in different folders, as when they were counted.
            same = moved / os.path.relpath(table.path, str(result.provenance.get("junctions_path")))
            path = same if same.is_file() else path
    require_regular(path, "counted table", f"say where it is with {option('junctions')}")
    state = file_state(path)
    if file_digest(path, state) != table.sha256:
        raise InputError(
            f"{path}: is not the table that {result.path} counts (its SHA-256 differs); name that table with "
            f"{option('junctions')}, or count again"
        )
    return replace(table, path=path, state=state)
