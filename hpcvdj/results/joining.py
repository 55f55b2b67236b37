"""Counters joined to tables that others made: an AIRR table in pandas, the cells of an AnnData object (scirpy)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.many import REPERTOIRE
from hpcvdj.results.airr_export import EXCLUDED_COLUMN
from hpcvdj.results.file import Result, counter_columns
from hpcvdj.results.selection import Selection, require

NOT_THERE = "not in the result"
"""What `pathways_excluded` says of a row that the result knows nothing of."""

NO_CHAIN = "no primary {} chain"
"""What `pathways_excluded` says of a cell without such a chain."""

_CHAIN_FIELDS = ("sequence_id", "v_call", "j_call", "junction", "cdr3")


def join(result: Result, table: Any, on: Literal["sequence_id", "row"] = "sequence_id") -> Any:
    """A pandas AIRR table with the counters of a result beside it; its rows, order and index stay as they are.

    on  `sequence_id`: rows of `table` take the counters of their id, whatever table it is; of tables that were counted
        together, those of their id in their repertoire, if `table` has a column `repertoire_id`; `row`: row k of
        `table` is data row k of the counted input

    The columns are those that `hpcvdj.count` adds.  A row that the result does not know has no counters, and
    `pathways_excluded` says `not in the result`.  InputError where the table has another junction than was counted.
    """
    require("pandas")
    if not hasattr(table, "assign"):
        raise InputError(f"join takes a pandas DataFrame, not {type(table).__name__}; give table.to_pandas()")
    if on == "row":
        places, reasons = _by_row(result, table)
    elif on == "sequence_id":
        places, reasons = _by_id(result, table)
    else:
        raise InputError(f"on={on!r}: join on sequence_id or row")
    _require_same_sequences(result, table, places)
    return beside(table, _columns(result, places, reasons))


def _by_row(result: Result, table: Any) -> tuple[NDArray[np.int64], list[str]]:
    rows = int(result.provenance["rows_read"])
    if len(table) != rows:
        raise InputError(
            f"{result.path}: counts a table of {rows:,} rows, this one has {len(table):,}; join on sequence_id"
        )
    places = np.full(rows, -1, dtype=np.int64)
    places[result.row] = np.arange(len(result))
    reasons = [""] * rows
    for row, reason in zip(result.excluded.row.tolist(), result.excluded.reason, strict=True):
        reasons[row] = reason
    return places, reasons


def _by_id(result: Result, table: Any) -> tuple[NDArray[np.int64], list[str]]:
    import pandas as pd

    if "sequence_id" not in table:
        raise InputError("the table has no column sequence_id; name it so, or join on='row'")
    said = result.excluded
    texts, asked = result.all().texts("sequence_id"), table["sequence_id"].astype(object)
    reasons, remedy = said.sequence_id, "join on='row'"
    if result.together and REPERTOIRE in table:
        texts = _in_repertoire(result.all().texts(REPERTOIRE), texts)
        asked = pd.Series(_in_repertoire(table[REPERTOIRE], asked), index=table.index, dtype=object)
        reasons = _in_repertoire(said.repertoire_id, reasons)
    elif result.together:
        remedy = f"give the table a column {REPERTOIRE}, or {remedy}"
    ids = pd.Index(texts, dtype=object)
    excluded = dict(zip(reasons, said.reason, strict=True))
    twice = set(ids[ids.duplicated()]) | (set(ids) & excluded.keys())
    clash = next((row for row, name in enumerate(asked) if name in twice), None)
    if clash is not None:
        name = table["sequence_id"].iloc[clash]
        raise InputError(f"{result.path}: sequence_id {name} stands in several rows of the counted table; {remedy}")
    unique = ids.drop_duplicates(keep=False)
    places = np.asarray(pd.Series(np.flatnonzero(~ids.duplicated(keep=False)), index=unique).reindex(asked).fillna(-1))
    return places.astype(np.int64), [excluded.get(name, NOT_THERE) for name in asked]


def _in_repertoire(repertoires: Iterable[Any], ids: Iterable[Any]) -> list[str]:
    """One text for each (repertoire, id), different for different ones."""
    return [f"{len(str(whose))} {whose}{name}" for whose, name in zip(repertoires, ids, strict=True)]


def _require_same_sequences(result: Result, table: Any, places: NDArray[np.int64]) -> None:
    """An id may be reused, a table sorted anew: the sequences tell."""
    name = str(result.provenance.get("sequence_field", "junction"))
    if name not in table:
        return
    found = np.flatnonzero(places >= 0)
    cut = slice(3, -3) if name == "junction" else slice(None)
    there = table[name].iloc[found].astype(object).tolist()
    index, where = np.unique(places[found], return_inverse=True)
    counted = Selection(result, index).texts("cdr3")
    for row, value, place in zip(found.tolist(), there, where.tolist(), strict=True):
        if str(value).strip().upper()[cut] != counted[place]:
            raise InputError(
                f"{result.path}: row {row} of the table has another {name} than was counted ({value}); "
                "join the table that was counted"
            )


def _columns(result: Result, places: NDArray[np.int64], reasons: list[str]) -> dict[str, pa.Array]:
    counted = places >= 0
    index, where = np.unique(places[counted], return_inverse=True)
    counters = np.zeros((len(places), result.max_n + 1), dtype=np.uint64)
    counters[counted] = Selection(result, index).counters[where]
    said = ["" if one else reason for one, reason in zip(counted.tolist(), reasons, strict=True)]
    return {**counter_columns(counters, counted), EXCLUDED_COLUMN: pa.array(said, pa.string())}


def beside(table: Any, columns: dict[str, pa.Array], prefix: str = "") -> Any:
    """A pandas table with columns beside it; those of the same names are replaced."""
    return table.assign(**{prefix + name: pandas_column(name, column) for name, column in columns.items()})


def pandas_column(name: str, column: pa.Array) -> Any:
    """A column of counters as pandas' nullable integers (a float could not hold a 64-bit count), or of text."""
    import pandas as pd

    if name == EXCLUDED_COLUMN:
        return column.to_pylist()
    return pd.arrays.IntegerArray(np.asarray(column.fill_null(0)), np.asarray(column.is_null()))


