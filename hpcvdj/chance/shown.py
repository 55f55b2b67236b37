"""The display of answers in notebooks."""

from html import escape
from typing import Any

import pyarrow as pa

ROWS = 10
"""The number of rows of a table that are shown."""


class Shown:
    """An answer that notebooks show as a line of text and the first rows of its `table`."""

    table: Any

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{table_html(self.table)}"


def table_html(table: pa.Table) -> str:
    """Return the first rows of a table as HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = ("".join(f"<td>{_text(value)}</td>" for value in row.values()) for row in table.slice(0, ROWS).to_pylist())
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    more = f"<p>{table.num_rows:,} rows, of which {ROWS} are shown</p>" if table.num_rows > ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _text(value: Any) -> str:
    """Return a value with four digits as HTML; empty if it is missing."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
