"""The edges of a result in other programs' formats: tables, GraphML and a sparse matrix."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.errors import InputError, option
from hpcvdj.kernels.kmers.masks import raw_from_exact
from hpcvdj.motifs.edges import STRANDS, EdgeFilter, Edges, edge_type
from hpcvdj.motifs.graph import score_matrix, selected_edges, strands_of
from hpcvdj.motifs.results import MotifResult, edge_batch
from hpcvdj.repertoires.writers import write_table
from hpcvdj.storage.files import atomic_path, require_writable
from hpcvdj.storage.plots import require_networkx

ENDINGS = (".tsv", ".tsv.gz", ".parquet", ".graphml", ".npz")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def export(
    result: MotifResult,
    target: str | Path,
    edge_filter: EdgeFilter | None = None,
    *,
    strand: str = "both",
    raw: bool = False,
    overwrite: bool = False,
) -> int:
    """Write the edges to `target`, in the format of its ending; returns their number.

    edge_filter  which edges to write; a dense result needs one
    strand       `+`, `-`, or `both`: a matrix then has the larger score of a pair, the other formats an edge for each
    raw          also the counters R of the thesis's meta-tables (tables and GraphML)
    """
    target = Path(target)
    ending = next((ending for ending in reversed(ENDINGS) if target.name.lower().endswith(ending)), None)
    if ending is None:
        raise InputError(f"{target}: the name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if raw and ending == ".npz":
        raise InputError(
            f"{target}: a matrix has scores alone; leave out {option('raw')}, or write a table or .graphml"
        )
    require_writable(target, overwrite=overwrite)
    if ending == ".graphml":
        require_networkx()
    pieces = selected_edges(result, edge_filter, strands_of(result, strand))
    if ending == ".npz":
        return _write_matrix(result, pieces, target, overwrite=overwrite)
    named = result.named
    texts = chain(*(values.to_pylist() for values in named.values()))
    bad = next((name for name in texts if ending != ".parquet" and _CONTROL.search(name)), None)
    if bad is not None:
        raise InputError(f"{target}: the name {bad!r} has a control character; rename the sequence, or write .parquet")
    if ending == ".graphml":
        return _write_graphml(result, named, pieces, target, raw=raw, overwrite=overwrite)
    return write_table(target, _batches(result, named, pieces, raw=raw), overwrite=overwrite)


def _counter_columns(edges: Edges, k: int, *, raw: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """d0 … dd, uint32 [edges] each, and with `raw` r0 … rd, uint64."""
    exact = {f"d{h}": plane for h, plane in enumerate(edges["counters"].T)}
    if not raw:
        return exact, {}
    return exact, {f"r{m}": plane for m, plane in enumerate(raw_from_exact(edges["counters"].T.astype(np.uint64), k))}


def _batches(
    result: MotifResult, named: dict[str, pa.Array], pieces: Iterable[Edges], *, raw: bool
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    # A table without rows has its columns all the same.
    for edges in chain([np.empty(0, edge_type(result.d))], pieces):
        _, raw_counters = _counter_columns(edges, result.k, raw=raw)
        yield edge_batch(edges, named, **raw_counters)


def _write_graphml(
    result: MotifResult,
    named: dict[str, pa.Array],
    pieces: Iterable[Edges],
    target: Path,
    *,
    raw: bool,
    overwrite: bool,
) -> int:
    """Nodes by their names; on two strands, a pair has an edge for each strand."""
    networkx = require_networkx()
    graph = networkx.MultiGraph() if result.strands > 1 else networkx.Graph()
    facts = {name: values.to_pylist() for name, values in named.items()}
    names = facts.pop("name")
    facts["length"] = result.lengths.tolist()
    for name, *values in zip(names, *facts.values(), strict=True):
        graph.add_node(name, **dict(zip(facts, values, strict=True)))
    for edges in pieces:
        exact, raw_counters = _counter_columns(edges, result.k, raw=raw)
        columns = {name: values.tolist() for name, values in {**exact, **raw_counters, "score": edges["score"]}.items()}
        columns["strand"] = [STRANDS[strand] for strand in edges["strand"].tolist()]
        columns["weight"] = columns["score"]  # what graph programs look for
        for i, j, *values in zip(edges["row"].tolist(), edges["column"].tolist(), *columns.values(), strict=True):
            graph.add_edge(names[i], names[j], **dict(zip(columns, values, strict=True)))
    with atomic_path(target, overwrite=overwrite) as temporary:
        networkx.write_graphml(graph, temporary)
    return int(graph.number_of_edges())


def _write_matrix(result: MotifResult, pieces: Iterable[Edges], target: Path, *, overwrite: bool) -> int:
    """A file for scipy.sparse.load_npz, with the names and tables beside the matrix (numpy.load(...)["names"])."""
    from scipy.sparse import save_npz

    matrix = score_matrix(pieces, len(result))
    with atomic_path(target, overwrite=overwrite) as temporary:
        with open(temporary, "wb") as stream:
            save_npz(stream, matrix)
        with zipfile.ZipFile(temporary, "a") as archive:
            for name, texts in (("names", result.names), ("tables", result.tables)):
                if texts or name == "names":
                    with archive.open(f"{name}.npy", "w") as member:
                        np.lib.format.write_array(member, np.array(texts, dtype=np.str_), allow_pickle=False)
    return int(matrix.nnz) // 2
