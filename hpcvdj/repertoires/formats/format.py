"""Tables of other programs: how their headers are recognised, and what their columns are as AIRR fields."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError, choices, few, option, require_choice, told
from hpcvdj.recombination.repertoire import ANCHOR_LETTERS

REASON = "reader_excluded"
"""A column beside the AIRR fields: why a row has no junction, as `Exclusion.text`; empty for rows that have one."""

AIRR = "airr"
"""The name of the format whose fields all others are read as."""

REQUIRED = (
    "sequence_id", "sequence", "rev_comp", "productive", "v_call", "d_call", "j_call", "sequence_alignment",
    "germline_alignment", "junction", "junction_aa", "v_cigar", "d_cigar", "j_cigar",
)  # fmt: skip
"""The columns that an AIRR Rearrangement file must have (the schema's `required`).  They may be empty."""

OPTIONAL = ("cdr3", "duplicate_count", "repertoire_id")
"""Further AIRR fields that are read."""

READ = (
    "sequence_id", "v_call", "d_call", "j_call", "junction", "junction_aa", "cdr3", "cdr3_aa", "productive", "locus",
    "duplicate_count", "repertoire_id", "cell_id", "v_identity",
)  # fmt: skip
"""The AIRR fields that commands read."""

OF_AIRR = ("d2_call", "c_call", "cdr1", "cdr2", "cdr1_aa", "cdr2_aa", "j_identity", "d_identity", "c_identity")
"""Other AIRR fields, whose names are like those."""

ROW_ID = "sequence_id"
"""The AIRR field that is the number of the data row, from 1, if a format has no ids."""


class RowError(Exception):
    """A format cannot read a row: `row` is its index in the batch, from 0, and `text` says why."""

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row, self.text = row, text


def same(column: pa.Array) -> pa.Array:
    return column


FirstRows = Callable[[Sequence[str]], pa.RecordBatch | None]
"""Takes names of columns; returns the first rows with these columns as strings, or None for a table without rows."""


@dataclass(frozen=True)
class Field:
    """An AIRR field, made of columns of a table.

    sources  the columns
    make     takes their arrays in a batch and returns the field's array: large strings, empty for missing values
    part     the field's key, if `make` makes several fields at once and returns a dict of arrays
    """

    sources: tuple[str, ...]
    make: Callable[..., Any] = same
    part: str | None = None


class Format:
    """The table format of a program.

    name        for --format
    summary     for the help and the documentation
    refusal     what to give instead of a table that lacks what is needed; empty for formats that can be read
    signatures  sets of columns: a table that has all columns of one set is of this format
    first       possible names of its first column; empty if any column may be the first

    An instance is the format of one table.  A field that depends on more than its own row reads `first_rows`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    refusal: ClassVar[str] = ""
    signatures: ClassVar[tuple[frozenset[str], ...]] = ()
    first: ClassVar[tuple[str, ...]] = ()

    def __init__(self, first_rows: FirstRows) -> None:
        self.first_rows = first_rows

    @classmethod
    def recognises(cls, columns: Sequence[str]) -> bool:
        """Whether a table with these columns certainly is of this format."""
        has_columns = any(names <= set(columns) for names in cls.signatures)
        return has_columns and (not cls.first or columns[0] in cls.first)

    @staticmethod
    def notice(columns: Sequence[str]) -> str:
        """What users should know about a table of this format with these columns; empty if there is nothing."""
        return ""

    @staticmethod
    def named(values: Sequence[str]) -> list[str] | None:
        """The columns of a table of this format without a header, if `values` can be its first row; else None."""
        return None

    def fields(self, columns: Sequence[str]) -> Mapping[str, Field]:
        """The AIRR fields, and `REASON`, of a table with these columns."""
        return {}


@dataclass(frozen=True)
class Opening:
    """How a table is opened.

    format   the name of a `Format`; None detects it by the header
    columns  (AIRR field, column of the table, or AIRR field that the format makes) pairs, which take precedence over
             the format
    besides  a file that is no table of junctions where a folder of them has it, such as the metadata of donors
    """

    format: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    besides: Path | None = field(default=None, compare=False)

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
"""The header determines the format."""


def readable() -> dict[str, type[Format]]:
    return {name: kind for name, kind in choices(Format).items() if not kind.refusal}


def format_of(columns: Sequence[str], opening: Opening, heading: str) -> type[Format] | None:
    """The format of a table with these columns; None if no format recognises it.

    InputError, which begins with `heading`, for a table that no format can read.
    """
    if opening.format is not None:
        return choices(Format)[opening.format]
    kind = next((kind for kind in choices(Format).values() if kind.recognises(columns)), None)
    if kind is not None and kind.refusal and not opening.columns:
        raise InputError(f"{heading}: {kind.summary}; {told(kind.refusal)}")
    return kind if kind is None or not kind.refusal else None


def names_of_headerless(values: Sequence[str], opening: Opening) -> list[str] | None:
    """The columns of a table without a header whose first row has these values; None if that row is a header."""
    possible = (kind for name, kind in choices(Format).items() if opening.format in (None, name))
    return next((names for kind in possible if (names := kind.named(values)) is not None), None)


def capitalised(columns: Sequence[str]) -> dict[str, str]:
    """The AIRR fields that a table lacks and has with capitals, such as {"v_call": "V_Call"}."""
    named = {column.lower(): column for column in columns}
    return {field: named[field] for field in (*REQUIRED, *OPTIONAL) if field in named and field not in columns}


def resembled(columns: Sequence[str]) -> str:
    """The format that a table resembles, and the columns that it lacks; empty if it resembles none, or several.

    The table lacks one or two columns of the format, and has more of its columns than it lacks; or it writes fields of
    AIRR with capitals.
    """
    meant = capitalised(columns)
    if choices(Format)[AIRR].recognises([*columns, *meant]):
        return f"looks like {choices(Format)[AIRR].summary}, but with capitals ({option('columns', meant)} reads it)"
    near = {}
    for kind in choices(Format).values():
        lacks = min((names.difference(columns) for names in kind.signatures), key=len, default=frozenset())
        sizes = [len(names) for names in kind.signatures if names.difference(columns) == lacks]
        if 0 < len(lacks) < 3 and max(sizes) > 2 * len(lacks):
            near[kind.summary] = lacks
    if len(near) != 1:
        return ""
    ((summary, lacks),) = near.items()
    return f"looks like {summary}, but has no column {', '.join(sorted(lacks))}"


def otherwise_separated(columns: Sequence[str]) -> str:
    """A message about a table whose columns are separated by neither tabs nor commas; empty for other tables."""
    for delimiter, word in ((";", "semicolons"), (" ", "blanks")):
        if len(columns) == 1 and delimiter in columns[0]:
            return f"its columns are separated by {word}, as some spreadsheets do: save it with tabs"
    return ""


class Translation:
    """The columns of a table as AIRR fields.

    columns      what the table can be read as: the AIRR fields, then its other columns
    airr_fields  the AIRR fields that its format makes
    explains     whether rows have a `REASON`
    has_ids      whether the AIRR field of ids is a column of the table

    A table without ids can also be read with `ROW_ID`, the numbers of its rows.
    """

    def __init__(self, table_columns: Sequence[str], opening: Opening, heading: str, first_rows: FirstRows) -> None:
        """Translate a table with the columns `table_columns`.

        InputError, which begins with `heading`, for a table that no format can read, and for a table that lacks columns
        of `opening` or of its format.
        """
        kind = format_of(table_columns, opening, heading)
        fields = dict(kind(first_rows).fields(table_columns)) if kind is not None else {}
        # Messages name AIRR fields, so that fields of a format are columns, too.
        given = {
            field: fields[column] if column in fields and column not in table_columns else Field((column,))
            for field, column in opening.columns
        }
        moved = {column for _, column in opening.columns}
        # A column that has CDR3s, as users say, does not have junctions as well.
        no_more = {
            name
            for name in ANCHOR_LETTERS
            if name in moved or not moved.isdisjoint(fields[name].sources if name in fields else ())
        }
        fields = {name: field for name, field in fields.items() if name not in no_more} | given
        lacking = [name for field in fields.values() for name in field.sources if name not in table_columns]
        if lacking:
            there = otherwise_separated(table_columns) or f"there are {few(table_columns, 40)}"
            raise InputError(f"{heading}: no column {lacking[0]}; {there}")
        self._fields, self._table_columns = fields, list(table_columns)
        self._numbered = ROW_ID not in fields and ROW_ID not in table_columns
        self.explains, self.has_ids = REASON in fields, ROW_ID in table_columns and ROW_ID not in fields
        numbers = [ROW_ID] if self._numbered and (kind is not None or fields) else []
        airr_fields = numbers + [name for name in fields if name != REASON]
        self.airr_fields = airr_fields if fields else []
        self.columns = airr_fields + [name for name in table_columns if name not in {*airr_fields, *no_more}]

    def sources(self, wanted: Sequence[str]) -> list[str]:
        """The table's columns that `wanted`, some of `columns` and `REASON`, are made of, each once; at least one."""
        fields = [self._fields[name] for name in (*wanted, *self._with_reason(wanted)) if name in self._fields]
        sources = dict.fromkeys([*(source for field in fields for source in field.sources), *self.copied(wanted)])
        return list(sources) or self._table_columns[:1]

    def copied(self, wanted: Iterable[str]) -> list[str]:
        """Those of the columns `wanted` that the table has as they are."""
        return [name for name in wanted if name not in self._fields and not self._is_number(name)]

    def apply(self, batch: pa.RecordBatch, wanted: Sequence[str], first_row: int) -> pa.RecordBatch:
        """The columns `wanted` of a batch that has their sources; its first row is row `first_row` of the table."""
        rows = batch.num_rows
        results: dict[Any, Any] = {}

        def column(name: str) -> pa.Array:
            if self._is_number(name):
                return pa.array((1 + first_row + np.arange(rows)).astype(str), pa.large_string())
            if name not in self._fields:
                return batch.column(name)
            field = self._fields[name]
            key = field.make, field.sources
            if key not in results:
                results[key] = field.make(*(batch.column(source) for source in field.sources))
            return results[key] if field.part is None else results[key][field.part]

        arrays = [column(name) for name in wanted]
        for name in self._with_reason(wanted)[:1]:
            is_left = pc.equal(column(name), "")
            arrays = [
                pc.if_else(is_left, array, pa.scalar("", array.type)) if own in ANCHOR_LETTERS and own in self._fields
                else array for own, array in zip(wanted, arrays, strict=True)
            ]  # fmt: skip
        return pa.RecordBatch.from_arrays(arrays, names=list(wanted))

    def _with_reason(self, wanted: Iterable[str]) -> list[str]:
        """`REASON`, if junctions or CDR3s, which are empty in rows that have one, are among the fields `wanted`."""
        return (
            [REASON] if self.explains and not self._fields.keys().isdisjoint(ANCHOR_LETTERS.keys() & {*wanted}) else []
        )

    def _is_number(self, name: str) -> bool:
        return self._numbered and name == ROW_ID
