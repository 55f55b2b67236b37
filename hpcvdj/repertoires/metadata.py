"""Tables of metadata: the groups and subjects of samples."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError, few, option
from hpcvdj.recombination.names import MISSING
from hpcvdj.repertoires.formats.format import otherwise_separated
from hpcvdj.repertoires.readers import MemoryReader, open_table
from hpcvdj.repertoires.table import REPERTOIRE, repertoire_name

_MISSING = {word.lower() for word in MISSING} - {"none"} | {
    "?", ".", "#n/a", "n.a.", "missing", "not applicable", "not available", "not collected", "not provided", "unknown",
}  # fmt: skip
"""Words for a missing value, in small letters: those of tables, and those that archives of sequences ask for.  A group
may be called none, such as that of donors without treatment; and - may be the opposite of +."""


_NEARLY_AS_MANY = 0.75
"""With this share of the names of another column, a column may be the one of the names.  Of two samples of each donor,
half are often called like the donor."""


def column_of(metadata: object, group: str, names: Sequence[str], what: str = "group") -> dict[str, str]:
    """As `listed_in`, in the order of the `names`; InputError if one of them has no group or subject."""
    listed = listed_in(metadata, group, names, what)
    lacking = [name for name in names if name not in listed]
    if lacking:
        column = names_column(metadata, names, [group])
        where = f"{column} has most of them" if column else "no column has any of them"
        raise InputError(
            f"{title_of(metadata)}: no {what} for {few(lacking)}; it needs a row for each individual, with its name in "
            f"one column ({where}) and its {what} in {group} (words such as NA and unknown are no {what})"
        )
    return {name: listed[name] for name in names}


def listed_in(metadata: object, group: str, names: Sequence[str], what: str = "group") -> dict[str, str]:
    """The group of each individual, or the subject of each sample, in a table of metadata: {name: value}.

    metadata  a table, or its path, with a row for each individual or sample
    group     the column of the values
    names     the individuals or samples; a column of the table has these names, or the names of their files
    what      the word for a value in messages, such as `group` or `subject`

    InputError if a column is missing, if a name has two values, by one column of names or by another that has nearly as
    many of them, or if only another spelling of a name has a row.
    """
    source, table = title_of(metadata), _text(metadata)
    if group not in table.column_names:
        there = otherwise_separated(table.column_names) or f"there are {few(table.column_names, 40)}"
        raise InputError(f"{source}: no column {group} ({option(what)}); {there}")
    listed: dict[str, str] = {}
    values, asked = _as_names(table, names, [group]), table[group].to_pylist()
    column = _best(values, names)
    rows = values.get(column, [])
    if column != REPERTOIRE and rows:
        _require_one(source, values, column, names, asked)
    _require_spelled(source, names, rows)
    for name, value in zip(rows, asked, strict=False):
        if name in names and value and listed.setdefault(name, value) != value:
            raise InputError(f"{source}: {name} has the {what}s {listed[name]} and {value}; correct the column {group}")
    for value in listed.values():
        if (value == "individuals" and what == "group") or set(value) & set("\t\r\n"):
            raise InputError(f"{source}: a {what} cannot be called {value!r}, as columns are named by it; rename it")
    return listed


def _require_spelled(source: object, names: Sequence[str], rows: Sequence[str]) -> None:
    """Raise InputError if a name has no row, and a row without a table has it in other letters, such as P3 for P03."""
    others = {_spelling(row): row for row in rows if row and row not in names}
    misspelt = [(others[_spelling(name)], name) for name in names if name not in rows and _spelling(name) in others]
    if misspelt:
        row, name = misspelt[0]
        more = f" (and {len(misspelt) - 1:,} more like this)" if misspelt[1:] else ""
        raise InputError(
            f"{source}: {row} names no table, and {name} has no row{more}; write {name} for {row}, or, if they are "
            f"different, add a row for {name}, which may be empty"
        )


def _spelling(name: str) -> tuple[str, ...]:
    """The words and numbers of a name, without case, punctuation and leading zeros."""
    return tuple(word.lstrip("0") or "0" for word in re.findall(r"\d+|[^\W\d_]+", name.lower()))


def others_in(metadata: object, names: Sequence[str], column: str) -> list[str]:
    """The names in a column of a table of metadata that are not among `names`."""
    named = (_as_named(value, {*names}) for value in _text(metadata)[column].to_pylist())
    return [name for name in dict.fromkeys(named) if name and name not in names]


def names_column(metadata: object, names: Sequence[str], others: Collection[str] = ()) -> str:
    """The column of metadata that has most of the `names`, which is none of the `others`; empty if none has any."""
    values = _as_names(_text(metadata), names, others)
    column = _best(values, names)
    return column if not {*names}.isdisjoint(values.get(column, [])) else ""


def _as_names(table: pa.Table, names: Sequence[str], others: Collection[str]) -> dict[str, list[str]]:
    """The values of each column that is none of the `others`; names of files are names of repertoires."""
    known = {*names}
    columns = [column for column in table.column_names if column not in others]
    return {column: [_as_named(value, known) for value in table[column].to_pylist()] for column in columns}


def _best(values: Mapping[str, Sequence[str]], names: Sequence[str]) -> str:
    """The column with most of the names; repertoire_id, if it has nearly as many.

    If no column has any name, it is the one with most of their other spellings; empty without columns.
    """
    numbers = {column: len({*names}.intersection(of_column)) for column, of_column in values.items()}
    if not any(numbers.values()):
        spelled = set(map(_spelling, names))
        numbers = {column: len(spelled & {_spelling(value or "") for value in own}) for column, own in values.items()}
    best = max(numbers, key=lambda column: numbers[column], default="")
    return REPERTOIRE if numbers.get(REPERTOIRE, -1) >= _NEARLY_AS_MANY * numbers.get(best, 0) else best


def _require_one(
    source: object, values: Mapping[str, Sequence[str]], best: str, names: Sequence[str], asked: Sequence[str]
) -> None:
    """Raise InputError if a column has nearly as many of the names as `best`, and a name has other values by it.

    asked  the values that are asked for, by row

    Beside a column with each name once, one that repeats names and lacks others has something else, such as batches.
    """
    known = {*names}
    of_best = _values_of(values[best], asked)
    most = len(known.intersection(values[best]))
    each_once = sorted(known) == sorted(name for name in values[best] if name in known)
    for column, of_column in values.items():
        named = [name for name in of_column if name in known]
        has = len({*named})
        if has < _NEARLY_AS_MANY * most or (each_once and has < min(len(named), len(known))):
            continue
        of_name = _values_of(of_column, asked)
        if any(of_name[name] != of_best[name] for name in known & {*of_name} & {*of_best}):
            raise InputError(
                f"{source}: the columns {best} and {column} both have names of tables, in different rows; rename the "
                f"right one to {REPERTOIRE}"
            )


def _values_of(names: Sequence[str], values: Sequence[str]) -> dict[str, set[str]]:
    """The values of each name, but empty ones."""
    values_of: dict[str, set[str]] = {}
    for name, value in zip(names, values, strict=True):
        if value:
            values_of.setdefault(name, set()).add(value)
    return values_of


def _as_named(value: str, names: Collection[str]) -> str:
    """A value of the metadata as the name that it stands for, of a file or, as spreadsheets write 7, of 7.0."""
    if not value or value in names:
        return value
    whole = value.removesuffix(".0")
    return whole if whole in names else repertoire_name(Path(value))


def title_of(metadata: object) -> object:
    """What messages call a table of metadata: its path, if it is a file."""
    return metadata if isinstance(metadata, str | Path) else "the metadata"


def _text(metadata: object) -> pa.Table:
    """The table with all values as text without blanks around it; missing values, however written, are empty."""
    reader = open_table(metadata) if isinstance(metadata, str | Path) else MemoryReader(_with_names(metadata))
    schema = pa.schema([(name, pa.large_string()) for name in reader.columns])
    table = pa.Table.from_batches([batch.cast(schema) for batch in reader.batches()], schema)
    words = pa.array(sorted(_MISSING), pa.large_string())
    trimmed = map(pc.utf8_trim_whitespace, table.columns)
    columns = [pc.if_else(pc.is_in(pc.utf8_lower(column), words), "", column) for column in trimmed]
    return pa.table(columns, schema=schema)


def _with_names(metadata: Any) -> Any:
    """The metadata; names in the index of a data frame of pandas become a column."""
    index: Any = getattr(metadata, "index", None)
    if getattr(index, "nlevels", 0) != 1 or index.dtype.kind in "biufM":
        return metadata
    named = index.name if index.name not in (None, *metadata.columns) else "the index"
    return metadata.reset_index(names=named)


def columns_in(metadata: object) -> list[str]:
    return list(_text(metadata).column_names)
