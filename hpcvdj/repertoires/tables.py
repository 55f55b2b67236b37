"""AIRR tables in and out: TSV (plain or gzip) and Parquet files, pandas and pyarrow tables, in batches.

Everything travels as pyarrow record batches whose columns are strings, as AIRR TSV has them: a missing value
is the empty string, a boolean T or F.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hpcvdj.errors import InputError
from hpcvdj.storage import require_text

BLOCK_BYTES = 16 << 20
"""TSV is read in blocks of this many bytes; a line may not be longer."""

READ_BYTES = 1 << 20
"""Parquet is read from disk in blocks of this many bytes, for each column."""

PARQUET_ROWS = 1 << 17
"""Parquet is read in batches of this many rows."""

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_state(path: Path) -> tuple[int, ...] | None:
    """What changes when a file is written or replaced; None if it cannot be asked for."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes; InputError if it cannot be read."""
    return _magic(path).startswith(_PARQUET)


def parquet_rows(path: Path) -> int | None:
    """Data rows of a Parquet file; None of a file that is none."""
    if not path.is_file() or not is_parquet(path):
        return None
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({_first_line(error)})") from None


def open_parquet(path: Path) -> pq.ParquetFile:
    """A Parquet file to be read in batches, of which memory holds little more than one."""
    # By itself pyarrow reads a row group at once, and holds all that it has read until the file is closed.
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=READ_BYTES)


def column_names(path: Path) -> list[str]:
    """The columns of a table file; InputError if it cannot be one."""
    magic = _magic(path)
    if magic.startswith(_PARQUET):
        try:
            return list(pq.read_schema(path).names)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path}: not a readable Parquet file ({_first_line(error)})") from None
    return _tsv_header(path)


def require_columns(path: Path, columns: Sequence[str]) -> list[str]:
    """The columns of a table file; InputError unless `columns` are among them."""
    names = column_names(path)
    missing = [name for name in columns if name not in names]
    if missing:
        raise InputError(_missing_message(path, names, missing))
    return names


def read_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a table file as batches of string columns: all of them, or `columns` in that order.

    The kind of file is told by its first bytes, not by its name.  InputError names the file, the place and the
    remedy; memory does not grow with the file.
    """
    path = Path(path)
    names = require_columns(path, columns or ())
    wanted = list(columns) if columns is not None else names
    if _magic(path).startswith(_PARQUET):
        yield from _parquet_batches(path, wanted)
    else:
        yield from _tsv_batches(path, wanted)


def table_batches(table: Any, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a pandas DataFrame or a pyarrow Table as `read_batches` gives those of a file."""
    arrow = as_arrow(table)
    wanted = list(columns) if columns is not None else arrow.column_names
    missing = [name for name in wanted if name not in arrow.column_names]
    if missing:
        raise InputError(
            f"the table has no column {', '.join(missing)}; rename its columns to the AIRR names "
            f"(it has {', '.join(map(str, arrow.column_names[:12]))})"
        )
    yield from map(as_strings, arrow.select(wanted).to_batches(max_chunksize=PARQUET_ROWS))


