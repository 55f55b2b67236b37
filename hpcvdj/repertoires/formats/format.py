"""Tables of other programs: how their headers are recognised, and what their columns are as AIRR fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from hpcvdj.errors import InputError, choices, few, require_choice, told

REASON = "reader_excluded"
"""A column beside the AIRR fields: why a format cannot give a row its junction, as `Exclusion.text`; else empty."""

AIRR = "airr"
"""The name of the format whose fields all others are read as."""

ROW_ID = "sequence_id"
"""The AIRR field that is the number of the data row, from 1, if a format has no ids."""


class RowError(Exception):
    """A row of which a format cannot make AIRR fields: its place among the rows that were given, from 0, and why."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row, self.text = row, text


def same(column: pa.Array) -> pa.Array:
    """The column as it is."""
    return column


FirstRows = Callable[[Sequence[str]], pa.RecordBatch | None]
"""Columns of a table -> its first rows with them, as strings; None for a table without rows."""


@dataclass(frozen=True)
class Field:
    """An AIRR field, made of columns of a table.

    sources  the columns
    make     their arrays of a batch -> the field's array; large strings, empty for missing values
    part     if several fields are made at once: `make` returns a dict of arrays, of which the field is this one
    """

    sources: tuple[str, ...]
    make: Callable[..., Any] = same
    part: str | None = None


