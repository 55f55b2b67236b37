"""Tables of samples as custom content of MultiQC, a file for each table."""

from collections.abc import Sequence
from typing import Any

from hpcvdj.reports.elements import PageTable, Section

ENDING = "_mqc.json"
"""The end of the names by which MultiQC finds its files."""


def custom_content(sections: Sequence[Section]) -> dict[str, dict[str, Any]]:
    """The tables of a page that have a row for each sample, in MultiQC's format, by the name of the file.

    See docs.seqera.io/multiqc/custom_content for the format.
    """
    tables = [table for section in sections for table in [*section.tables, *section.folded]]
    return {f"hpcvdj_{table.name}{ENDING}": _content(table) for table in tables if _of_samples(table)}


def _of_samples(table: PageTable) -> bool:
    """Whether a table has one row for each sample, with something else than its name."""
    if not table.rows or len(table.columns) < 2 or table.columns[0].key not in ("sample", "individual"):
        return False
    return len({row[0] for row in table.rows}) == len(table.rows)


def _content(table: PageTable) -> dict[str, Any]:
    values = table.columns[1:]
    name = f"hpcvdj_{table.name}"
    return {
        "id": name,
        "section_name": f"hpcvdj: {table.caption}",
        "plot_type": "table",
        "pconfig": {"id": f"{name}_shown", "title": f"hpcvdj: {table.caption}"},
        "headers": {column.key: {"title": column.title} for column in values},
        "data": {
            str(row[0]): {column.key: cell for column, cell in zip(values, row[1:], strict=True) if cell is not None}
            for row in table.rows
        },
    }
