"""Files of tables: TSV and CSV (plain, gzip or zstd), Parquet and AnnData, read in batches as AIRR fields."""

import csv
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hpcvdj.errors import InputError, choices
from hpcvdj.repertoires.batches import as_strings
from hpcvdj.repertoires.formats import (
    AIRR,
    BY_HEADER,
    REASON,
    Opening,
    Translation,
    format_of,
    may_lack_from,
    names_of_headerless,
)
from hpcvdj.repertoires.formats.steps import joined
from hpcvdj.storage.inputs import DAMAGE, changed, packing, require_regular, unpacked

log = logging.getLogger(__name__)

BLOCK_BYTES = 16 << 20
"""Text is read in blocks of this many bytes; a line may not be longer."""

READ_BYTES = 1 << 20
"""Parquet is read from disk in blocks of this many bytes, for each column."""

PARQUET_ROWS = 1 << 17
"""Parquet is read in batches of this many rows."""

PREAMBLES = "# ", "mitcr-header"
"""How lines begin that immunarch and MiTCR write before the header."""

_PREAMBLE = 8
"""Lines that may come before the header, at most."""

NOT_TABLES = {
    b"PK\x03\x04": "a zip archive or a workbook (.xlsx); unpack it and give the tables in it, or save the sheet as "
    "tab-separated text",
    b"[{": "JSON and no table; export an AIRR table (.tsv) from the program",
    b"{": "JSON, as Vidjil and others write it, and no table; export an AIRR table (.tsv) from the program",
}
"""How files begin that are no tables, and what to give instead."""

_HEAD_BYTES = 1 << 16
_HEADER_BYTES = 1 << 20


@cache
def _say_once(text: str) -> None:
    """Log a message; the same one only once, as tables are opened more than once in a run."""
    log.info("%s", text)