class Format:
    """A program's table.

    name     for --format
    summary  for the help and the documentation
    refusal  what to give instead of a table that does not have what is needed; empty for formats that can be read
    marks    sets of columns, of which each tells the format

    An instance is the format of one table.  What a field depends on beyond its row, it learns from `first_rows` when
    rows are made.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    refusal: ClassVar[str] = ""
    marks: ClassVar[tuple[frozenset[str], ...]] = ()

    def __init__(self, first_rows: FirstRows) -> None:
        self.first_rows = first_rows

    @classmethod
    def recognises(cls, columns: Sequence[str]) -> bool:
        """Whether a table with these columns certainly is of this format."""
        return any(marks <= set(columns) for marks in cls.marks)

    @staticmethod
    def notice(columns: Sequence[str]) -> str:
        """What to know of a table of this format with these columns; empty if that is nothing."""
        return ""

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """The columns of a table without header whose first row has these values; None if it is no such table."""
        return None

    @staticmethod
    def may_lack_from(columns: Sequence[str]) -> str | None:
        """A column: rows without a value in it may lack their last fields, delimiters included; None if no row may."""
        return None

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """The AIRR fields, and `REASON`, of a table with these columns."""
        return {}


@dataclass(frozen=True)
class Opening:
    """How a table is opened.

    format   the name of a `Format`; None: what its header says
    columns  (AIRR field, column of the table) pairs that replace what the format says
    """

    format: str | None = None
    columns: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.format is not None:
            require_choice("format", self.format, readable())

    def recorded(self) -> dict[str, Any]:
        """As JSON values."""
        return {"format": self.format, "columns": dict(self.columns)}

    @staticmethod
    def from_recorded(facts: Mapping[str, Any]) -> "Opening":
        """The inverse of `recorded`."""
        return Opening(facts["format"], tuple(facts["columns"].items()))


BY_HEADER = Opening()
"""As its header says."""


def readable() -> dict[str, type[Format]]:
    """The formats that can be read, by name."""
    return {name: kind for name, kind in choices(Format).items() if not kind.refusal}


def format_of(columns: Sequence[str], opening: Opening, place: str) -> type[Format] | None:
    """The format of a table at `place` with these columns; None if no format recognises it.

    InputError for a table that no format can read.
    """
    kinds = choices(Format)
    if opening.format is not None:
        return kinds[opening.format]
    kind = next((kind for kind in kinds.values() if kind.recognises(columns)), None)
    if kind is not None and kind.refusal and not opening.columns:
        raise InputError(f"{place}: {kind.summary}; {told(kind.refusal)}")
    return kind if kind is None or not kind.refusal else None


def names_of_headerless(values: Sequence[str], opening: Opening) -> list[str] | None:
    """The columns of a table whose first row has these values, if it has no header; None if that row is one."""
    kinds = choices(Format)
    tried = [kinds[opening.format]] if opening.format is not None else kinds.values()
    return next((names for kind in tried if (names := kind.named(values)) is not None), None)


def may_lack_from(columns: Sequence[str], opening: Opening) -> str | None:
    """What `Format.may_lack_from` says of a table with these columns."""
    tried = [choices(Format)[opening.format]] if opening.format is not None else choices(Format).values()
    return next((name for kind in tried if (name := kind.may_lack_from(columns)) is not None), None)


def resembled(columns: Sequence[str]) -> str:
    """What a table that no format recognises looks like, and which columns it lacks; empty if there is no telling.

    It lacks one or two columns of one format, and has more of its columns than it lacks.
    """
    near = {}
    for kind in choices(Format).values():
        lacks = min((marks.difference(columns) for marks in kind.marks), key=len, default=frozenset())
        has = max((len(marks) for marks in kind.marks if marks.difference(columns) == lacks), default=0) - len(lacks)
        if 0 < len(lacks) < 3 and has > len(lacks):
            near[kind.summary] = lacks
    if len(near) != 1:
        return ""
    ((summary, lacks),) = near.items()
    return f"looks like {summary}, but has no column {', '.join(sorted(lacks))}"


def otherwise_separated(columns: Sequence[str]) -> str:
    """What to say of a table whose `columns` no tab separates, nor a comma; empty for others."""
    for delimiter, word in ((";", "semicolons"), (" ", "blanks")):
        if len(columns) == 1 and delimiter in columns[0]:
            return f"its columns are separated by {word}, as some spreadsheets do: save it with tabs"
    return ""


class Translation:
    """A table's columns as AIRR fields.  A table without ids can be asked for `ROW_ID`, the numbers of its rows.

    columns   what it can be read as: the AIRR fields, then its own other columns
    made      the AIRR fields that a format makes
    explains  whether rows come with a `REASON`
    has_ids   whether the AIRR field of ids is a column of the table
    """

    def __init__(self, own: Sequence[str], fields: Mapping[str, Field], *, known: bool) -> None:
        self._fields, self._own = dict(fields), list(own)
        self._numbered = ROW_ID not in fields and ROW_ID not in own
        self.explains, self.has_ids = REASON in fields, ROW_ID in own and ROW_ID not in fields
        made = [ROW_ID] * (self._numbered and known) + [name for name in fields if name != REASON]
        self.made = made if fields else []
        self.columns = made + [name for name in own if name not in made]

    @staticmethod
    def of(own: Sequence[str], opening: Opening, place: str, first_rows: FirstRows) -> "Translation | None":
        """That of a table at `place` with the columns `own`; None if they are AIRR fields already, with ids.

        InputError for a table that no format can read, for columns of `opening` that it lacks, and for fields of a
        format that are made of columns that it lacks.
        """
        kind = format_of(own, opening, place)
        fields = dict(kind(first_rows).fields(own)) if kind is not None else {}
        fields |= {field: Field((column,)) for field, column in opening.columns}
        lacking = [name for field in fields.values() for name in field.sources if name not in own]
        if lacking:
            there = otherwise_separated(own) or f"there are {few(own, 40)}"
            raise InputError(f"{place}: no column {lacking[0]}; {there}")
        known = kind is not None or bool(fields)
        return Translation(own, fields, known=known) if fields or ROW_ID not in own else None

    def sources(self, wanted: Sequence[str]) -> list[str]:
        """The table's columns that some of `columns`, or `REASON`, are made of, each once."""
        made = [name for name in wanted if name in self._fields]
        own = [name for name in wanted if name not in self._fields and not self._is_number(name)]
        found = list(dict.fromkeys([*(source for name in made for source in self._fields[name].sources), *own]))
        return found or self._own[:1]

    def apply(self, batch: pa.RecordBatch, wanted: Sequence[str], first_row: int) -> pa.RecordBatch:
        """The columns `wanted` of a batch that has their sources; its first row is row `first_row` of the table."""
        rows = batch.num_rows
        made: dict[Any, Any] = {}

        def column(name: str) -> pa.Array:
            if self._is_number(name):
                return pa.array((1 + first_row + np.arange(rows)).astype(str), pa.large_string())
            if name not in self._fields:
                return batch.column(name)
            field = self._fields[name]
            key = field.make, field.sources
            if key not in made:
                made[key] = field.make(*(batch.column(source) for source in field.sources))
            return made[key] if field.part is None else made[key][field.part]

        return pa.RecordBatch.from_arrays([column(name) for name in wanted], names=list(wanted))

    def _is_number(self, name: str) -> bool:
        return self._numbered and name == ROW_ID
