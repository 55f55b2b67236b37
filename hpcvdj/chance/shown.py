"""Answers as notebooks show them."""

from html import escape
from typing import Any

import pyarrow as pa

ROWS = 10
"""Rows of a table that are shown."""


class Shown:
    """An answer whose `table` notebooks show: what it is in a line, and the first rows."""

    table: Any

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{table_html(self.table)}"


def table_html(table: pa.Table) -> str:
    """The first rows of a table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = ("".join(f"<td>{_text(value)}</td>" for value in row.values()) for row in table.slice(0, ROWS).to_pylist())
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    more = f"<p>{table.num_rows:,} rows, of which {ROWS} are shown</p>" if table.num_rows > ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _text(value: Any) -> str:
    """A value with four digits; nothing for one that is missing."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
