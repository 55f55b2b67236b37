"""The reader of text tables: TSV and CSV, plain, gzip or zstd."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from hpcvdj.errors import InputError
from hpcvdj.repertoires.formats.airr import Airr
from hpcvdj.repertoires.formats.format import names_of_headerless
from hpcvdj.repertoires.readers import reader
from hpcvdj.repertoires.readers.reader import TableReader, first_line
from hpcvdj.storage.inputs import DAMAGE, changed, packing, unpacked

BLOCK_BYTES = 16 << 20
"""Text is read in blocks of so many bytes.  A line may not be longer."""

_PREAMBLE = 100
"""The largest number of lines before the header."""

NOT_TABLES = {
    b"PK\x03\x04": "a zip archive or a workbook (.xlsx); unpack it and give the tables in it, or save the sheet as "
    "tab-separated text",
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "text in UTF-16, as some spreadsheets write; save the table as UTF-8"),
    b"BZh": "packed by bzip2; unpack it first, or pack it by gzip or zstd",
    b"\xfd7zXZ": "packed by xz; unpack it first, or pack it by gzip or zstd",
    b"[{": "JSON and no table; export an AIRR table (.tsv) from the program",
    b"{": "JSON, as Vidjil and others write it, and no table; export an AIRR table (.tsv) from the program",
}
"""The first bytes of files that are no tables, and what to give instead."""

_HEADER_BYTES = 1 << 20

_OPEN_QUOTE = "a quote that is not closed, or a carriage return within a line; remove it"


def _filled(stream: Any, delimiter: bytes, columns: int, needed: int) -> io.BufferedReader:
    """A text table with the missing delimiters of short rows.  A last line without its end does not change.

    needed  the index of a column: only rows without a value in it may be short
    """
    rest = b""

    def with_delimiters(lines: bytes) -> bytes:
        values = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(values == ord("\n"))
        upto = np.searchsorted(np.flatnonzero(values == ord(delimiter)), ends)
        delimiters = np.diff(upto, prepend=0)
        parts, last = [], 0
        for row in np.flatnonzero(delimiters < columns - 1).tolist():
            first, end = int(ends[row - 1]) + 1 if row else 0, int(ends[row])
            end -= lines[first:end].endswith(b"\r")
            cells = lines[first:end].split(delimiter)
            if end > first and (len(cells) <= needed or not cells[needed]):
                parts += [lines[last:end], delimiter * (columns - len(cells))]
                last = end
        return b"".join([*parts, lines[last:]])

    def filled(block: bytes) -> bytes:
        nonlocal rest
        data = rest + block
        end = data.rfind(b"\n") + 1 if block else 0
        lines, rest = with_delimiters(data[:end]), data[end:]
        # An empty block asks for what is left.  The end of a line that is too long is not waited for.
        if not block or len(rest) > BLOCK_BYTES:
            lines, rest = lines + rest, b""
        return lines

    return io.BufferedReader(pa.TransformInputStream(pa.PythonFile(stream, "r"), filled), reader.READ_BYTES)


class _CountedLines(io.RawIOBase):
    """A stream that counts what is read of it: lines that are not blank, and whether there are quotes."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream, self._last, self.has_quotes, self.lines = stream, b"\n", False, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = bytes(self._stream.read(size))
        self.has_quotes |= b'"' in block
        letters = np.frombuffer(self._last + block, np.uint8)
        within = (letters != ord("\n")) & (letters != ord("\r"))
        self.lines += int(np.count_nonzero(within[1:] > within[:-1]))
        self._last = block[-1:] or self._last
        return block

    def close(self) -> None:
        self._stream.close()
        super().close()


def _is_preamble(line: str) -> bool:
    """Whether a line comes before the header, as of immunarch and MiTCR.  A header with `#` has several columns."""
    return line.startswith(("# ", "mitcr-header")) or (line.startswith("#") and "\t" not in line and "," not in line)


def _names_calls(line: str) -> bool:
    """Whether a line has the names of AIRR's calls, as a header has."""
    return {"v_call", "j_call"}.issubset(re.split("[\t,]", line))


def _uncommented(lines: list[str]) -> list[str]:
    """The lines; a header of AIRR fields is without the `#` before it, unless there is another header."""
    if any(_names_calls(line) for line in lines if not line.startswith("#")):
        return lines
    bare = [line.lstrip("# ") for line in lines]
    is_header = [_names_calls(line) and re.fullmatch(r"[\w\t,]+", line) for line in bare]
    return [b if chosen else a for a, b, chosen in zip(lines, bare, is_header, strict=True)]


