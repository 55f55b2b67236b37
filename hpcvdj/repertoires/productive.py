"""Which rows of a table are productive, by its column `productive`, else by the junction."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.recombination.productive import PRODUCTIVE

COLUMN = "productive"

TRUE, FALSE = ("true", "t", "1", "1.0", "yes", "y"), ("false", "f", "0", "0.0", "no", "n")
"""True and false as Python, Rust, R, Excel and people spell them, in lower case."""


def telling_column(columns: Sequence[str], sequence_field: str) -> str | None:
    """The column of a table that determines which rows are productive; None if no column does."""
    return next((name for name in (COLUMN, sequence_field) if name in columns and name in (COLUMN, *PRODUCTIVE)), None)


def productive_rows(column: pa.Array, name: str) -> pa.Array:
    """Whether each row is productive, by its text in the column `name`, as of `telling_column`; null stays null."""
    if name == COLUMN:
        true = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(column)), value_set=pa.array(TRUE, column.type))
        return pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), true)
    return pc.match_substring_regex(column, PRODUCTIVE[name], ignore_case=True)


def marked_rows(column: pa.Array) -> NDArray[np.int64]:
    """The rows that their text in the column `productive` says are not productive."""
    words = [word for word in pc.unique(column).to_pylist() if str(word).strip().lower() in FALSE]
    false = pc.is_in(column, value_set=pa.array(words, column.type))
    return np.flatnonzero(false.to_numpy(zero_copy_only=False))
