"""What every reader of table files does: columns as AIRR fields, ranges of rows, messages."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, get_args

import pyarrow as pa

from hpcvdj.errors import InputError, few, option
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.formats import AIRR, BY_HEADER, REASON, Opening, RowError, Translation, format_of, resembled
from hpcvdj.repertoires.formats.format import ROW_ID, otherwise_separated
from hpcvdj.repertoires.formats.listed import Listed
from hpcvdj.storage.inputs import changed

log = logging.getLogger(__name__)

READ_BYTES = 1 << 20
"""Bytes that are read from disk at a time: of text, and of each column of Parquet."""

BATCH_ROWS = 1 << 17
"""Rows of a batch of what is not text."""


_said: set[tuple[Path, str]] = set()


def _say_once(path: Path, text: str, level: int = logging.INFO) -> None:
    """Log what a file is; only once, as a file may be named by different paths."""
    key = path.resolve(), text
    if key not in _said:
        _said.add(key)
        log.log(level, "%s: %s", path, text)


class TableReader:
    """A table: the first bytes of a file determine its kind, its columns or `opening` its format.

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
    def given_columns(self) -> list[str]:
        """The columns that the table has; InputError if it cannot be a table."""
        raise NotImplementedError

    def given_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows with some of these, as strings."""
        raise NotImplementedError

    @property
    def recognised(self) -> bool:
        """Whether it certainly is a table of a format."""
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
        """Where its columns are named, in words."""
        return f"{self.path}, line 1"

    @cached_property
    def translation(self) -> Translation | None:
        """What its columns are as AIRR fields; None if they are that already."""
        self._announce()
        try:
            return Translation.of(self.given_columns, self.opening, self.heading, self._first_rows)
        except RowError as error:
            raise self._at(error) from None

    def _announce(self) -> None:
        """Log what the table is."""
        kind = format_of(self.given_columns, self.opening, self.heading)
        if kind is not None and kind.name != AIRR and self.opening.format is None:
            _say_once(self.path, f"read as {kind.summary}")
        if kind is not None and (notice := kind.notice(self.given_columns)):
            _say_once(self.path, notice, logging.WARNING)

    def _at(self, error: RowError, first_row: int = 0) -> InputError:
        return InputError(f"{self.path}, {self.row_name(first_row + error.row)}: {error.text}")

    def row_name(self, row: int) -> str:
        """Where a data row, from 0, is in the file, in words."""
        return f"data row {row + 1}"

    def _first_rows(self, columns: Sequence[str]) -> pa.RecordBatch | None:
        return next(self.given_batches(list(columns)), None)

    @property
    def columns(self) -> list[str]:
        """What it can be read as: the AIRR fields that it has, then its other columns."""
        return self.translation.columns if self.translation else self.given_columns

    @property
    def explains(self) -> bool:
        """Whether it has a column `REASON`, too."""
        return self.translation is not None and self.translation.explains

    @property
    def has_ids(self) -> bool:
        """Whether its rows have ids of their own as AIRR has them, not numbers of rows or clones."""
        return self.translation is None or self.translation.has_ids

    @property
    def known_rows(self) -> int | None:
        """The number of data rows, if the file says it."""
        return None

    @property
    def group_rows(self) -> int:
        """Rows of the largest group of which no part can be read without what is before it in the group."""
        return 1

    def require(self, columns: Sequence[str]) -> None:
        """Raise InputError unless the table has these `columns`, each once; rows without ids are numbered."""
        given = {*self.columns, ROW_ID, *[REASON] * self.explains}
        missing = [name for name in columns if name not in given]
        if missing:
            raise InputError(self._missing_message(missing))
        repeated = next((name for name in columns if self.columns.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"{self.heading}: duplicate column {repeated}; rename one of them")

    def _missing_message(self, missing: list[str]) -> str:
        message = f"{self.heading}: no column {', '.join(missing)}"
        if separated := otherwise_separated(self.given_columns):
            return f"{message}; {separated}"
        amino = [name for name in get_args(JunctionField)[1:] if name in self.columns]
        if "junction" in missing and amino:
            return f"{message}; the table has amino acids only ({few(amino)}), and this needs nucleotides"
        if missing == ["junction"] and "cdr3" in self.columns:
            return f"{message}; {option('sequence_field', 'cdr3')} reads the column cdr3"
        without = f"{option('genes', 'any')}, or of annotate {option('match', 'none')}, does without calls"
        if Listed.recognises(self.given_columns):
            given = few([name for name in self.columns if name not in (ROW_ID, *self.given_columns)])
            return f"{self.path}: a list of {given} has no {few(missing)}; give a table that has them, or {without}"
        if missing == ["v_call", "j_call"]:
            message += f"; {without}"
        renamed = option("columns", dict.fromkeys(missing, "COLUMN"))
        if self.resembles:
            return f"{self.heading}: {self.resembles}; export the table with it, or say with {renamed} what it has"
        return f"{message}; {renamed} says which they are (this table has {few(self.given_columns, 12)})"

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows as batches of string columns: all columns, or `columns` in that order.

        InputError names the file, the place and the remedy; memory does not grow with the file.
        """
        wanted = self.columns if columns is None else list(columns)
        self.require(wanted)
        return self._translated(self.given_batches(self._sources(wanted)), wanted)

    def first_batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The first rows with these `columns`, as one batch of strings; none of a table without rows."""
        self.require(columns)
        rows = self._first_rows(self._sources(columns))
        return self._translated([rows] if rows is not None else [], columns)

    def _sources(self, wanted: Sequence[str]) -> list[str]:
        return self.translation.sources(wanted) if self.translation else list(wanted)

    def _translated(
        self, batches: Iterable[pa.RecordBatch], wanted: Sequence[str], first_row: int = 0
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                translated = self.translation.apply(batch, wanted, first_row) if self.translation else batch
            except RowError as error:
                raise self._at(error, first_row) from None
            yield translated
            first_row += batch.num_rows

    def ranges(
        self, columns: Sequence[str], ranges: Iterable[range]
    ) -> Iterator[tuple[range, Iterable[pa.RecordBatch]]]:
        """Ranges of data rows, which are ascending and do not overlap, each with its batches.

        The next range is asked for once the one before it is read.  A file that can only be read from its beginning is
        read once.
        """
        position, held = 0, list[pa.RecordBatch]()
        following = iter(ranges)
        rows = next(following, None)
        for batch in self.batches(columns):
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
    """The first line of what an exception says, or its kind."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
