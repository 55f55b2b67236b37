"""Values beside tables: by input row for the counted table, by sequence_id for other tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import ExcludedRows
from hpcvdj.recombination.repertoire import ANCHOR_BASES
from hpcvdj.repertoires.junctions import REPERTOIRE
from hpcvdj.repertoires.tables import as_strings
from hpcvdj.results.selection import Selection, require, value_columns

if TYPE_CHECKING:
    from hpcvdj.results.reader import Result

NOT_IN_RESULT = "not in the result"
"""What the column of exclusions says of a row that the result does not have."""


class Lookup:
    """Values by input row.

    values    [counted, columns], in the order of `row`, int64 [counted]: the input row of each
    excluded  the other rows
    further   more columns [counted] by name
    """

    def __init__(
        self,
        quantity: Quantity,
        values: NDArray[Any],
        row: NDArray[np.int64],
        excluded: ExcludedRows,
        further: dict[str, NDArray[Any]] | None = None,
    ) -> None:
        self.quantity, self.values, self.further = quantity, values, further or {}
        self._order = np.argsort(row, kind="stable")
        self._row = row[self._order]
        self._excluded_row, self._messages = excluded.row, excluded.messages

    def columns(self, first: int, rows: int) -> dict[str, pa.Array]:
        """The columns of input rows `first` … `first + rows - 1`, and why rows were excluded."""
        low, high = np.searchsorted(self._row, (first, first + rows))
        source = self._order[low:high]
        target = self._row[low:high] - first
        counted = np.zeros(rows, dtype=bool)
        counted[target] = True
        values = np.zeros((rows, self.values.shape[1]), dtype=self.values.dtype)
        values[target] = self.values[source]
        columns = {}
        for name, column in self.further.items():
            spread = np.zeros(rows, dtype=column.dtype)
            spread[target] = column[source]
            texts = spread.astype(str) if spread.dtype.kind == "S" else spread
            columns[name] = pa.array(texts, mask=~counted)
        messages = np.full(rows, "", dtype=object)
        low, high = np.searchsorted(self._excluded_row, (first, first + rows))
        messages[self._excluded_row[low:high] - first] = self._messages[low:high]
        named = value_columns(self.quantity, values, counted)
        return columns | named | {self.quantity.excluded: pa.array(messages, pa.string())}

    def beside(self, batch: pa.RecordBatch, first: int, *, text: bool) -> pa.RecordBatch:
        """`batch`, whose first row is input row `first`, with the columns beside it (all as text, or typed)."""
        extra = pa.RecordBatch.from_pydict(self.columns(first, batch.num_rows))
        batch, extra = (as_strings(part) if text else part for part in (batch, extra))
        return pa.RecordBatch.from_arrays(
            [*batch.columns, *extra.columns], names=[*batch.schema.names, *extra.schema.names]
        )


def beside(original: Any, table: pa.Table, columns: dict[str, pa.Array]) -> Any:
    """A table of the kind of `original`, pandas or pyarrow (`table`), with columns beside it, replacing equal names."""
    if type(original).__module__.partition(".")[0] == "pandas":
        return original.assign(**{name: pandas_column(column) for name, column in columns.items()})
    for name, column in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, column)
    return table


def pandas_column(column: pa.Array) -> Any:
    """Integers as pandas' nullable ones (a float could not hold a 64-bit count), other values as objects."""
    import pandas as pd

    if not pa.types.is_integer(column.type):
        return column.to_pylist()
    return pd.arrays.IntegerArray(np.asarray(column.fill_null(0)), np.asarray(column.is_null()))


def join(result: Result, table: Any, on: Literal["sequence_id", "row"] = "sequence_id") -> Any:
    """A pandas AIRR table with the values of a result beside it; its rows, order and index stay as they are.

    on  `sequence_id`: each row of `table` gets the values of its id, in any table; in a result of tables that
        were counted together, those of its id in its repertoire, if `table` has a column `repertoire_id`.  `row`: row
        k of `table` is data row k of the counted input

    The columns are those that `hpcvdj.count` adds.  A row that the result does not have gets no values, and
    `pathways_excluded` says `not in the result`.  InputError where the table has another junction than was counted.
    """
    require("pandas")
    if not hasattr(table, "assign"):
        raise InputError(f"join takes a pandas DataFrame, not {type(table).__name__}; give table.to_pandas()")
    if on == "row":
        places, messages = _by_row(result, table)
    elif on == "sequence_id":
        places, messages = _by_id(result, table)
    else:
        raise InputError(f"on={on!r}: join on sequence_id or row")
    _require_same_sequences(result, table, places)
    return beside(table, None, _columns(result, places, messages))


