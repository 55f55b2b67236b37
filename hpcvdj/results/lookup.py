"""Values by input row, as columns of tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import ExcludedRows


def require_new_columns(columns: Sequence[str], path: Path, quantity: Quantity, width: int) -> None:
    """Raise InputError if a table already has a column that its values will get."""
    values = value_columns(quantity, np.zeros((0, width), quantity.dtype))
    clash = next((name for name in (*values, quantity.excluded) if name in columns), None)
    if clash is not None:
        raise InputError(f"{path}: has a column {clash} already; rename it, or count the original table")


class Lookup:
    """Values by input row.

    values    [counted, columns]: values, in the order of `row`
    row       int64 [counted]: the input row of each sequence
    excluded  the other rows
    """

    def __init__(
        self, quantity: Quantity, values: NDArray[Any], row: NDArray[np.int64], excluded: ExcludedRows
    ) -> None:
        self.quantity, self.values = quantity, values
        rows = max((int(named.max()) + 1 for named in (row, excluded.row) if len(named)), default=0)
        self._positions = np.full(rows, -1, dtype=np.int64)
        self._positions[row] = np.arange(len(row))
        self._excluded_row, self._messages = excluded.row, excluded.messages

    def columns(self, first: int, rows: int) -> dict[str, pa.Array]:
        """Return the columns of input rows `first` … `first + rows - 1`, and why rows were excluded."""
        positions = self._positions[first : first + rows]
        low, high = np.searchsorted(self._excluded_row, (first, first + rows))
        messages = pa.repeat("", rows)
        if low < high:
            texts = np.full(rows, "", dtype=object)
            texts[self._excluded_row[low:high] - first] = self._messages[low:high]
            messages = pa.array(texts, pa.string())
        return columns_at(self.quantity, self.values, positions, messages)


def columns_at(
    quantity: Quantity, values: NDArray[Any], positions: NDArray[np.int64], messages: pa.Array
) -> dict[str, pa.Array]:
    """Return the columns of rows by their positions in `values`, -1 for none, and the messages of excluded rows."""
    spread = np.zeros((len(positions), *values.shape[1:]), dtype=values.dtype)
    spread[positions >= 0] = values[positions[positions >= 0]]
    named = value_columns(quantity, spread, positions >= 0)
    return named | {quantity.excluded: messages}


def value_columns(
    quantity: Quantity, values: NDArray[Any], counted: NDArray[np.bool_] | None = None
) -> dict[str, pa.Array]:
    """Return values and what derives from them as named columns, with null for NaN and where `counted` is false."""
    mask = None if counted is None else ~counted
    named = dict(zip(quantity.columns(values.shape[1]), values.T, strict=True)) | quantity.derived(values)
    return {name: _nullable(np.ascontiguousarray(column), mask) for name, column in named.items()}


def _nullable(values: NDArray[Any], mask: NDArray[np.bool_] | None) -> pa.Array:
    if values.dtype.kind == "f":
        mask = np.isnan(values) if mask is None else mask | np.isnan(values)
    return pa.array(values, mask=mask)
