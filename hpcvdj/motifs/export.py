"""The edges of a result in other programs' formats: tables, GraphML and a sparse matrix."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import Edges, Selection, no_edges
from hpcvdj.motifs.graph import networkx, score_matrix, selected_edges, strands_of
from hpcvdj.kernels.kmers.masks import raw_from_exact
from hpcvdj.motifs.results import STRANDS, MotifResult
from hpcvdj.repertoires.tables import TableWriter, table_suffix
from hpcvdj.storage import atomic_path, require_writable

ENDINGS = (".tsv", ".tsv.gz", ".parquet", ".graphml", ".npz")

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def export(
    result: MotifResult,
    target: str | Path,
    selection: Selection | None = None,
    *,
    strand: str = "both",
    raw: bool = False,
    overwrite: bool = False,
) -> int:
    """Write the edges to `target`, in the format that its ending says; returns their number.

    selection  what to take; a dense result needs one
    strand     `+`, `-`, or `both`: a matrix then has the larger score of a pair, the other formats an edge for each
    raw        also the counters R of the thesis's meta-tables (tables and GraphML)
    """
    target = Path(target)
    ending = _ending(target)
    if raw and ending == ".npz":
        raise InputError(f"{target}: a matrix holds scores alone; leave out --raw, or write a table or .graphml")
    require_writable(target, overwrite=overwrite)
    if ending == ".graphml":
        networkx()  # Without it, say so before the work.
    pieces = selected_edges(result, selection, strands_of(result, strand))
    if ending == ".npz":
        return _write_matrix(result, pieces, target, overwrite=overwrite)
    names = result.names
    if ending != ".parquet":
        _require_printable(names, target)
    if ending == ".graphml":
        return _write_graphml(result, names, pieces, target, raw=raw, overwrite=overwrite)
    written = 0
    with atomic_path(target, overwrite=overwrite) as temporary, open(temporary, "wb") as stream:
        writer = TableWriter(stream, ending)
        lookup = pa.array(names, pa.string())
        # A table without rows has its columns all the same.
        writer.write(_batch(no_edges(result.d), lookup, result.k, raw=raw))
        for piece in pieces:
            writer.write(_batch(piece, lookup, result.k, raw=raw))
            written += len(piece)
        writer.close()
    return written


def _ending(target: Path) -> str:
    name = target.name.lower()
    if not name.endswith(ENDINGS):
        raise InputError(f"{target}: the name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    return target.suffix.lower() if name.endswith((".graphml", ".npz")) else table_suffix(target)


def _require_printable(names: list[str], target: Path) -> None:
    bad = next((name for name in names if _CONTROL.search(name)), None)
    if bad is not None:
        raise InputError(f"{target}: the name {bad!r} has a control character in it; rename it, or write .parquet")


def counter_columns(edges: Edges, k: int, *, raw: bool) -> dict[str, Any]:
    """d0 … dd, uint32 [edges] each, and with `raw` r0 … rd, uint64."""
    columns: dict[str, Any] = {f"d{h}": edges.counters[:, h] for h in range(edges.counters.shape[1])}
    if raw:
        planes = raw_from_exact(edges.counters.T.astype(np.uint64), k)
        columns |= {f"r{m}": plane for m, plane in enumerate(planes)}
    return columns


def _batch(edges: Edges, names: pa.Array, k: int, *, raw: bool) -> pa.RecordBatch:
    counters = counter_columns(edges, k, raw=raw)
    exact = {name: values for name, values in counters.items() if name.startswith("d")}
    rest = {name: values for name, values in counters.items() if name.startswith("r")}
    columns = {
        "name_1": names.take(pa.array(edges.row)),
        "name_2": names.take(pa.array(edges.column)),
        "strand": pa.array(STRANDS).take(pa.array(edges.strand)),
        **exact,
        "score": edges.score,
        **rest,
    }
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def _write_graphml(
    result: MotifResult, names: list[str], pieces: Iterable[Edges], target: Path, *, raw: bool, overwrite: bool
) -> int:
    """Nodes by their names; on two strands, a pair has an edge for each strand."""
    nx = networkx()
    graph = nx.MultiGraph() if result.strands > 1 else nx.Graph()
    for name, length in zip(names, result.lengths.tolist(), strict=True):
        graph.add_node(name, length=length)
    for piece in pieces:
        columns = {name: values.tolist() for name, values in counter_columns(piece, result.k, raw=raw).items()}
        columns["score"] = piece.score.tolist()
        columns["strand"] = [STRANDS[s] for s in piece.strand.tolist()]
        keys = list(columns)
        for i, j, *values in zip(piece.row.tolist(), piece.column.tolist(), *columns.values(), strict=True):
            # `weight` is what graph programs look for.
            facts = dict(zip(keys, values, strict=True))
            graph.add_edge(names[i], names[j], **facts, weight=facts["score"])
    with atomic_path(target, overwrite=overwrite) as temporary:
        nx.write_graphml(graph, temporary)
    return int(graph.number_of_edges())


def _write_matrix(result: MotifResult, pieces: Iterable[Edges], target: Path, *, overwrite: bool) -> int:
    """What scipy.sparse.load_npz reads, with the names beside it (numpy.load(...)["names"])."""
    from scipy.sparse import save_npz

    matrix = score_matrix(pieces, len(result))
    with atomic_path(target, overwrite=overwrite) as temporary:
        with open(temporary, "wb") as stream:
            save_npz(stream, matrix)
        with zipfile.ZipFile(temporary, "a") as archive, archive.open("names.npy", "w") as member:
            np.lib.format.write_array(member, np.array(result.names, dtype=np.str_), allow_pickle=False)
    return int(matrix.nnz) // 2