def _by_row(result: Result, table: Any) -> tuple[NDArray[np.int64], list[str]]:
    rows = int(result.provenance["rows_read"])
    if len(table) != rows:
        raise InputError(
            f"{result.path}: counts a table of {rows:,} rows, this table has {len(table):,}; join on sequence_id"
        )
    places = np.full(rows, -1, dtype=np.int64)
    places[result.row] = np.arange(len(result))
    messages = [""] * rows
    excluded = result.excluded
    for row, message in zip(excluded.row.tolist(), excluded.messages, strict=True):
        messages[row] = message
    return places, messages


def _by_id(result: Result, table: Any) -> tuple[NDArray[np.int64], list[str]]:
    import pandas as pd

    if "sequence_id" not in table:
        raise InputError("the table has no column sequence_id; rename the column of ids, or join on='row'")
    excluded = result.excluded
    counted_ids, asked = result.all().texts("sequence_id"), table["sequence_id"].astype(object)
    excluded_ids, remedy = list(excluded.sequence_id), "join on='row'"
    if result.together and REPERTOIRE in table:
        counted_ids = _in_repertoire(result.all().texts(REPERTOIRE), counted_ids)
        asked = pd.Series(_in_repertoire(table[REPERTOIRE], asked), index=table.index, dtype=object)
        excluded_ids = _in_repertoire(excluded.repertoire_id, excluded_ids)
    elif result.together:
        remedy = f"give the table a column {REPERTOIRE}, or {remedy}"
    ids = pd.Index(counted_ids, dtype=object)
    messages = dict(zip(excluded_ids, excluded.messages, strict=True))
    ambiguous = set(ids[ids.duplicated()]) | (set(ids) & messages.keys())
    clash = next((row for row, name in enumerate(asked) if name in ambiguous), None)
    if clash is not None:
        name = table["sequence_id"].iloc[clash]
        raise InputError(f"{result.path}: several rows of the counted table have sequence_id {name}; {remedy}")
    unique = ids.drop_duplicates(keep=False)
    places = np.asarray(pd.Series(np.flatnonzero(~ids.duplicated(keep=False)), index=unique).reindex(asked).fillna(-1))
    return places.astype(np.int64), [messages.get(name, NOT_IN_RESULT) for name in asked]


def _in_repertoire(repertoires: Iterable[Any], ids: Iterable[Any]) -> list[str]:
    """One text for each (repertoire, id), different for different ones."""
    return [f"{len(str(name))} {name}{own}" for name, own in zip(repertoires, ids, strict=True)]


def _require_same_sequences(result: Result, table: Any, places: NDArray[np.int64]) -> None:
    """Ids may be reused, and tables sorted again: compare the sequences."""
    name = str(result.provenance.get("sequence_field", "junction"))
    if name not in table:
        return
    known = np.flatnonzero(places >= 0)
    trim = ANCHOR_BASES.get(name, 0)
    own = table[name].iloc[known].astype(object).tolist()
    index, inverse = np.unique(places[known], return_inverse=True)
    counted = Selection(result, index).texts("cdr3")
    for row, value, place in zip(known.tolist(), own, inverse.tolist(), strict=True):
        sequence = str(value).strip().upper()
        if sequence[trim : len(sequence) - trim] != counted[place]:
            raise InputError(
                f"{result.path}: row {row} of the table has another {name} than was counted ({value}); "
                "join the table that was counted"
            )


def _columns(result: Result, places: NDArray[np.int64], messages: list[str]) -> dict[str, pa.Array]:
    counted = places >= 0
    index, inverse = np.unique(places[counted], return_inverse=True)
    values = np.zeros((len(places), result.counters.shape[1]), dtype=result.counters.dtype)
    values[counted] = Selection(result, index).counters[inverse]
    shown = ["" if known else message for known, message in zip(counted.tolist(), messages, strict=True)]
    return value_columns(result.quantity, values, counted) | {result.quantity.excluded: pa.array(shown, pa.string())}
