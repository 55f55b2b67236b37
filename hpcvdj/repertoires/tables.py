"""AIRR tables in and out: TSV (plain or gzip) and Parquet files, pandas and pyarrow tables, in batches.

All values travel as pyarrow record batches of string columns, as in AIRR TSV: a missing value is the empty string, a
boolean is T or F.
"""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hpcvdj.errors import InputError, choices
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.inputs import DAMAGE, State, changed, file_state, require_regular, unpacked

T = TypeVar("T")

BLOCK_BYTES = 16 << 20
"""TSV is read in blocks of this many bytes; a line may not be longer."""

READ_BYTES = 1 << 20
"""Parquet is read from disk in blocks of this many bytes, for each column."""

PARQUET_ROWS = 1 << 17
"""Parquet is read in batches of this many rows."""

_HEAD_BYTES = 1 << 16
_HEADER_BYTES = 1 << 20


@dataclass(frozen=True)
class Table:
    """One of the tables that a run reads, or that a result counts: `rows` rows of the input, from `first_row` on.

    sha256         digest of the file's bytes; empty until it is known
    repertoire_id  the repertoire of rows that do not name theirs
    unnamed        how many rows do not
    repertoires    rows of each of its repertoires, in the order of the table
    state          the file's state before anything was read
    """

    path: Path
    sha256: str = ""
    repertoire_id: str = ""
    first_row: int = 0
    rows: int = 0
    unnamed: int = 0
    repertoires: dict[str, int] = field(default_factory=dict)
    state: State | None = None


def table_at(path: Path) -> Table:
    """The table in a file, of which nothing was read yet."""
    return Table(path, repertoire_id=repertoire_name(path), state=file_state(path))


def repertoire_name(path: Path) -> str:
    """A repertoire's file name without the suffix of a table."""
    name = path.name
    return next((name.removesuffix(suffix) for suffix in table_suffixes() if name.endswith(suffix)), name) or name