class TableReader:
    """A table file: its first bytes determine its kind, its columns or `opening` its format.

    name      of the kind
    summary   for the help and the documentation
    suffixes  of the files that are taken from a folder
    perhaps   of those that are taken from a folder if a format recognises their columns
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    perhaps: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: Path, opening: Opening = BY_HEADER) -> None:
        self.path, self.opening = path, opening

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether a file with these first bytes is of this kind; tables that no kind recognises are read as text."""
        return False

    @property
    def own_columns(self) -> list[str]:
        """The file's columns; InputError if it cannot be a table."""
        raise NotImplementedError

    def own_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows with these of the file's columns, as strings."""
        raise NotImplementedError

    @property
    def recognised(self) -> bool:
        """Whether it certainly is a table of a format."""
        try:
            return bool(self.opening.columns) or format_of(self.own_columns, self.opening, str(self.path)) is not None
        except InputError:
            return False

    @cached_property
    def translation(self) -> Translation | None:
        """What its columns are as AIRR fields; None if they are that already."""
        place = f"{self.path}, line 1"
        kind = format_of(self.own_columns, self.opening, place)
        if kind is not None and kind.name != AIRR and self.opening.format is None:
            _say_once(f"{self.path}: read as {kind.summary}")
        return Translation.of(self.own_columns, self.opening, place, self._first_rows)

    def _first_rows(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        return next(self.own_batches(list(columns)), None)

    @property
    def columns(self) -> list[str]:
        """What it can be read as: the AIRR fields that it has, then its other columns."""
        return self.translation.columns if self.translation else self.own_columns

    @property
    def explains(self) -> bool:
        """Whether it has a column `REASON`, too."""
        return self.translation is not None and self.translation.explains

    @property
    def known_rows(self) -> int | None:
        """The number of data rows, if the file says it."""
        return None

    def require(self, columns: Sequence[str]) -> None:
        """Raise InputError unless the table has these `columns`, each once."""
        missing = [name for name in columns if name not in self.columns and not (self.explains and name == REASON)]
        if missing:
            raise InputError(self._missing_message(missing))
        repeated = next((name for name in columns if self.columns.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"{self.path}, line 1: duplicate column {repeated}; rename one of them")

    def _missing_message(self, missing: list[str]) -> str:
        message = f"{self.path}, line 1: no column {', '.join(missing)}"
        for delimiter, word in ((";", "semicolons"), (" ", "blanks")):
            if len(self.columns) == 1 and delimiter in self.columns[0]:
                return f"{message}; its columns are separated by {word}, as some spreadsheets do: save it with tabs"
        if missing == ["junction"] and "cdr3" in self.columns:
            return f"{message}; --sequence-field cdr3 reads the column cdr3"
        renamed = ",".join(f"{name}=COLUMN" for name in missing)
        return f"{message}; --columns {renamed} says which they are (this table has {', '.join(self.columns[:12])})"

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as batches of string columns: all columns, or `columns` in that order.

        InputError names the file, the place and the remedy; memory does not grow with the file.
        """
        wanted = self.columns if columns is None else list(columns)
        self.require(wanted)
        return self._translated(self.own_batches(self._sources(wanted)), wanted)

    def _sources(self, wanted: Sequence[str]) -> list[str]:
        return self.translation.sources(wanted) if self.translation else list(wanted)

    def _translated(
        self, batches: Iterable[pa.RecordBatch], wanted: Sequence[str], first_row: int = 0
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self.translation.apply(batch, wanted, first_row) if self.translation else batch
            first_row += batch.num_rows

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
    def own_columns(self) -> list[str]:
        return list(self._metadata.schema.to_arrow_schema().names)

    @property
    def known_rows(self) -> int:
        return int(self._metadata.num_rows)

    def own_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        return self._of_row_groups(columns, range(self.known_rows))

    def ranges(self, columns: Sequence[str], ranges: Sequence[range]) -> Iterator[Iterable[pa.RecordBatch]]:
        """Only the row groups that have the rows are read."""
        self.require(columns)
        own = self._sources(columns)
        return (self._translated(self._of_row_groups(own, rows), columns, rows.start) for rows in ranges)

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


class AnnDataReader(TableReader):
    """AnnData with chains of cells, as scirpy 0.13 and later have them: `obsm["airr"]`, cells x chains x AIRR fields.

    Rows are the chains, cell after cell.  `cell_id` is the cell's name; `sequence_id`, where a chain has none, that
    and the number of the chain.
    """

    name = "anndata"
    summary = (
        'chains of cells as scirpy stores them, in `obsm["airr"]` (of the modality `airr`, of MuData); needs '
        "hpcvdj[anndata]"
    )
    suffixes = ()
    perhaps = (".h5ad", ".h5mu")

    GROUPS = "obsm/airr", "mod/airr/obsm/airr"
    """Where AnnData and MuData have the chains."""

    @staticmethod
    def recognises(head: bytes) -> bool:
        return head.startswith(b"\x89HDF\r\n\x1a\n")

    @property
    def recognised(self) -> bool:
        try:
            with h5py.File(self.path) as file:
                return any(group in file for group in self.GROUPS)
        except OSError:
            return False

    @cached_property
    def _rows(self) -> pa.Table:
        """All chains."""
        try:
            with h5py.File(self.path) as file:
                if "hpcvdj" in str(file.attrs.get("format")):
                    raise InputError(f"{self.path}: a result of hpcvdj, not a table; give the table that was computed")
                group = next((group for group in self.GROUPS if group in file), None)
                if group is None:
                    raise InputError(
                        f'{self.path}: an HDF5 file without obsm["airr"], where scirpy 0.13 and later store chains; '
                        "write an AIRR table with scirpy.io.write_airr"
                    )
                return self._chains(file[group], file[group.replace("obsm/airr", "obs")])
        except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
            raise InputError(f"{self.path}: not a readable AnnData file ({_first_line(error)})") from None

    def _chains(self, airr: Any, obs: Any) -> pa.Table:
        try:
            import awkward as ak
            from anndata.io import read_elem
        except ImportError:
            raise InputError(f"{self.path}: AnnData needs anndata and awkward; install hpcvdj[anndata]") from None
        array, cells = read_elem(airr), np.asarray(read_elem(obs[obs.attrs["_index"]])).astype(str)
        chains = ak.to_numpy(ak.num(array, axis=1)).astype(np.int64)
        if len(chains) != len(cells):
            raise ValueError(f"{len(cells)} cells, chains of {len(chains)}")
        number = np.arange(chains.sum()) - np.repeat(np.cumsum(chains) - chains, chains) + 1
        cell = pa.array(np.repeat(cells, chains).tolist(), pa.large_string())
        flat = ak.flatten(array, axis=1)
        fields = {name: ak.to_arrow(flat[name], extensionarray=False) for name in ak.fields(flat)}
        nested = [name for name, column in fields.items() if pa.types.is_nested(column.type)]
        table = as_strings(pa.RecordBatch.from_pydict({k: v for k, v in fields.items() if k not in nested}))
        own = dict(zip(table.schema.names, table.columns, strict=True))
        made = joined(cell, pa.array(number.astype(str), pa.large_string()))
        ids = own.get("sequence_id", made)
        return pa.table({"sequence_id": pc.if_else(pc.equal(ids, ""), made, ids), "cell_id": cell} | {
            name: column for name, column in own.items() if name not in ("sequence_id", "cell_id")
        })  # fmt: skip

    @property
    def own_columns(self) -> list[str]:
        return list(self._rows.column_names)

    @property
    def known_rows(self) -> int:
        return int(self._rows.num_rows)

    def own_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._rows.select(columns).to_batches(max_chunksize=PARQUET_ROWS)


class _Filled(io.RawIOBase):
    """A text table, of which short rows get their missing delimiters; a last line that is cut short stays so.

    needed  the place of the column in which a short row has no value
    """

    def __init__(self, stream: Any, delimiter: str, columns: int, needed: int) -> None:
        super().__init__()
        self._delimiter, self._columns, self._needed = delimiter.encode(), columns, needed
        self._blocks, self._left = self._filled(stream), memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into `buffer`."""
        if not self._left:
            self._left = memoryview(next(self._blocks, b""))
        read = min(len(buffer), len(self._left))
        buffer[:read], self._left = self._left[:read], self._left[read:]
        return read

    def _filled(self, stream: Any) -> Iterator[bytes]:
        rest = b""
        while block := stream.read(READ_BYTES):
            data = rest + block
            end = data.rfind(b"\n") + 1
            rest = data[end:]
            if end:
                yield self._with_delimiters(data[:end])
            if len(rest) > BLOCK_BYTES:
                yield rest
                rest = b""
        yield rest

    def _with_delimiters(self, lines: bytes) -> bytes:
        values = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(values == ord("\n"))
        upto = np.searchsorted(np.flatnonzero(values == ord(self._delimiter)), ends)
        counted = np.diff(upto, prepend=0)
        parts, last = [], 0
        for row in np.flatnonzero(counted < self._columns - 1).tolist():
            first, end = int(ends[row - 1]) + 1 if row else 0, int(ends[row])
            end -= lines[first:end].endswith(b"\r")
            cells = lines[first:end].split(self._delimiter)
            if end > first and (len(cells) <= self._needed or not cells[self._needed]):
                parts += [lines[last:end], self._delimiter * (self._columns - len(cells))]
                last = end
        return b"".join([*parts, lines[last:]])


@dataclass(frozen=True)
class _Layout:
    """How a text table is laid out: `skipped` lines come before its rows."""

    columns: list[str]
    delimiter: str
    quoted: bool
    skipped: int
    needed: int | None = None
    """The place of the column without whose value a row may be short."""


class TextReader(TableReader):
    """Tab- or comma-separated text, plain, gzip or zstd: any file that no other reader recognises.

    Values may be quoted if the columns are separated by commas, or if the header is quoted.
    """

    name = "text"
    summary = "tab- or comma-separated UTF-8 text, plain, gzip or zstd, lines of at most 16 MiB"
    suffixes = (".tsv.gz", ".tsv.zst", ".tsv")
    perhaps = tuple(f".{ending}{packed}" for packed in (".gz", ".zst", "") for ending in ("csv", "txt", "tab"))

    @cached_property
    def _layout(self) -> _Layout:
        lines = self._first_lines()
        skipped = next((k for k, line in enumerate(lines) if not line.startswith(PREAMBLES)), len(lines))
        header = lines[skipped] if skipped < len(lines) else ""
        delimiter = "\t" if "\t" in header or "," not in header else ","
        quoted = delimiter == "," or '"' in header
        values = _values(header, delimiter, quoted=quoted)
        columns = names_of_headerless(values, self.opening)
        if columns is not None:
            return _Layout(columns, delimiter, quoted, skipped)
        columns = [value.strip() for value in values]
        lacked = may_lack_from(columns, self.opening) if not quoted else None
        return _Layout(columns, delimiter, quoted, skipped + 1, columns.index(lacked) if lacked else None)

    def _stream(self) -> Any:
        """The bytes of the file, without packing, in rows as long as Arrow needs them."""
        stream, layout = unpacked(self.path), self._layout
        if layout.needed is None:
            return stream
        return io.BufferedReader(_Filled(stream, layout.delimiter, len(layout.columns), layout.needed))

    def _first_lines(self) -> list[str]:
        """The first lines, at least up to the header."""
        try:
            with unpacked(self.path) as stream:
                head = stream.read(_HEADER_BYTES)
        except DAMAGE as error:
            raise self._damaged(error) from None
        fault = next((text for magic, text in NOT_TABLES.items() if head.startswith(magic)), None)
        if fault is not None:
            raise InputError(f"{self.path}: {fault}")
        lines = head.splitlines()
        if len(head) == _HEADER_BYTES and len(lines) < 2:
            raise InputError(f"{self.path}, line 1: longer than {_HEADER_BYTES >> 10:,} KiB; is this a text table?")
        if not lines or not lines[0].strip():
            raise InputError(f"{self.path}: the file is empty; a table starts with a line of column names")
        if b"\0" in lines[0]:
            raise InputError(f"{self.path}: a binary file; give a text table or Parquet")
        try:
            # A later line may be cut within a letter, and is checked when it is read.
            return [lines[0].decode("utf-8-sig"), *(line.decode(errors="replace") for line in lines[1 : _PREAMBLE + 1])]
        except UnicodeDecodeError:
            raise InputError(f"{self.path}, line 1: not UTF-8; save the table as UTF-8, or give Parquet") from None

    @property
    def own_columns(self) -> list[str]:
        return self._layout.columns

    @property
    def lines_before_rows(self) -> int:
        """The lines before the first data row: the header, if there is one, and what comes before it."""
        return self._layout.skipped

    def own_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        def stream() -> pa.NativeFile:
            # Arrow's own gzip refuses streams that are padded with zeros.
            plain = packing(self.path) is None and self._layout.needed is None
            return pa.OSFile(str(self.path)) if plain else pa.PythonFile(self._stream(), "r")

        return self._parsed(columns, stream)

    def _first_rows(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        # Arrow reads many blocks ahead: it gets the first ones only.
        try:
            with self._stream() as stream:
                head = stream.read(_HEADER_BYTES)
        except DAMAGE as error:
            raise self._damaged(error) from None
        lines = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1] if len(head) == _HEADER_BYTES else head
        return next(self._parsed(list(columns), lambda: pa.BufferReader(lines)), None)

    def _parsed(self, columns: list[str], stream_of: Callable[[], pa.NativeFile]) -> Iterator[pa.RecordBatch]:
        layout = self._layout
        try:
            with stream_of() as stream:
                yield from pacsv.open_csv(
                    stream,
                    read_options=pacsv.ReadOptions(
                        block_size=BLOCK_BYTES, column_names=layout.columns, skip_rows=layout.skipped
                    ),
                    parse_options=pacsv.ParseOptions(
                        delimiter=layout.delimiter, quote_char='"' if layout.quoted else False
                    ),
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
        with self._stream() as stream:
            for number, line in enumerate(iter(lambda: stream.readline(BLOCK_BYTES + 1), b""), start=1):
                if len(line) > BLOCK_BYTES:
                    return f"line {number}: longer than {BLOCK_BYTES >> 20} MiB; is this a text table?"
                try:
                    text = line.decode().removesuffix("\n").removesuffix("\r")
                except UnicodeDecodeError:
                    return f"line {number}: not UTF-8; convert the file to UTF-8"
                if "\r" in text:
                    return f"line {number}: has a carriage return within the line; remove it"
                values = len(_values(text, self._layout.delimiter, quoted=self._layout.quoted))
                if values != len(self.own_columns) and text and number > self._layout.skipped:
                    wanted = len(self.own_columns)
                    return f"line {number}: {values} values for {wanted} columns; each column needs a value"
        return f"not a readable table ({_first_line(error)[:160]})"

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path}: the {packing(self.path)} stream is damaged or cut short ({_first_line(error)}); copy or "
            "compress it again"
        )


def _values(line: str, delimiter: str, *, quoted: bool) -> list[str]:
    if not quoted:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter), [])


def open_table(path: Path | str, opening: Opening = BY_HEADER) -> TableReader:
    """The reader of a table file; InputError if the file cannot be read."""
    path = Path(path)
    head = _head(path)
    kind = next((kind for kind in choices(TableReader).values() if kind.recognises(head)), TextReader)
    return kind(path, opening)


def table_suffixes() -> tuple[str, ...]:
    """How a folder's tables are distinguished from its other files."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.suffixes)


def possible_suffixes() -> tuple[str, ...]:
    """Those of a folder's files that may be tables, or something else."""
    return tuple(suffix for kind in choices(TableReader).values() for suffix in kind.perhaps)


def read_batches(
    path: Path | str, columns: Sequence[str] | None = None, opening: Opening = BY_HEADER
) -> Iterator[pa.RecordBatch]:
    """The rows of a table file: `open_table` and `TableReader.batches`."""
    return open_table(path, opening).batches(columns)


def _head(path: Path) -> bytes:
    require_regular(path, "file", "name a text table (plain, gzip or zstd) or Parquet")
    try:
        with open(path, "rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
