"""In which fields tables have the sequences of their junctions: nucleotides, or amino acids only."""

from collections.abc import Sequence
from contextlib import suppress
from typing import get_args

import pyarrow.compute as pc

from hpcvdj.errors import InputError
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.tables import Table

FIELDS: tuple[JunctionField, ...] = get_args(JunctionField)
"""In the order in which they are looked for."""


def first_fields(tables: Sequence[Table]) -> list[JunctionField]:
    """The fields of the first of the tables that can be read; none if no table can."""
    for table in tables:
        with suppress(InputError):
            return fields_of(table)
    return []


def common_fields(tables: Sequence[Table]) -> list[JunctionField]:
    """The fields that all tables have; what cannot be read is named when all of it is read.

    InputError if tables have sequences, and no field in common.
    """
    common: list[JunctionField] = []
    first = None
    for table in tables:
        with suppress(InputError):
            fields = fields_of(table)
            if not common:
                common, first = fields, table
            elif fields:
                kept = [field for field in common if field in fields]
                if not kept:
                    break
                common = kept
    else:
        return common
    assert first is not None
    raise InputError(
        f"{table.path}: has {', '.join(fields)}, and {first.path} has {', '.join(common)}: give tables that all have "
        "nucleotides (junction), or all amino acids (junction_aa)"
    )


def fields_of(table: Table) -> list[JunctionField]:
    """The fields of a table, without those that are empty in the first rows, in which another one is not.

    AIRR tables have the column `junction` even if nucleotides are not known.
    """
    reader = table.open()
    fields: list[JunctionField] = [field for field in FIELDS if field in reader.columns]
    if len(fields) < 2:
        return fields
    rows = next(iter(reader.first_batches(fields)), None)
    if rows is None:
        return fields
    filled = [field for field in fields if pc.any(pc.not_equal(rows.column(field), "")).as_py()]
    return filled or fields
