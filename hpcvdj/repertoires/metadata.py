"""What a table of metadata says of samples: their groups, and whose they are."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from hpcvdj.errors import InputError, few, option
from hpcvdj.repertoires.formats.format import otherwise_separated
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.readers import MemoryReader, open_table
from hpcvdj.repertoires.tables import repertoire_name


def column_of(metadata: object, group: str, names: Sequence[str], what: str = "group") -> dict[str, str]:
    """The group of each individual, or the subject of each sample, as of `listed_in`; InputError if a name has none."""
    listed = listed_in(metadata, group, names, what)
    lacking = [name for name in names if name not in listed]
    if lacking:
        raise InputError(
            f"{_source(metadata)}: no {what} for {few(lacking)}; it needs a row for each individual, with its name in "
            f"one column and its {what} in {group}"
        )
    return listed


def listed_in(metadata: object, group: str, names: Sequence[str], what: str = "group") -> dict[str, str]:
    """The group of each individual, or the subject of each sample, that a table of metadata lists.

    metadata  a table, or the path of one: a row for each
    group     its column
    names     as one of its columns has them, or file names
    what      `group` or `subject`

    InputError if a column is missing, or if a name has two groups.
    """
    source = _source(metadata)
    table = _text(metadata)
    if group not in table.column_names:
        there = otherwise_separated(table.column_names) or f"there are {few(table.column_names, 40)}"
        raise InputError(f"{source}: no column {group} ({option(what)}); {there}")
    listed: dict[str, str] = {}
    for name, value in zip(_named(table, names, group), table[group].to_pylist(), strict=False):
        if name in names and value and listed.setdefault(name, value) != value:
            raise InputError(f"{source}: {name} has the {what}s {listed[name]} and {value}; correct the column {group}")
    wrong = next(
        (
            value
            for value in listed.values()
            if (value == "individuals" and what == "group") or set(value) & set("\t\r\n")
        ),
        None,
    )
    if wrong is not None:
        raise InputError(f"{source}: a {what} cannot be called {wrong!r}, as columns are named by it; rename it")
    return listed


def others_in(metadata: object, names: Sequence[str]) -> list[str]:
    """What the column of names has besides `names`: rows of a table of metadata that none of them has."""
    return [name for name in dict.fromkeys(_named(_text(metadata), names)) if name and name not in names]


def _named(table: pa.Table, names: Sequence[str], group: str = "") -> list[str]:
    """The column that has most of the names, or of their files, AIRR's own before others; `group` is none of names."""
    columns = sorted((name for name in table.column_names if name != group), key=lambda name: name != REPERTOIRE)
    values = {name: [_plain(value, names) for value in table[name].to_pylist()] for name in columns}
    naming = max(columns, key=lambda name: len({*values[name]} & {*names}), default="")
    return values.get(naming, [])


def _source(metadata: object) -> object:
    return metadata if isinstance(metadata, str | Path) else "the metadata"


def _plain(value: str, names: Sequence[str]) -> str:
    """A name, or that of a file."""
    return value if value in names else repertoire_name(Path(value)) if value else value


def _text(metadata: object) -> pa.Table:
    """The table with all values as text."""
    reader = open_table(metadata) if isinstance(metadata, str | Path) else MemoryReader(metadata)
    schema = pa.schema([(name, pa.large_string()) for name in reader.columns])
    return pa.Table.from_batches([batch.cast(schema) for batch in reader.batches()], schema)


def columns_in(metadata: object) -> list[str]:
    """The columns of a table of metadata."""
    return list(_text(metadata).column_names)