def as_arrow(table: Any) -> pa.Table:
    """A pyarrow Table of a pandas DataFrame, a pyarrow Table or anything with the Arrow stream interface."""
    if isinstance(table, pa.Table):
        return table
    if type(table).__module__.partition(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(table, preserve_index=False)
        except pa.ArrowException as error:
            said = " ".join(str(text) for text in error.args)
            raise InputError(f"the table has a column of mixed types ({said}); make it text") from None
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise InputError(f"cannot read junctions from a {type(table).__name__}; give a pandas or pyarrow table")


def as_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every column as AIRR TSV writes it: text, T/F, the empty string for null."""
    return pa.RecordBatch.from_arrays([_as_text(column) for column in batch.columns], names=batch.schema.names)


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "T", "F")
    if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        raise InputError(f"a column holds {column.type}, which AIRR TSV cannot carry; drop or convert it")
    return column.cast(pa.large_string()).fill_null("")


def _magic(path: Path) -> bytes:
    require_text(path.absolute())
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: is no plain file; a table is read more than once: store it first")
        with open(path, "rb") as stream:
            return stream.read(4)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _tsv_header(path: Path) -> list[str]:
    try:
        with _open_plain(path) as stream:
            line = stream.readline(1 << 20)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: the gzip stream is damaged ({error}); copy or compress it again") from None
    if not line.strip():
        raise InputError(f"{path}: the file is empty; an AIRR table starts with a line of column names")
    if b"\0" in line:
        raise InputError(f"{path}: not a text table but a binary file; give an AIRR TSV (plain or gzip) or Parquet")
    try:
        text: str = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}, line 1: not UTF-8 text; give an AIRR TSV (plain or gzip) or Parquet") from None
    return text.rstrip("\r\n").split("\t")


def _missing_message(path: Path, names: list[str], missing: list[str]) -> str:
    what = f"{path}, line 1: no column {', '.join(missing)}"
    for delimiter, word in ((",", "commas"), (";", "semicolons"), (" ", "blanks")):
        if len(names) == 1 and delimiter in names[0]:
            return f"{what}; the columns are separated by {word}: AIRR tables are tab-separated, convert the file"
    remedy = "--sequence-field cdr3 reads that column" if missing == ["junction"] and "cdr3" in names else ""
    remedy = remedy or f"an AIRR rearrangement table has it (this one has {', '.join(names[:12])})"
    return f"{what}; {remedy}"


def _tsv_batches(path: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    names = _tsv_header(path)
    repeated = [name for name in wanted if names.count(name) > 1]
    if repeated:
        raise InputError(f"{path}, line 1: column {repeated[0]} stands there twice; rename one of them")
    compression = "gzip" if _magic(path).startswith(_GZIP) else None
    try:
        with pa.input_stream(str(path), compression=compression) as stream:
            reader = pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, column_names=names, skip_rows=1),
                parse_options=pacsv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=pacsv.ConvertOptions(
                    include_columns=wanted,
                    column_types=dict.fromkeys(wanted, pa.string()),
                    strings_can_be_null=False,
                ),
            )
            yield from reader
    except pa.ArrowInvalid as error:
        # The second: of a header line that nothing follows, not even its end.
        if "Empty CSV" in str(error) or "Could not skip initial" in str(error):
            return
        raise InputError(f"{path}: {_place(path, len(names), error)}") from None
    except OSError as error:
        raise InputError(
            f"{path}: the gzip stream is damaged or cut short ({_first_line(error)}); copy or compress it again"
        ) from None


def _place(path: Path, columns: int, error: Exception) -> str:
    """Where a table that Arrow could not read is wrong, by file line (the header is line 1), and the remedy."""
    # Arrow reads blocks in parallel and does not number their lines, so look once more.
    with _open_plain(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                values = line.decode().rstrip("\r\n").count("\t") + 1
            except UnicodeDecodeError:
                return f"line {number}: not UTF-8 text; convert the file to UTF-8"
            if len(line) > BLOCK_BYTES:
                return f"line {number}: longer than {BLOCK_BYTES >> 20} MiB; is this a text table?"
            if values != columns and line.strip():
                return f"line {number}: {values} values for {columns} columns; every line needs one per column"
    return f"not a readable tab-separated table ({_first_line(error)[:160]})"


def _open_plain(path: Path) -> Any:
    return gzip.open(path, "rb") if _magic(path).startswith(_GZIP) else open(path, "rb")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _parquet_batches(path: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        with open_parquet(path) as file:
            for batch in file.iter_batches(batch_size=PARQUET_ROWS, columns=wanted):
                yield as_strings(batch.select(wanted))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: the Parquet file is damaged ({_first_line(error)})") from None


class TableWriter:
    """Writes record batches of one schema to an AIRR TSV (`.tsv`, `.tsv.gz`) or Parquet (`.parquet`) file object."""

    def __init__(self, stream: BinaryIO, suffix: str) -> None:
        self._parquet: pq.ParquetWriter | None = None
        self._as_parquet = suffix == ".parquet"
        self._stream: Any = gzip.GzipFile("", "wb", 6, stream, mtime=0) if suffix == ".gz" else stream
        self._raw = stream
        self._header_written = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of `batch`."""
        if self._as_parquet:
            if self._parquet is None:
                self._parquet = pq.ParquetWriter(self._raw, batch.schema)
            self._parquet.write_batch(batch)
            return
        if not self._header_written:
            self._stream.write("\t".join(batch.schema.names).encode() + b"\n")
            self._header_written = True
        for line_block in _lines(as_strings(batch)):
            self._stream.write(line_block)

    def close(self) -> None:
        """Finish the file; the file object stays open."""
        if self._parquet is not None:
            self._parquet.close()
        elif self._stream is not self._raw:
            self._stream.close()


def _lines(batch: pa.RecordBatch) -> Iterable[memoryview]:
    # pyarrow.csv cannot write a quote character unquoted, which AIRR TSV does; joined columns are the very bytes.
    if not batch.num_rows:
        return []
    joined = pc.binary_join_element_wise(*batch.columns, pa.scalar("\t", pa.large_string()))
    ended = pc.binary_join_element_wise(joined, *[pa.scalar(text, pa.large_string()) for text in ("", "\n")])
    _, _, data = ended.buffers()
    return [memoryview(data)]


def table_suffix(path: Path) -> str:
    """`.tsv`, `.gz` or `.parquet`; InputError for another ending."""
    name = path.name.lower()
    for ending, suffix in ((".tsv.gz", ".gz"), (".tsv", ".tsv"), (".parquet", ".parquet")):
        if name.endswith(ending):
            return suffix
    raise InputError(f"{path}: the name must end in .tsv, .tsv.gz or .parquet")
