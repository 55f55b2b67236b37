"""Tables that a run reads, in files and in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.errors import InputError, few
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.formats import BY_HEADER, REASON, Opening, Translation, resembled
from hpcvdj.repertoires.readers import TableReader, open_table, possible_suffixes, reader, table_suffixes
from hpcvdj.storage.inputs import State, file_state


@dataclass(frozen=True)
class Table:
    """One of the tables that a run reads, or that a result counts: `rows` rows of the input, from `first_row` on.

    sha256         digest of the file's bytes; empty until it is known
    repertoire_id  the repertoire of rows that do not name theirs
    unnamed        how many rows do not
    repertoires    rows of each of its repertoires, in the order of the table
    state          the file's state before anything was read
    opening        how it is opened
    """

    path: Path
    sha256: str = ""
    repertoire_id: str = ""
    first_row: int = 0
    rows: int = 0
    unnamed: int = 0
    repertoires: dict[str, int] = field(default_factory=dict)
    state: State | None = None
    opening: Opening = BY_HEADER

    def open(self) -> TableReader:
        """Its reader; InputError if the file cannot be read."""
        return open_table(self.path, self.opening)


def table_at(path: Path, opening: Opening = BY_HEADER) -> Table:
    """The table in a file, of which nothing was read yet."""
    return Table(path, repertoire_id=repertoire_name(path), state=file_state(path), opening=opening)


def repertoire_name(path: Path) -> str:
    """A repertoire's file name without the suffix of a table."""
    name = path.name
    suffixes = (*table_suffixes(), *possible_suffixes())
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), name) or name


def _translation(table: Any, opening: Opening) -> tuple[list[str], Translation | None]:
    own = [str(name) for name in getattr(table, "column_names", getattr(table, "columns", []))]
    # Columns are named without looking at rows.
    return own, Translation.of(own, opening, "the table", lambda columns: None)


def made_fields(table: Any) -> list[str]:
    """The AIRR fields that are made of a table in memory; none if it is an AIRR table."""
    _, translation = _translation(table, BY_HEADER)
    return translation.made if translation else []


def table_columns(table: Any, opening: Opening = BY_HEADER) -> list[str]:
    """What a table in memory can be read as: the AIRR fields that it has, then its other columns, and `REASON`."""
    own, translation = _translation(table, opening)
    return [*translation.columns, *[REASON] * translation.explains] if translation else own


def table_batches(
    table: Any, columns: Sequence[str] | None = None, opening: Opening = BY_HEADER
) -> Iterator[pa.RecordBatch]:
    """The rows of a pandas DataFrame or a pyarrow Table as `read_batches` returns those of a file."""
    arrow = as_arrow(table)
    own = list(map(str, arrow.column_names))
    translation = Translation.of(own, opening, "the table", lambda columns: next(_batches(arrow, columns), None))
    has = table_columns(arrow, opening)
    wanted = list(columns) if columns is not None else has
    missing = [name for name in wanted if name not in has]
    if missing:
        fault = resembled(own)
        raise InputError(
            f"the table {fault or 'has no column ' + ', '.join(missing)}; rename its columns to the AIRR names "
            f"(it has {few(own, 12)})"
        )
    sources = translation.sources(wanted) if translation else wanted
    first_row = 0
    try:
        for part in _batches(arrow, sources):
            yield translation.apply(part, wanted, first_row) if translation else part
            first_row += part.num_rows
    except pa.ArrowInvalid as error:
        raise InputError(f"the table has a value that is not text ({error}); convert it to UTF-8") from None


def _batches(arrow: pa.Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return map(as_strings, arrow.select(columns).to_batches(max_chunksize=reader.BATCH_ROWS))


def as_arrow(table: Any) -> pa.Table:
    """A pyarrow Table of a pandas or polars DataFrame, or of any object with the Arrow stream interface."""
    if isinstance(table, pa.Table):
        return table
    library = type(table).__module__.partition(".")[0]
    if library == "polars" and hasattr(table, "to_arrow"):
        # The Arrow stream of polars has types that pyarrow cannot compute with.
        import polars

        return table.to_arrow(compat_level=polars.CompatLevel.oldest())
    if library == "pandas":
        try:
            return pa.Table.from_pandas(table, preserve_index=False)
        except pa.ArrowException as error:
            message = " ".join(str(text) for text in error.args)
            raise InputError(f"the table has a column of mixed types ({message}); convert it to text") from None
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    remedy = "give a pandas, polars or pyarrow table"
    if isinstance(table, list | tuple):
        remedy += "; put several together, with a column repertoire_id that says which rows are of which"
    raise InputError(f"cannot read junctions from a {type(table).__name__}; {remedy}")
