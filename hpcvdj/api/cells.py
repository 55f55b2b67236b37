"""Annotate single cells: AnnData objects as scirpy makes them."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from hpcvdj.api.counting import count
from hpcvdj.api.known_cells import COLUMNS, annotated_cells, without_earlier
from hpcvdj.api.parameters import documented
from hpcvdj.api.probabilities import pgen
from hpcvdj.errors import InputError, few, require_choice
from hpcvdj.recombination.germline import Germline
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.read_counts import CELL_READS, READS
from hpcvdj.results.frames import require
from hpcvdj.results.joining import join
from hpcvdj.results.reader import Result

Kind = Literal["VDJ", "VJ"]

KINDS: tuple[Kind, ...] = get_args(Kind)

_SEQUENCES = ("junction", "cdr3", "junction_aa")

_CHAIN_FIELDS = ("sequence_id", "v_call", "j_call", *_SEQUENCES)

_READ = "read the receptors with scirpy.io"

OURS = re.compile(f"(VD?J_1|pair)_(pathways|weight|pgen|{'|'.join(COLUMNS)})")
"""The names of columns that `annotate_cells` adds."""

CELL_COLUMNS = ("pathways_total", "weight", "pgen_nt", "pgen_aa")
"""The columns that cells get by default."""


def primary_chains(adata: Any, *, chain: Kind = "VDJ", airr_key: str = "airr", index_key: str = "chain_indices") -> Any:
    """Return the primary chains that scirpy chose, as a pandas table with a row for each cell that has one.

    The index has the names of the cells.  The columns are those of sequence_id, v_call, j_call, junction, cdr3,
    junction_aa, and duplicate_count or umi_count, as duplicate_count, that `adata.obsm[airr_key]` has.
    """
    require("pandas")
    require("awkward", "anndata")
    require_choice("chain", chain, KINDS)
    if not hasattr(adata, "obsm"):
        raise InputError(f"cells are in an AnnData or MuData object, not in a {type(adata).__name__}; {_READ}")
    import awkward as ak
    import pandas as pd

    for key, remedy in (
        (airr_key, f"{_READ}, or name the modality: mdata['airr']"),
        (index_key, "choose the chains with scirpy.pp.index_chains(adata)"),
    ):
        if key not in adata.obsm:
            raise InputError(f"adata.obsm has no {key!r}; {remedy}")
    if not adata.obs_names.is_unique:
        raise InputError("cells have the same name; adata.obs_names_make_unique() gives each its own")
    chains = adata.obsm[airr_key]
    primary = adata.obsm[index_key][chain][:, 0]
    fields = {name: name for name in _CHAIN_FIELDS if name in chains.fields}
    fields |= [(READS, name) for name in CELL_READS if name in chains.fields]
    try:
        picked = {name: ak.to_list(ak.firsts(chains[of][ak.singletons(primary)])) for name, of in fields.items()}
    except (IndexError, ValueError):
        raise InputError(
            f"adata.obsm[{index_key!r}] is not of these chains; choose them again with scirpy.pp.index_chains(adata)"
        ) from None
    has = ~np.asarray(ak.is_none(primary))
    return pd.DataFrame(picked, index=adata.obs_names, dtype=object)[has]


@documented()
def annotate_cells(
    adata: Any,
    counted: Result | Germline | str | Path | None = None,
    *,
    model: Model | str | Path | None = None,
    database: Any = None,
    vj_model: Model | str | Path | None = None,
    columns: Collection[str] | Literal["all"] = CELL_COLUMNS,
    chain: Kind = "VDJ",
    airr_key: str = "airr",
    index_key: str = "chain_indices",
    airr_mod: str = "airr",
    **options: Any,
) -> Any:
    """Add the pathways of each cell's primary chain, its generation probability, or both to `adata.obs`.

    With a database, add instead the records of known specificity that are like the cells' chains.

    adata     an AnnData object as scirpy makes it, or a MuData object that has one
    counted   what the chains are counted with, with `options` as of `hpcvdj.count`: {germline}; or a Result, which is
              joined by `sequence_id`
    model     {model}: the probabilities are those with the chain's V and J calls.  Without a germline table, `options`
              are as of `hpcvdj.pgen`
    database  as of `hpcvdj.annotate`, with `options` of it; `model` is then that of VDJ chains
    vj_model  with a database, the model of VJ chains
    columns   of those that `hpcvdj.count` and `hpcvdj.pgen` add, which to add; `all`: also the pathways by n-length
    chain     the primary chain of this kind
    airr_key, index_key  where `adata.obsm` has the receptors and scirpy's choice of chains
    airr_mod  the modality of MuData that has the receptors; its columns go to `mdata.obs`, too, as `airr:VDJ_1_…`

    Adds `VDJ_1_pathways_total` and `VDJ_1_weight`, `VDJ_1_pgen_nt` and `VDJ_1_pgen_aa`, or the `columns` asked for.
    With chain="VJ", the names are `VJ_1_…`.  A cell without a value has a null; `VDJ_1_pathways_excluded` and
    `VDJ_1_pgen_excluded` say why.  Such columns of an earlier call do not stay.

    With a database, returns a `CellAnnotation`.  The columns of a chain are `VDJ_1_epitope`, `VDJ_1_record`,
    `VDJ_1_expected` and `VDJ_1_fdr` (see docs/annotate.md), or `VJ_1_…`.  With two models, both chains of a cell
    together have `pair_epitope`, ...  If a cell has no epitope, `VDJ_1_epitope_excluded` and `pair_epitope_excluded`
    say why.

    Raises InputError if neither `counted` nor `model` is given, for columns that there are not, or for what `adata`
    lacks.
    """
    # A DataFrame has a method mod.
    if hasattr(adata, "mod") and hasattr(adata, "obsm"):
        arguments = {"counted": counted, "model": model, "database": database, "vj_model": vj_model, "columns": columns,
                     "chain": chain, "airr_key": airr_key, "index_key": index_key, **options}  # fmt: skip
        return _annotate_modality(adata, airr_mod, arguments)
    if database is not None:
        if counted is not None or columns is not CELL_COLUMNS or chain != "VDJ":
            raise InputError(
                "with a database, leave out counted, columns and chain; model= is of VDJ chains, vj_model= of VJ"
            )
        models = {kind: of_kind for kind, of_kind in (("VDJ", model), ("VJ", vj_model)) if of_kind is not None}
        tables: dict[str, Any] = {
            kind: primary_chains(adata, chain=kind, airr_key=airr_key, index_key=index_key)
            for kind in KINDS
            if kind in models
        }
        return annotated_cells(adata.obs, tables, models, database, options)
    if vj_model is not None:
        raise InputError("vj_model applies only with a database; give model and chain='VJ'")
    if counted is None and model is None:
        raise InputError("nothing to add: give a germline table or a result, or model=")
    if options and isinstance(counted, Result) and model is None:
        raise InputError(f"{next(iter(options))} applies only where the chains are computed; leave it out")
    of_count = options if counted is not None and not isinstance(counted, Result) else {}
    table = primary_chains(adata, chain=chain, airr_key=airr_key, index_key=index_key)
    # Contigs of several samples may share ids, so each cell is computed without its id.
    chains = table.drop(columns=["sequence_id", READS], errors="ignore").fillna("")
    missing = [name for name in ("v_call", "j_call") if name not in table]
    missing += ["junction"] * table.columns.intersection(_SEQUENCES).empty
    if missing and not (isinstance(counted, Result) and model is None):
        raise InputError(f"adata.obsm[{airr_key!r}] has no field {few(missing)}; {_READ}")
    annotated = []
    if isinstance(counted, Result):
        annotated.append(join(counted, table))
    elif counted is not None:
        annotated.append(count(chains, counted, **of_count))
    if model is not None:
        annotated.append(pgen(chains, model, **({} if of_count else options)))
    added = {name: done[name] for done in annotated for name in done.columns.drop(table.columns, errors="ignore")}
    chosen = _chosen(columns, list(added))
    computed = ["pathways", "weight"] * (counted is not None) + ["pgen"] * (model is not None)
    without_earlier(adata.obs, [f"{chain}_1_{name}" for name in computed])
    for name in chosen:
        column = added[name].reindex(adata.obs_names)
        if name.endswith("_excluded"):
            column = column.astype(object).fillna(f"no primary {chain} chain").astype(str)
        adata.obs[f"{chain}_1_{name}"] = column
    return None


def _annotate_modality(mdata: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Annotate the cells of a modality of MuData, and copy the columns to the table of all cells."""
    if name not in mdata.mod:
        raise InputError(f"mdata has no modality {name!r}, but {few(mdata.mod)}; name the one that has the receptors "
                         "as airr_mod")  # fmt: skip
    cells = mdata.mod[name]
    before = list(cells.obs)
    answer = annotate_cells(cells, **arguments)
    without_earlier(mdata.obs, [f"{name}:{column}" for column in before if column not in cells.obs])
    for column in filter(OURS.match, map(str, cells.obs)):
        of_all = cells.obs[column].reindex(mdata.obs_names)
        if column.endswith("_excluded"):
            # What was saved is categories, to which no value can be added.
            of_all = of_all.astype(object).fillna(f"not a cell of {name}")
        mdata.obs[f"{name}:{column}"] = of_all
    return answer


def _chosen(columns: Collection[str] | Literal["all"], names: list[str]) -> list[str]:
    """Return the `names` that are among the `columns`, and those of columns that say why there is no value."""
    if columns == "all":
        return names
    asked = {columns} if isinstance(columns, str) else set(columns)
    unknown = asked.difference(names, CELL_COLUMNS if columns is CELL_COLUMNS else ())
    if unknown:
        raise InputError(f"columns: no {', '.join(sorted(unknown))}; there are {few(names, 20)}")
    return [name for name in names if name in asked or name.endswith("_excluded")]
