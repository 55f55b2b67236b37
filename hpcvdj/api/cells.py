"""Single cells: AnnData objects as scirpy makes them."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hpcvdj.api.counting import count
from hpcvdj.api.parameters import documented
from hpcvdj.api.probabilities import pgen
from hpcvdj.errors import InputError, few
from hpcvdj.recombination.germline import Germline
from hpcvdj.recombination.models import Model
from hpcvdj.results.frames import require
from hpcvdj.results.joining import join
from hpcvdj.results.reader import Result

_CHAIN_FIELDS = ("sequence_id", "v_call", "j_call", "junction", "cdr3")

CELL_COLUMNS = ("pathways_total", "weight", "pgen_nt", "pgen_aa")
"""The columns that cells get by default."""


def primary_chains(
    adata: Any, *, chain: Literal["VDJ", "VJ"] = "VDJ", airr_key: str = "airr", index_key: str = "chain_indices"
) -> Any:
    """The primary chain of each cell as scirpy chose it: a pandas table with a row for each cell that has one.

    Its index has the names of the cells; its columns are those of sequence_id, v_call, j_call, junction and cdr3 that
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


@documented()
def annotate_cells(
    adata: Any,
    counted: Result | Germline | str | Path | None = None,
    *,
    model: Model | str | Path | None = None,
    columns: Collection[str] | Literal["all"] = CELL_COLUMNS,
    chain: Literal["VDJ", "VJ"] = "VDJ",
    airr_key: str = "airr",
    index_key: str = "chain_indices",
    **options: Any,
) -> None:
    """Add the pathways of each cell's primary chain, its generation probability, or both to `adata.obs`.

    adata     an AnnData object as scirpy makes it
    counted   what the chains are counted with, with `options` as of `hpcvdj.count`: {germline}; or a Result, which is
              joined by `sequence_id`
    model     {model}: the probabilities are those with the chain's V and J calls
    columns   of those that `hpcvdj.count` and `hpcvdj.pgen` add, which to add; `all`: also the pathways by n-length
    chain     the primary chain of this kind
    airr_key, index_key  where `adata.obsm` has the receptors and scirpy's choice of chains

    Adds `VDJ_1_pathways_total` and `VDJ_1_weight`, `VDJ_1_pgen_nt` and `VDJ_1_pgen_aa`, or the `columns` asked for;
    with chain="VJ", `VJ_1_…`.  A cell without a value has a null; `VDJ_1_pathways_excluded` and `VDJ_1_pgen_excluded`
    say why.

    Raises InputError if neither `counted` nor `model` is given, for columns that there are not, or for what `adata`
    lacks.
    """
    if counted is None and model is None:
        raise InputError("nothing to add: give a germline table or a result, or model=")
    if options and (counted is None or isinstance(counted, Result)):
        raise InputError(f"{next(iter(options))} applies only where a germline table counts the chains; leave it out")
    table = primary_chains(adata, chain=chain, airr_key=airr_key, index_key=index_key)
    # Contigs of several samples may share ids; here every cell is computed by itself.
    own = table.drop(columns="sequence_id", errors="ignore").fillna("")
    missing = next((name for name in ("v_call", "j_call") if name not in table), None)
    if missing and not (isinstance(counted, Result) and model is None):
        raise InputError(f"adata.obsm[{airr_key!r}] has no field {missing}; read the receptors with scirpy.io")
    annotated = []
    if isinstance(counted, Result):
        annotated.append(join(counted, table))
    elif counted is not None:
        annotated.append(count(own, counted, **options))
    if model is not None:
        annotated.append(pgen(own, model))
    made = {name: done[name] for done in annotated for name in done.columns.drop(table.columns, errors="ignore")}
    for name in _chosen(columns, list(made)):
        column = made[name].reindex(adata.obs_names)
        if name.endswith("_excluded"):
            column = column.astype(object).fillna(f"no primary {chain} chain").astype(str)
        adata.obs[f"{chain}_1_{name}"] = column


def _chosen(columns: Collection[str] | Literal["all"], made: list[str]) -> list[str]:
    """Those of the columns `made` that are asked for, and those that say why there is no value."""
    if columns == "all":
        return made
    asked = {columns} if isinstance(columns, str) else set(columns)
    unknown = asked.difference(made, CELL_COLUMNS if columns is CELL_COLUMNS else ())
    if unknown:
        raise InputError(f"columns: no {', '.join(sorted(unknown))}; there are {few(made, 20)}")
    return [name for name in made if name in asked or name.endswith("_excluded")]
