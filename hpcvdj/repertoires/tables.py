"""Tables in and out: those that a run reads, tables in memory, and tables that are written."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hpcvdj.errors import InputError, few
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.formats import BY_HEADER, REASON, Opening, Translation, resembled
from hpcvdj.repertoires.readers import TableReader, open_table, possible_suffixes, reader, table_suffixes
from hpcvdj.storage.files import atomic_path
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


def write_table(target: Path, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> int:
    """Write batches of one schema as an AIRR table, by the suffix of its name; returns the number of rows.

    InputError for another suffix, and as `atomic_path` raises it.
    """
    suffix = table_suffix(target)
    with atomic_path(target, overwrite=overwrite) as temporary:
        return fill_table(temporary, suffix, batches)


def fill_table(path: Path, suffix: str, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches of one schema to a file as a table of a suffix of `table_suffix`; returns the number of rows."""
    rows = 0
    parquet: pq.ParquetWriter | None = None
    schema: pa.Schema | None = None
    with ExitStack() as stack:
        stream: Any = stack.enter_context(open(path, "wb"))
        if suffix == ".gz":
            stream = stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
        for number, batch in enumerate(batches):
            rows += batch.num_rows
            if suffix == ".parquet":
                # Rows tell which columns are dictionaries; a table without any has its columns from an empty batch.
                schema = batch.schema
                if batch.num_rows:
                    parquet = parquet or stack.enter_context(
                        pq.ParquetWriter(stream, schema, use_dictionary=_repetitive(batch))
                    )
                    parquet.write_batch(batch)
                continue
            if number == 0:
                stream.write("\t".join(batch.schema.names).encode() + b"\n")
            if batch.num_rows:
                stream.write(_lines(as_strings(batch)))
        if suffix == ".parquet" and parquet is None and schema is not None:
            stack.enter_context(pq.ParquetWriter(stream, schema))
    return rows


def _repetitive(batch: pa.RecordBatch) -> list[str]:
    """Columns with few different values in the first rows; for others, making a dictionary takes time for nothing."""
    first = batch.slice(0, reader.BATCH_ROWS)
    named = zip(first.schema.names, first.columns, strict=True)
    return [name for name, column in named if pc.count_distinct(column).as_py() <= first.num_rows // 4]


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


def is_table(path: Path) -> bool:
    """Whether a file is called like a table that can be written."""
    return path.name.lower().endswith((".tsv", ".tsv.gz", ".parquet"))


def table_suffix(path: Path) -> str:
    """`.tsv`, `.gz` or `.parquet`; InputError for another suffix."""
    name = path.name.lower()
    for ending, suffix in ((".tsv.gz", ".gz"), (".tsv", ".tsv"), (".parquet", ".parquet")):
        if name.endswith(ending):
            return suffix
    raise InputError(f"{path}: the name must end in .tsv, .tsv.gz or .parquet")
