"""Tables of samples for MultiQC: its custom content, a file for each table."""

from collections.abc import Sequence
from typing import Any

from hpcvdj.reports.elements import Section, Table

ENDING = "_mqc.json"
"""How MultiQC knows a file."""

_NAMES = ("sample", "individual")


def custom_content(sections: Sequence[Section]) -> dict[str, dict[str, Any]]:
    """What MultiQC shows of a page, by the name of the file: the tables that have a row for each sample.

    See docs.seqera.io/multiqc/custom_content for the format.
    """
    tables = [table for section in sections for table in [*section.tables, *section.folded]]
    return {f"hpcvdj_{table.name}{ENDING}": _content(table) for table in tables if _of_samples(table)}


def _of_samples(table: Table) -> bool:
    """Whether a table has one row for each sample, and something of it."""
    keys = [column.key for column in table.columns]
    if not table.rows or len(keys) < 2 or keys[0] not in _NAMES:
        return False
    names = [row[0] for row in table.rows]
    return len({*names}) == len(names)


def _content(table: Table) -> dict[str, Any]:
    numbers = table.columns[1:]
    name = f"hpcvdj_{table.name}"
    return {
        "id": name,
        "section_name": f"hpcvdj: {table.caption}",
        "plot_type": "table",
        "pconfig": {"id": f"{name}_shown", "title": f"hpcvdj: {table.caption}"},
        "headers": {column.key: {"title": column.title} for column in numbers},
        "data": {
            str(row[0]): {column.key: cell for column, cell in zip(numbers, row[1:], strict=True) if cell is not None}
            for row in table.rows
        },
    }
