"""In which fields tables have the sequences of their junctions: nucleotides, or amino acids only."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from hpcvdj.errors import InputError
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import files_of
from hpcvdj.repertoires.readers import open_table
from hpcvdj.repertoires.tables import as_arrow, table_batches, table_columns

FIELDS: tuple[JunctionField, ...] = get_args(JunctionField)
"""In the order in which they are looked for."""


def first_fields(paths: Sequence[Path], opening: Opening = BY_HEADER) -> list[JunctionField]:
    """The fields of the first of the tables at `paths` that can be read; none if no table can."""
    for file in files_of(paths, opening, warn=False):
        with suppress(InputError):
            return _fields_at(file, opening)
    return []


def common_fields(paths: Sequence[Path], opening: Opening = BY_HEADER) -> list[JunctionField]:
    """The fields that all tables at `paths` have; what cannot be read is named when all of it is read.

    InputError if tables have sequences, and no field in common.
    """
    common: list[JunctionField] = []
    first = None
    for file in files_of(paths, opening, warn=False):
        with suppress(InputError):
            fields = _fields_at(file, opening)
            if not common:
                common, first = fields, file
            elif fields:
                kept = [field for field in common if field in fields]
                if not kept:
                    break
                common = kept
    else:
        return common
    raise InputError(
        f"{file}: has {', '.join(fields)}, and {first} has {', '.join(common)}: give tables that all have nucleotides "
        "(junction), or all amino acids (junction_aa)"
    )


def fields_of_table(table: Any, opening: Opening = BY_HEADER) -> list[JunctionField]:
    """The fields of a table in memory."""
    arrow = as_arrow(table)
    return _filled(table_columns(arrow, opening), lambda fields: table_batches(arrow, fields, opening))


def _fields_at(path: Path, opening: Opening) -> list[JunctionField]:
    table = open_table(path, opening)
    return _filled(table.columns, table.first_batches)


def _filled(
    columns: Sequence[str], batches: Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
) -> list[JunctionField]:
    """The fields among some columns, without those that are empty in the rows in which another one is not.

    AIRR tables have the column `junction` even if nucleotides are not known.

    batches  the first rows with some columns
    """
    fields: list[JunctionField] = [field for field in FIELDS if field in columns]
    if len(fields) < 2:
        return fields
    rows = next(iter(batches(fields)), None)
    if rows is None:
        return fields
    filled = [field for field in fields if pc.any(pc.not_equal(rows.column(field), "")).as_py()]
    return filled or fields
