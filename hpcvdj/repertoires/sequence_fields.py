"""The fields in which tables have the sequences of junctions: nucleotides, or amino acids only."""

from collections.abc import Sequence
from contextlib import suppress
from typing import get_args

import pyarrow.compute as pc

from hpcvdj.errors import InputError, log
from hpcvdj.recombination.repertoire import JunctionField
from hpcvdj.repertoires.batches import without_missing
from hpcvdj.repertoires.table import Table

FIELDS: tuple[JunctionField, ...] = get_args(JunctionField)
"""The fields, in order of preference."""


def first_fields(tables: Sequence[Table]) -> list[JunctionField]:
    """The fields of the first table that can be read; none if no table can."""
    for table in tables:
        with suppress(InputError):
            return fields_of(table)
    return []


def common_fields(tables: Sequence[Table]) -> list[JunctionField]:
    """The fields that all tables have.  A table that cannot be read is ignored: reading it raises the error later.

    Logs a warning if only some tables have nucleotides.
    InputError if tables have sequences, and no field in common.
    """
    common: list[JunctionField] = []
    first, named = None, dict[bool, Table]()
    for table in tables:
        fields: list[JunctionField] = []
        with suppress(InputError):
            fields = fields_of(table)
        if fields:
            named.setdefault("junction" in fields, table)
        if first is None or not common:
            common, first = fields, table
        elif fields and not set(common) & set(fields):
            raise InputError(
                f"{table.path}: has {', '.join(fields)}, and {first.path} has {', '.join(common)}: give tables that "
                "all have nucleotides (junction), or all amino acids (junction_aa)"
            )
        elif fields:
            common = [field for field in common if field in fields]
    if len(named) == 2:
        log.warning(
            "%s has no junction in nucleotides, and %s has; leave such tables out to read nucleotides",
            named[False].path, named[True].path,
        )  # fmt: skip
    return common


def fields_of(table: Table) -> list[JunctionField]:
    """The fields of a table that are not empty in its first rows, or all its fields if all are empty.

    AIRR tables have the column `junction` even without nucleotides.
    """
    reader = table.open()
    fields: list[JunctionField] = [field for field in FIELDS if field in reader.columns]
    if len(fields) < 2:
        return fields
    rows = next(iter(reader.first_batches(fields)), None)
    if rows is None:
        return fields
    filled = [field for field in fields if pc.any(pc.not_equal(without_missing(rows.column(field)), "")).as_py()]
    return filled or fields