def primary_chains(
    adata: Any, *, chain: Literal["VDJ", "VJ"] = "VDJ", airr_key: str = "airr", index_key: str = "chain_indices"
) -> Any:
    """The primary chain of each cell as scirpy chose it: a pandas table with a row per cell that has one.

    Its index is the cells' names; its columns are those of sequence_id, v_call, j_call, junction and cdr3 that
    `adata.obsm[airr_key]` has.
    """
    require("pandas")
    require("awkward", "anndata")
    import awkward as ak
    import pandas as pd

    for key, remedy in (
        (airr_key, "read the receptors with scirpy.io, or name the modality: mdata['airr']"),
        (index_key, "choose the chains with scirpy.pp.index_chains(adata)"),
    ):
        if key not in adata.obsm:
            raise InputError(f"adata.obsm has no {key!r}; {remedy}")
    chains = adata.obsm[airr_key]
    primary = adata.obsm[index_key][chain][:, 0]
    fields = [name for name in _CHAIN_FIELDS if name in chains.fields]
    picked = {name: ak.to_list(ak.firsts(chains[name][ak.singletons(primary)])) for name in fields}
    has = ~np.asarray(ak.is_none(primary))
    return pd.DataFrame(picked, index=adata.obs_names, dtype=object)[has]


def annotate_cells(
    adata: Any,
    counted: Result | Germline | str | Path,
    *,
    chain: Literal["VDJ", "VJ"] = "VDJ",
    airr_key: str = "airr",
    index_key: str = "chain_indices",
    **options: Any,
) -> None:
    """Put the pathways of each cell's primary chain into `adata.obs`, for an AnnData object as scirpy makes it.

    counted  a germline table (or its path): the chains are counted here, `options` are those of `hpcvdj.count`;
             or a Result, joined by `sequence_id`

    Adds the columns `VDJ_1_pathways_n0` …, `VDJ_1_pathways_total` (UInt64, null where there is nothing) and
    `VDJ_1_pathways_excluded`; with chain="VJ", `VJ_1_…`.
    """
    import pandas as pd

    table = primary_chains(adata, chain=chain, airr_key=airr_key, index_key=index_key)
    if isinstance(counted, Result):
        if options:
            raise InputError(f"{next(iter(options))} has no meaning for a result that is counted already; leave it out")
        done = join(counted, table)
    else:
        from hpcvdj.api import count

        missing = next((name for name in ("v_call", "j_call") if name not in table), None)
        if missing:
            raise InputError(f"adata.obsm[{airr_key!r}] has no field {missing}; read the receptors with scirpy.io")
        # Contigs of several samples may share ids; here every cell counts for itself.
        done = count(table.drop(columns="sequence_id", errors="ignore").fillna(""), counted, **options)
    for name in [name for name in done if name.startswith("pathways_")]:
        column = done[name].reindex(adata.obs_names)
        if name == EXCLUDED_COLUMN:
            column = pd.Series(column.astype(object).fillna(NO_CHAIN.format(chain)), dtype=str)
        adata.obs[f"{chain}_1_{name}"] = column
