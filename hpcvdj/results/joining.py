"""Join the values of a result to tables: by input row to the counted table, by sequence_id to other tables."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError, log, require_choice
from hpcvdj.recombination.calls import names_in
from hpcvdj.recombination.names import normal_name
from hpcvdj.recombination.repertoire import ANCHOR_LETTERS
from hpcvdj.repertoires.readers import as_arrow
from hpcvdj.repertoires.table import REPERTOIRE
from hpcvdj.results.frames import beside
from hpcvdj.results.lookup import columns_at
from hpcvdj.results.selection import Selection

if TYPE_CHECKING:
    from hpcvdj.results.reader import Result


def join(result: "Result", table: Any, on: Literal["sequence_id", "row"] = "sequence_id") -> Any:
    """Return an AIRR table (pandas, polars or pyarrow) with the values of a result beside its columns.

    on  `sequence_id`: each row of `table` gets the values of its id, in any table.  In a result of tables that were
        counted together, it gets those of its id in its repertoire, if `table` has a column `repertoire_id`.
        `row`: row k of `table` is data row k of the counted input

    Returns a table of the same kind with its rows in the same order; a pandas index stays as it is.  The columns are
    those that `hpcvdj.count` adds.  A row that the result lacks gets no values, and `pathways_excluded` says `not in
    the result`.  Warns if V or J calls of the table are of other genes than were counted.  Raises InputError if a
    junction of the table differs from the counted junction.
    """
    require_choice("on", on, ("sequence_id", "row"))
    arrow = as_arrow(table)
    positions, messages = (_by_row if on == "row" else _by_id)(result, arrow)
    _require_same_sequences(result, arrow, positions)
    _tell_other_calls(result, arrow, positions)
    counted = positions >= 0
    index, positions[counted] = np.unique(positions[counted], return_inverse=True)
    columns = columns_at(result.quantity, Selection(result, index).counters, positions, pa.array(messages, pa.string()))
    return beside(table, arrow, columns)


def _by_row(result: "Result", table: pa.Table) -> tuple[NDArray[np.int64], Iterable[str]]:
    rows = int(result.provenance["rows_read"])
    if len(table) != rows:
        raise InputError(
            f"{result.path}: is of a table of {rows:,} rows, but this table has {len(table):,}; join on sequence_id"
        )
    positions = np.full(rows, -1, dtype=np.int64)
    positions[result.row] = np.arange(len(result))
    messages, excluded = np.full(rows, "", dtype=object), result.excluded
    messages[excluded.row] = excluded.messages
    return positions, messages


def _by_id(result: "Result", table: pa.Table) -> tuple[NDArray[np.int64], Iterable[str]]:
    if "sequence_id" not in table.column_names:
        raise InputError("the table has no column sequence_id; rename the column of ids, or join on='row'")
    excluded = result.excluded
    # Ids in a file are text; pandas reads those that look like numbers as numbers.
    ids = table["sequence_id"].cast(pa.string()).to_pylist()
    counted_ids, asked = result.all().texts("sequence_id"), ids
    excluded_ids, remedy = excluded.sequence_id, "join on='row'"
    if result.together and REPERTOIRE in table.column_names:
        counted_ids = _in_repertoire(result.all().texts(REPERTOIRE), counted_ids)
        asked = _in_repertoire(table[REPERTOIRE].cast(pa.string()).to_pylist(), ids)
        excluded_ids = _in_repertoire(excluded.repertoire_id, excluded_ids)
    elif result.together:
        remedy = f"give the table a column {REPERTOIRE}, or {remedy}"
    position_of = {name: position for position, name in enumerate(counted_ids)}
    messages = dict(zip(excluded_ids, excluded.messages, strict=True))
    ambiguous = {name for name, rows in Counter(counted_ids).items() if rows > 1} | (
        position_of.keys() & messages.keys()
    )
    clash = next((row for row, name in enumerate(asked) if name in ambiguous), None)
    if clash is not None:
        raise InputError(f"{result.path}: several rows of the counted table have sequence_id {ids[clash]}; {remedy}")
    positions = np.array([position_of.get(name, -1) for name in asked], dtype=np.int64)
    return positions, ["" if name in position_of else messages.get(name, "not in the result") for name in asked]


def _in_repertoire(repertoires: Iterable[Any], ids: Iterable[Any]) -> list[str]:
    """Return a text for each (repertoire, id); different pairs have different texts."""
    return [f"{len(str(name))} {name}{sequence_id}" for name, sequence_id in zip(repertoires, ids, strict=True)]


def _require_same_sequences(result: "Result", table: pa.Table, positions: NDArray[np.int64]) -> None:
    """Raise InputError if sequences differ: tables may reuse ids, and users may have sorted them."""
    name = str(result.provenance.get("sequence_field", "junction"))
    if name not in table.column_names:
        return
    rows = np.flatnonzero(positions >= 0)
    trim = ANCHOR_LETTERS.get(name, 0)
    values = table[name].take(pa.array(rows)).to_pylist()
    index, inverse = np.unique(positions[rows], return_inverse=True)
    counted = Selection(result, index).texts("cdr3")
    for row, value, position in zip(rows.tolist(), values, inverse.tolist(), strict=True):
        sequence = str(value).strip().upper()
        if sequence[trim : len(sequence) - trim] != counted[position].upper():
            raise InputError(
                f"{result.path}: row {row} of the table has the {name} {value}, but another was counted; "
                "join the table that was counted"
            )


def _tell_other_calls(result: "Result", table: pa.Table, positions: NDArray[np.int64]) -> None:
    """Warn of rows whose V or J call is of another gene than was counted."""
    rows = np.flatnonzero(positions >= 0)
    index, inverse = np.unique(positions[rows], return_inverse=True)
    others, example = np.zeros(len(rows), dtype=bool), ""
    for name in [name for name in ("v_call", "j_call") if name in table.column_names]:
        of_counted = Selection(result, index).texts(name)
        pairs = list(zip(table[name].take(pa.array(rows)).to_pylist(), inverse.tolist(), strict=True))
        for row, (call, position) in enumerate(pairs):
            if not _same_gene(str(call or ""), of_counted[position]):
                others[row], example = True, example or f"{call} for {of_counted[position]}"
    if example:
        log.warning(
            "%s: %s rows of the table have a V or J call of another gene than was counted, such as %s: count the table "
            "again", result.path, f"{others.sum():,}", example,
        )  # fmt: skip


@cache
def _same_gene(call: str, counted: str) -> bool:
    """Return whether a call may be of a counted allele's gene.  A family, or no call at all, may be."""
    genes = [[normal_name(name.partition("*")[0]) for name in (text, *names_in(text))] for text in (call, counted)]
    return not names_in(call) or any(a.startswith(b) or b.startswith(a) for a, b in product(*genes))