class TextReader(TableReader):
    """Tab- or comma-separated text, plain, gzip or zstd: any file that no other reader recognises.

    Values may be quoted.  Tabs and line ends may be within quotes only if commas separate the columns, or if the header
    is quoted.
    """

    name = "text"
    summary = "tab- or comma-separated UTF-8 text, plain, gzip or zstd, lines of at most 16 MiB"
    suffixes = (".tsv.gz", ".tsv.zst", ".tsv")
    perhaps = tuple(f".{ending}{packed}" for packed in (".gz", ".zst", "") for ending in ("csv", "txt", "tab"))

    @cached_property
    def _layout(self) -> tuple[pacsv.ReadOptions, pacsv.ParseOptions]:
        """How pyarrow reads it: names of columns, and lines before the rows; the delimiter, and quotes of values."""
        lines = _uncommented(self._first_lines())
        skipped = next((k for k, line in enumerate(lines) if not _is_preamble(line)), len(lines))
        header = lines[skipped] if skipped < len(lines) else ""
        delimiter = "\t" if "\t" in header or "," not in header else ","
        quoted = delimiter == "," or re.search('(^|\t)"', header) is not None
        parsing = pacsv.ParseOptions(
            delimiter=delimiter, quote_char='"' if quoted else False, newlines_in_values=quoted
        )
        values = _values(header, parsing)
        columns = names_of_headerless(values, self.opening)
        if columns is None:
            columns, skipped = [value.strip() for value in values], skipped + 1
        return pacsv.ReadOptions(block_size=BLOCK_BYTES, column_names=columns, skip_rows=skipped), parsing

    @cached_property
    def _needed(self) -> int | None:
        """The index of the column without whose value a row may be short; None if no row may be short."""
        columns = self.given_columns
        lacked = None if self._layout[1].quote_char else Airr.may_lack_from(columns)
        return columns.index(lacked) if lacked else None

    def _stream(self) -> Any:
        """The unpacked bytes of the file, with the missing delimiters of short rows."""
        stream = unpacked(self.path)
        if self._needed is None:
            return stream
        return _filled(stream, self._layout[1].delimiter.encode(), len(self.given_columns), self._needed)

    def _head(self, open_stream: Callable[[], Any]) -> bytes:
        try:
            with open_stream() as stream:
                return bytes(stream.read(_HEADER_BYTES))
        except DAMAGE as error:
            raise self._damaged(error) from None

    def _first_lines(self) -> list[str]:
        head = self._head(lambda: unpacked(self.path))
        fault = next((text for magic, text in NOT_TABLES.items() if head.startswith(magic)), None)
        if fault is not None:
            raise InputError(f"{self.path}: {fault}")
        lines = head.splitlines()
        if len(head) == _HEADER_BYTES and len(lines) < 2:
            raise InputError(f"{self.path}, line 1: longer than {_HEADER_BYTES >> 10:,} KiB; is this a text table?")
        if not head.strip():
            raise InputError(f"{self.path}: the file is empty; a table starts with a line of column names")
        if not lines[0].strip():
            raise InputError(f"{self.path}, line 1: is blank; a table starts with a line of column names")
        if b"\0" in lines[0]:
            raise InputError(f"{self.path}: a binary file, or text in UTF-16; give text in UTF-8, or Parquet")
        try:
            # The last line may end within a letter.  Lines are checked when they are read.
            return [lines[0].decode("utf-8-sig"), *(line.decode(errors="replace") for line in lines[1 : _PREAMBLE + 1])]
        except UnicodeDecodeError:
            raise InputError(f"{self.path}, line 1: not UTF-8; save the table as UTF-8, or give Parquet") from None

    @cached_property
    def given_columns(self) -> list[str]:
        return list(self._layout[0].column_names)

    @property
    def lines_before_rows(self) -> int:
        """The number of lines before the first data row, such as the header."""
        return int(self._layout[0].skip_rows)

    def lines(self, stream: Any, newline: str = "") -> Iterator[tuple[int, bytes]]:
        """The lines of an unpacked stream with their numbers, from 1.  Lines of one row, as quotes make them, are one.

        newline  what ends a line, as of `io.TextIOWrapper`
        """
        # Latin-1 has a letter for each byte.
        text, of_row = io.TextIOWrapper(stream, "latin-1", newline=newline), list[tuple[int, str]]()

        def each() -> Iterator[str]:
            for line in enumerate(iter(lambda: text.readline(BLOCK_BYTES + 1), ""), start=1):
                of_row.append(line)
                yield line[1]

        lines: Iterator[Any] = each()
        if self._layout[1].quote_char:
            rows = csv.reader(lines, delimiter=self._layout[1].delimiter)
            lines = chain(islice(lines, self.lines_before_rows), rows)
        try:
            while _next(lines) is not None:
                yield of_row[0][0], "".join(line for _, line in of_row).encode("latin-1")
                of_row.clear()
        except csv.Error:
            raise InputError(f"{self.path}, line {of_row[0][0]}: {_OPEN_QUOTE}") from None

    def row_name(self, row: int) -> str:
        """The line of a data row, in words.  Empty lines are no rows."""
        with self._stream() as stream:
            rows = self.lines(stream)
            numbers = (number for number, line in rows if number > self.lines_before_rows and line.strip(b"\r\n"))
            return f"line {next(islice(numbers, row, None), row + 1)}"

    def given_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if not self._layout[1].quote_char:
            # Arrow's own gzip refuses streams that are padded with zeros.
            plain = packing(self.path) is None and self._needed is None
            yield from self._parsed(
                columns, lambda: pa.OSFile(str(self.path)) if plain else pa.PythonFile(self._stream(), "r")
            )
            return
        counted, rows = _CountedLines(self._stream()), 0
        for batch in self._parsed(columns, lambda: pa.PythonFile(counted, "r")):
            rows += batch.num_rows
            yield batch
        if counted.has_quotes and counted.lines > rows + self.lines_before_rows:
            self._require_closed_quotes()

    def _require_closed_quotes(self) -> None:
        """Raise InputError for a quote that is not closed, which makes one row of several."""
        with self._stream() as stream:
            for number, line in self.lines(stream):
                text = line.decode("latin-1")
                if re.search("[\r\n]", text.rstrip("\r\n")):
                    try:
                        _next(csv.reader([text], delimiter=self._layout[1].delimiter, strict=True))
                    except csv.Error:
                        raise InputError(f"{self.path}, line {number}: {_OPEN_QUOTE}") from None

    def _first_rows(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        # Arrow reads many blocks ahead, so it gets the first bytes only.
        head = self._head(self._stream)
        if len(head) == _HEADER_BYTES:
            head = b"".join(line for _, line in list(self.lines(io.BytesIO(head)))[:-1])
        copied = pa.BufferOutputStream()
        copied.write(head)
        # Bytes of Python would be freed by a thread of Arrow, which aborts the process if that is ending just then.
        return next(self._parsed(list(columns), lambda: pa.BufferReader(copied.getvalue())), None)

    def _parsed(self, columns: list[str], stream_of: Callable[[], pa.NativeFile]) -> Iterator[pa.RecordBatch]:
        as_text = pacsv.ConvertOptions(
            include_columns=columns, column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=False
        )
        try:
            with stream_of() as stream:
                for batch in pacsv.open_csv(stream, *self._layout, as_text):
                    yield batch if self._layout[1].quote_char else _unquoted(batch)
        except pa.ArrowInvalid as error:
            # The second message is about a header line without a line end.
            if "Empty CSV" in str(error) or "Could not skip initial" in str(error):
                return
            raise InputError(f"{self.path}: {self._fault(error)}") from None
        except DAMAGE as error:
            raise self._damaged(error) from None

    def _fault(self, error: Exception) -> str:
        """The line in which a table is wrong that Arrow could not read, and the remedy."""
        wanted, skipped = len(self.given_columns), self.lines_before_rows
        # Arrow reads blocks in parallel and does not number their lines, so the file is read once more.
        with self._stream() as stream:
            for number, line in self.lines(stream, "\n"):
                if len(line) > BLOCK_BYTES:
                    return f"line {number}: longer than {BLOCK_BYTES >> 20} MiB; is this a text table?"
                try:
                    text = line.decode().removesuffix("\n").removesuffix("\r")
                except UnicodeDecodeError:
                    return f"line {number}: not UTF-8; convert the file to UTF-8"
                if "\r" in text and not self._layout[1].quote_char:
                    return f"line {number}: has a carriage return within the line; remove it"
                values = len(_values(text, self._layout[1]))
                if values != wanted and text and number > skipped:
                    return f"line {number}: {values} values for {wanted} columns; each column needs a value"
        return f"not a readable table ({first_line(error)[:160]})"

    def _damaged(self, error: Exception) -> InputError:
        try:
            packed = packing(self.path)
        except OSError:
            return changed(self.path)
        return InputError(
            f"{self.path}: the {packed} stream is damaged or cut short ({first_line(error)}); copy or compress it again"
        )


def _unquoted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The values without quotes around them, which spreadsheets put around values that have commas."""
    columns = [
        pc.if_else(
            pc.match_substring_regex(column, '^"([^"]|"")*"$'),
            pc.replace_substring(pc.utf8_slice_codeunits(column, 1, -1), '""', '"'), column,
        ) if pc.any(pc.starts_with(column, '"')).as_py() else column
        for column in batch.columns
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _next(rows: Iterator[Any]) -> Any:
    """The next row, of which csv would limit values to 131,072 letters; None after the last."""
    limit = csv.field_size_limit(BLOCK_BYTES)
    try:
        return next(rows, None)
    finally:
        csv.field_size_limit(limit)


def _values(line: str, parsing: pacsv.ParseOptions) -> list[str]:
    if not parsing.quote_char:
        return line.split(parsing.delimiter)
    return _next(csv.reader([line], delimiter=parsing.delimiter)) or []