class TableReader:
    """A table file; its first bytes determine its kind.

    name      of the kind
    summary   for the help and the documentation
    suffixes  of the files that are taken from a folder
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether a file with these first bytes is of this kind; tables that no kind recognises are read as text."""
        return False

    @property
    def columns(self) -> list[str]:
        """The table's columns; InputError if it cannot be a table."""
        raise NotImplementedError

    @property
    def known_rows(self) -> int | None:
        """The number of data rows, if the file says it."""
        return None

    def require(self, columns: Sequence[str]) -> None:
        """Raise InputError unless the table has these `columns`, each once."""
        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise InputError(self._missing_message(missing))
        repeated = next((name for name in columns if self.columns.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"{self.path}, line 1: duplicate column {repeated}; rename one of them")

    def _missing_message(self, missing: list[str]) -> str:
        message = f"{self.path}, line 1: no column {', '.join(missing)}"
        for delimiter, word in ((",", "commas"), (";", "semicolons"), (" ", "blanks")):
            if len(self.columns) == 1 and delimiter in self.columns[0]:
                return f"{message}; its columns are separated by {word}, those of AIRR tables by tabs: convert the file"
        if missing == ["junction"] and "cdr3" in self.columns:
            return f"{message}; --sequence-field cdr3 reads the column cdr3"
        return f"{message}; rename its columns to the AIRR names (this table has {', '.join(self.columns[:12])})"

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as batches of string columns: all columns, or `columns` in that order.

        InputError names the file, the place and the remedy; memory does not grow with the file.
        """
        wanted = self.columns if columns is None else list(columns)
        self.require(wanted)
        return self._batches(wanted)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError

    def ranges(self, columns: Sequence[str], ranges: Sequence[range]) -> Iterator[Iterable[pa.RecordBatch]]:
        """The batches of each of some ranges of data rows, which are ascending and do not overlap.

        A file that can only be read from its beginning is read once.
        """
        position, held = 0, list[pa.RecordBatch]()
        left = list(ranges)
        for batch in self.batches(columns):
            last = position + batch.num_rows
            while left and left[0].start < last:
                first, stop = max(left[0].start, position), min(left[0].stop, last)
                held.append(batch.slice(first - position, stop - first))
                if stop < left[0].stop:
                    break
                left.pop(0)
                yield held
                held = []
            position = last
            if not left:
                return
        raise changed(self.path)


PARQUET_DAMAGE = ValueError, OSError, pa.ArrowException
"""What reading a damaged Parquet file raises."""


class ParquetReader(TableReader):
    """Parquet: columns of any type except binary and nested ones."""

    name = "parquet"
    summary = "columns of any type except binary and nested ones are read as text"
    suffixes = (".parquet",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        return head.startswith(b"PAR1")

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
        try:
            return pq.read_metadata(self.path)
        except PARQUET_DAMAGE as error:
            raise InputError(f"{self.path}: not a readable Parquet file ({_first_line(error)})") from None

    @cached_property
    def columns(self) -> list[str]:
        return list(self._metadata.schema.to_arrow_schema().names)

    @property
    def known_rows(self) -> int:
        return int(self._metadata.num_rows)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        return self._of_row_groups(columns, range(self.known_rows))

    def ranges(self, columns: Sequence[str], ranges: Sequence[range]) -> Iterator[Iterable[pa.RecordBatch]]:
        """Only the row groups that have the rows are read."""
        self.require(columns)
        return (self._of_row_groups(list(columns), rows) for rows in ranges)

    def _of_row_groups(self, columns: list[str], rows: range) -> Iterator[pa.RecordBatch]:
        sizes = [self._metadata.row_group(k).num_rows for k in range(self._metadata.num_row_groups)]
        starts = [0, *accumulate(sizes)]
        groups = [k for k in range(len(sizes)) if starts[k] < rows.stop and starts[k + 1] > rows.start]
        position = starts[groups[0]] if groups else rows.start
        try:
            # By default pyarrow reads a row group at once, and keeps all that it read until the file is closed.
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=READ_BYTES) as file:
                for batch in file.iter_batches(PARQUET_ROWS, row_groups=groups, columns=columns):
                    low, high = max(rows.start - position, 0), min(rows.stop - position, batch.num_rows)
                    position += batch.num_rows
                    if low < high:
                        yield as_strings(batch.slice(low, high - low).select(columns))
        except PARQUET_DAMAGE as error:
            raise InputError(f"{self.path}: the Parquet file is damaged ({_first_line(error)})") from None


class TsvReader(TableReader):
    """Tab-separated text, plain or gzip: any file that no other reader recognises."""

    name = "tsv"
    summary = "tab-separated UTF-8 text without quoting, plain or gzip, lines of at most 16 MiB"
    suffixes = (".tsv.gz", ".tsv")

    @cached_property
    def _gzip(self) -> bool:
        return _head(self.path).startswith(b"\x1f\x8b")

    @cached_property
    def columns(self) -> list[str]:
        try:
            with unpacked(self.path) as stream:
                line = stream.readline(_HEADER_BYTES)
        except DAMAGE as error:
            raise self._damaged(error) from None
        if len(line) == _HEADER_BYTES and not line.endswith(b"\n"):
            raise InputError(f"{self.path}, line 1: longer than {_HEADER_BYTES >> 10:,} KiB; is this a text table?")
        if not line.strip():
            raise InputError(f"{self.path}: the file is empty; an AIRR table starts with a line of column names")
        if b"\0" in line:
            raise InputError(f"{self.path}: a binary file; give an AIRR TSV (plain or gzip) or Parquet")
        try:
            text: str = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{self.path}, line 1: not UTF-8; give an AIRR TSV (plain or gzip) or Parquet") from None
        return text.rstrip("\r\n").split("\t")

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        try:
            # Arrow's own gzip refuses streams that are padded with zeros.
            with pa.PythonFile(unpacked(self.path), "r") if self._gzip else pa.OSFile(str(self.path)) as stream:
                yield from pacsv.open_csv(
                    stream,
                    read_options=pacsv.ReadOptions(block_size=BLOCK_BYTES, column_names=self.columns, skip_rows=1),
                    parse_options=pacsv.ParseOptions(delimiter="\t", quote_char=False),
                    convert_options=pacsv.ConvertOptions(
                        include_columns=columns,
                        column_types=dict.fromkeys(columns, pa.string()),
                        strings_can_be_null=False,
                    ),
                )
        except pa.ArrowInvalid as error:
            # The second message is for a header line that nothing follows, not even its end.
            if "Empty CSV" in str(error) or "Could not skip initial" in str(error):
                return
            raise InputError(f"{self.path}: {self._fault(error)}") from None
        except DAMAGE as error:
            raise self._damaged(error) from None

    def _fault(self, error: Exception) -> str:
        """Where a table that Arrow could not read is wrong, by file line (the header is line 1), and the remedy."""
        # Arrow reads blocks in parallel and does not number their lines, so read the file once more.
        with unpacked(self.path) as stream:
            for number, line in enumerate(iter(lambda: stream.readline(BLOCK_BYTES + 1), b""), start=1):
                if len(line) > BLOCK_BYTES:
                    return f"line {number}: longer than {BLOCK_BYTES >> 20} MiB; is this a text table?"
                try:
                    text = line.decode().removesuffix("\n").removesuffix("\r")
                except UnicodeDecodeError:
                    return f"line {number}: not UTF-8; convert the file to UTF-8"
                if "\r" in text:
                    return f"line {number}: has a carriage return within the line; remove it"
                values = text.count("\t") + 1
                if values != len(self.columns) and text:
                    return f"line {number}: {values} values for {len(self.columns)} columns; each column needs a value"
        return f"not a readable tab-separated table ({_first_line(error)[:160]})"

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path}: the gzip stream is damaged or cut short ({_first_line(error)}); copy or compress it again"
        )


def open_table(path: Path | str) -> TableReader:
    """The reader of a table file; InputError if the file cannot be read."""
    path = Path(path)
    head = _head(path)
    kind = next((kind for kind in choices(TableReader).values() if kind.recognises(head)), TsvReader)
    return kind(path)


def table_suffixes() -> tuple[str, ...]:
    """How a folder's tables are distinguished from its other files."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.suffixes)


def read_batches(path: Path | str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a table file: `open_table` and `TableReader.batches`."""
    return open_table(path).batches(columns)


def _head(path: Path) -> bytes:
    require_regular(path, "file", "name an AIRR TSV (plain or gzip) or Parquet")
    try:
        with open(path, "rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def table_batches(table: Any, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a pandas DataFrame or a pyarrow Table as `read_batches` returns those of a file."""
    arrow = as_arrow(table)
    wanted = list(columns) if columns is not None else arrow.column_names
    missing = [name for name in wanted if name not in arrow.column_names]
    if missing:
        raise InputError(
            f"the table has no column {', '.join(missing)}; rename its columns to the AIRR names "
            f"(it has {', '.join(map(str, arrow.column_names[:12]))})"
        )
    try:
        yield from map(as_strings, arrow.select(wanted).to_batches(max_chunksize=PARQUET_ROWS))
    except pa.ArrowInvalid as error:
        raise InputError(f"the table has a value that is not text ({error}); convert it to UTF-8") from None


def as_arrow(table: Any) -> pa.Table:
    """A pyarrow Table of a pandas DataFrame, a pyarrow Table or any object with the Arrow stream interface."""
    if isinstance(table, pa.Table):
        return table
    if type(table).__module__.partition(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(table, preserve_index=False)
        except pa.ArrowException as error:
            message = " ".join(str(text) for text in error.args)
            raise InputError(f"the table has a column of mixed types ({message}); convert it to text") from None
    if hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    raise InputError(f"cannot read junctions from a {type(table).__name__}; give a pandas or pyarrow table")


def with_columns(batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """`batch` with columns beside its own, in the place of those of the same name."""
    return pa.RecordBatch.from_pydict(dict(zip(batch.schema.names, batch.columns, strict=True)) | columns)


def as_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every column as AIRR TSV writes it: text, T or F, the empty string for null."""
    return pa.RecordBatch.from_arrays([_as_text(column) for column in batch.columns], names=batch.schema.names)


def _as_text(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = pc.if_else(column, "T", "F")
    if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        raise InputError(f"a column of type {column.type} cannot be read as text; drop or convert it")
    text = column.cast(pa.large_string()).fill_null("")
    # Parquet files and tables in memory may hold any bytes as text.
    text.validate(full=True)
    return text


def write_table(target: Path, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> int:
    """Write batches of one schema as an AIRR table, by the suffix of its name; returns the number of rows.

    InputError for another suffix, and as `atomic_path` raises it.
    """
    suffix = table_suffix(target)
    rows = 0
    parquet: pq.ParquetWriter | None = None
    with atomic_path(target, overwrite=overwrite) as temporary, ExitStack() as stack:
        stream: Any = stack.enter_context(open(temporary, "wb"))
        if suffix == ".gz":
            stream = stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0))
        for number, batch in enumerate(batches):
            rows += batch.num_rows
            if suffix == ".parquet":
                parquet = parquet or stack.enter_context(
                    pq.ParquetWriter(stream, batch.schema, use_dictionary=_repetitive(batch))
                )
                parquet.write_batch(batch)
                continue
            if number == 0:
                stream.write("\t".join(batch.schema.names).encode() + b"\n")
            if batch.num_rows:
                stream.write(_lines(as_strings(batch)))
    return rows


def _repetitive(batch: pa.RecordBatch) -> list[str]:
    """Columns with few different values; for others, making a dictionary takes time and ends without one."""
    named = zip(batch.schema.names, batch.columns, strict=True)
    return [name for name, column in named if pc.count_distinct(column).as_py() <= batch.num_rows // 4]


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The items; while one is worked on, another thread makes the next."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, source, end)
        while (item := following.result()) is not end:
            following = thread.submit(next, source, end)
            yield cast(T, item)


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
