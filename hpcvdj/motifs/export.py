"""Export the edges of a result in formats of other programs: tables, GraphML and a sparse matrix."""

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
from hpcvdj.motifs.graph import score_matrix, selected_edges
from hpcvdj.motifs.results import MotifResult, edge_batch
from hpcvdj.repertoires.writers import write_table
from hpcvdj.storage.files import atomic_path, require_writable
from hpcvdj.storage.plots import require_networkx

ENDINGS = (".tsv", ".tsv.gz", ".parquet", ".graphml", ".npz")


def export(
    result: MotifResult,
    target: str | Path,
    edge_filter: EdgeFilter | None = None,
    *,
    strand: str = "both",
    raw: bool = False,
    overwrite: bool = False,
) -> int:
    """Write the edges to `target` in the format of its ending, and return their number.

    edge_filter  which edges to write; a dense result needs a filter
    strand       `+`, `-`, or `both`: a matrix then has the larger score of a pair, other formats have an edge for each
    raw          also write the counters R of the thesis's meta-tables (tables and GraphML)
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
    pieces = selected_edges(result, edge_filter, strand)
    if ending == ".npz":
        return _write_matrix(result, pieces, target, overwrite=overwrite)
    named = result.named
    texts = chain(*(values.to_pylist() for values in named.values() if ending != ".parquet"))
    bad = next(filter(re.compile(r"[\x00-\x1f\x7f]").search, texts), None)
    if bad is not None:
        raise InputError(f"{target}: the name {bad!r} has a control character; rename the sequence, or write .parquet")
    if ending == ".graphml":
        return _write_graphml(result, named, pieces, target, raw=raw, overwrite=overwrite)
    return write_table(target, _batches(result, named, pieces, raw=raw), overwrite=overwrite)


def _raw_counters(edges: Edges, k: int) -> dict[str, Any]:
    return {f"r{m}": plane for m, plane in enumerate(raw_from_exact(edges["counters"].T.astype(np.uint64), k))}


def _batches(
    result: MotifResult, named: dict[str, pa.Array], pieces: Iterable[Edges], *, raw: bool
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    # The empty piece gives a table without rows its columns.
    for edges in chain([np.empty(0, edge_type(result.d))], pieces):
        yield edge_batch(edges, named, **(_raw_counters(edges, result.k) if raw else {}))


def _write_graphml(
    result: MotifResult,
    named: dict[str, pa.Array],
    pieces: Iterable[Edges],
    target: Path,
    *,
    raw: bool,
    overwrite: bool,
) -> int:
    """Write nodes by their names; on two strands, a pair has an edge for each strand."""
    networkx = require_networkx()
    graph = networkx.MultiGraph() if result.strands > 1 else networkx.Graph()
    facts = {name: values.to_pylist() for name, values in named.items()}
    names = facts.pop("name")
    facts["length"] = result.lengths.tolist()
    for name, *values in zip(names, *facts.values(), strict=True):
        graph.add_node(name, **dict(zip(facts, values, strict=True)))
    for edges in pieces:
        numbers = {f"d{h}": plane for h, plane in enumerate(edges["counters"].T)}
        numbers |= _raw_counters(edges, result.k) if raw else {}
        columns = {name: values.tolist() for name, values in {**numbers, "score": edges["score"]}.items()}
        columns["strand"] = [STRANDS[strand] for strand in edges["strand"].tolist()]
        columns["weight"] = columns["score"]  # what graph programs look for
        for i, j, *values in zip(edges["row"].tolist(), edges["column"].tolist(), *columns.values(), strict=True):
            graph.add_edge(names[i], names[j], **dict(zip(columns, values, strict=True)))
    with atomic_path(target, overwrite=overwrite) as temporary:
        networkx.write_graphml(graph, temporary)
    return int(graph.number_of_edges())


def _write_matrix(result: MotifResult, pieces: Iterable[Edges], target: Path, *, overwrite: bool) -> int:
    """Write a file for scipy.sparse.load_npz that also has the names and tables (numpy.load(...)["names"])."""
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
