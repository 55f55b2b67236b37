"""The base class of readers of tables: columns as AIRR fields, ranges of rows, messages."""

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, get_args

import pyarrow as pa

from hpcvdj.errors import InputError, command_name, few, log, option
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.formats.format import (
    AIRR,
    BY_HEADER,
    REASON,
    ROW_ID,
    Opening,
    RowError,
    Translation,
    capitalised,
    format_of,
    otherwise_separated,
    resembled,
)
from hpcvdj.repertoires.formats.listed import Listed
from hpcvdj.storage.inputs import changed

READ_BYTES = 1 << 20
"""Bytes that are read from disk at a time, of text and of each column of Parquet."""

BATCH_ROWS = 1 << 17
"""Rows of a batch, except of text tables."""

_logged: set[tuple[Path, str]] = set()


def _log_once(path: Path, text: str, level: int = logging.INFO) -> None:
    """Log a text about a file, once even if the file has several paths."""
    key = path.resolve(), text
    if key not in _logged:
        _logged.add(key)
        log.log(level, "%s: %s", path, text)


class TableReader:
    """A table.  The first bytes of a file determine its reader, its columns or `opening` determine its format.

    name      of the reader
    summary   for the help and the documentation
    suffixes  of files in a folder that are tables
    perhaps   suffixes of files in a folder that are tables if a format recognises their columns
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    perhaps: ClassVar[tuple[str, ...]] = ()

    def __init__(self, path: Path, opening: Opening = BY_HEADER) -> None:
        self.path, self.opening = path, opening

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether this reader reads a file with these first bytes; files that no reader recognises are read as text."""
        return False

    @property
    def given_columns(self) -> list[str]:
        """The columns of the table itself; InputError if the file cannot be a table."""
        raise NotImplementedError

    def given_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """All rows, as strings, with these of its `given_columns`."""
        raise NotImplementedError

    def encoded_batches(self, columns: list[str], encoded: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The same rows, in which the columns `encoded` may be dictionaries of strings."""
        return self.given_batches(columns)

    @property
    def recognised(self) -> bool:
        """Whether the table certainly has one of the formats."""
        try:
            return bool(self.opening.columns) or format_of(self.given_columns, self.opening, str(self.path)) is not None
        except InputError:
            return False

    @property
    def resembles(self) -> str:
        """As of `resembled`, for a table that no format recognises."""
        try:
            return "" if self.recognised else resembled(self.given_columns)
        except InputError:
            return ""

    @property
    def heading(self) -> str:
        """Where the table names its columns, in words."""
        return f"{self.path}, line 1"

    @cached_property
    def translation(self) -> Translation:
        """Its columns as AIRR fields."""
        self._announce()
        try:
            return Translation(self.given_columns, self.opening, self.heading, self._first_rows)
        except RowError as error:
            raise self._at(error) from None

    def _announce(self) -> None:
        kind = format_of(self.given_columns, self.opening, self.heading)
        if kind is not None and kind.name != AIRR and self.opening.format is None:
            _log_once(self.path, f"read as {kind.summary}")
        if kind is not None and (notice := kind.notice(self.given_columns)):
            _log_once(self.path, notice, logging.WARNING)

    def _at(self, error: RowError, first_row: int = 0) -> InputError:
        return InputError(f"{self.path}, {self.row_name(first_row + error.row)}: {error.text}")

    def row_name(self, row: int) -> str:
        """Where a data row, from 0, is in the file, in words."""
        return f"data row {row + 1}"

    def _first_rows(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        return next(self.given_batches(list(columns)), None)

    @property
    def columns(self) -> list[str]:
        return self.translation.columns

    @property
    def explains(self) -> bool:
        """Whether it has a column `REASON`."""
        return self.translation.explains

    @property
    def has_ids(self) -> bool:
        """Whether its rows have AIRR ids, not numbers of rows or clones."""
        return self.translation.has_ids

    @property
    def known_rows(self) -> int | None:
        """The number of data rows, if the file states it."""
        return None

    @property
    def group_rows(self) -> int:
        """Rows of the largest group that must be read from its beginning; 0 if the whole file must be."""
        return 0

    def require(self, columns: Sequence[str]) -> None:
        """Raise InputError unless the table has these `columns`, made of columns that it has once.

        Rows without ids are numbered.
        """
        present = {*self.columns, ROW_ID, *[REASON] * self.explains}
        missing = [name for name in columns if name not in present]
        if missing:
            raise InputError(self._missing_message(missing))
        sources = self.translation.sources(columns)
        repeated = next((name for name in sources if self.given_columns.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"{self.heading}: duplicate column {repeated}; rename one of them")

    def _missing_message(self, missing: list[str]) -> str:
        message = f"{self.heading}: no column {', '.join(missing)}"
        if separated := otherwise_separated(self.given_columns):
            return f"{message}; {separated}"
        meant = capitalised(self.columns)
        if not meant.keys().isdisjoint(missing):
            return f"{message}, but {few(meant.values())}; {option('columns', meant)} reads this table"
        if amino := self._only_amino_acids(missing):
            return f"{message}; {amino}"
        if missing == ["junction"] and "cdr3" in self.columns:
            return (
                f"{message}; {command_name('count')} reads the column cdr3 with {option('sequence_field', 'cdr3')}, "
                "other commands need junctions, which have the codons of Cys 104 and Phe/Trp 118"
            )
        without = f"commands with {option('genes', 'any')}, and annotate with {option('match', 'none')}, need no calls"
        if Listed.recognises(self.given_columns):
            field = few([name for name in self.columns if name not in (ROW_ID, *self.given_columns)])
            return f"{self.path}: a list of {field} has no {few(missing)}; give a table that has them; {without}"
        if missing == ["v_call", "j_call"]:
            message += f"; {without}"
        renamed = option("columns", dict.fromkeys(missing, "COLUMN"))
        if self.resembles:
            return f"{self.heading}: {self.resembles}; export the table with it, or say with {renamed} what it has"
        return f"{message}; {renamed} says which they are (this table has {few(self.given_columns, 12)})"

    def _only_amino_acids(self, missing: list[str]) -> str:
        """That a table without junctions has amino acids; the empty string if that is not the fault."""
        amino = [name for name in get_args(JunctionField)[1:] if name in self.columns]
        if "junction" not in missing or not amino:
            return ""
        return f"the table has amino acids only ({few(amino)}), and this needs nucleotides"

    def batches(self, columns: Sequence[str] | None = None, encoded: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows as batches of string columns: all columns, or `columns` in that order.

        encoded  columns that may be dictionaries of strings, which is faster if the file has them

        InputError names the file, the place and the remedy; memory does not grow with the file.
        """
        wanted = self.columns if columns is None else list(columns)
        self.require(wanted)
        given = self.encoded_batches(self.translation.sources(wanted), self._may_be_encoded(wanted, encoded))
        return self._translated(given, wanted)

    def _may_be_encoded(self, wanted: Sequence[str], encoded: Collection[str]) -> Collection[str]:
        return self.translation.copied([name for name in wanted if name in encoded])

    def first_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The first rows with these `columns`, as one batch of strings; none of a table without rows."""
        self.require(columns)
        rows = self._first_rows(self.translation.sources(columns))
        return self._translated([rows] if rows is not None else [], columns)

    def _translated(
        self, batches: Iterable[pa.RecordBatch], wanted: Sequence[str], first_row: int = 0
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                translated = self.translation.apply(batch, wanted, first_row)
            except RowError as error:
                raise self._at(error, first_row) from None
            yield translated
            first_row += batch.num_rows

    def ranges(
        self, columns: Sequence[str], ranges: Iterable[range], encoded: Collection[str] = ()
    ) -> Iterator[tuple[range, Iterable[pa.RecordBatch]]]:
        """Yield each of `ranges` with its batches; the ranges of data rows ascend and do not overlap.

        encoded  as of `batches`

        The next range is taken from `ranges` once the one before it is read.  The file is read once.
        """
        position, held = 0, list[pa.RecordBatch]()
        following = iter(ranges)
        rows = next(following, None)
        for batch in self.batches(columns, encoded):
            last = position + batch.num_rows
            while rows is not None and rows.start < last:
                first, stop = max(rows.start, position), min(rows.stop, last)
                held.append(batch.slice(first - position, stop - first))
                if stop < rows.stop:
                    break
                yield rows, held
                held = []
                rows = next(following, None)
            position = last
            if rows is None:
                return
        raise changed(self.path)


def first_line(error: Exception) -> str:
    """The first line of an exception's message, or the name of its type."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
