"""The similarity graph of a result: its edges, piece by piece, and their scores as a sparse matrix."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hpcvdj.errors import InputError, option
from hpcvdj.motifs.edges import STRANDS, EdgeFilter, EdgeFinder, Edges, edge_type, joined
from hpcvdj.motifs.results import CHUNK, MotifResult

PIECE = 1 << 20
"""The largest number of edges of a piece, and of pairs of a tile of dense counters."""


def selected_edges(result: MotifResult, edge_filter: EdgeFilter | None = None, strand: str = "both") -> Iterator[Edges]:
    """Yield the edges of a result that the filter keeps, at most `PIECE` at a time, each pair once per strand.

    strand  the strand relation: `+`, `-` or `both`

    Stored edges come by strand, row and column; those of dense counters tile by tile, unless `top` is set.
    Raise InputError if the result lacks the strand, and for dense counters without a filter: every pair would be an
    edge.
    """
    edge_filter = edge_filter or EdgeFilter()
    strands = range(result.strands) if strand == "both" else [STRANDS.index(strand)]
    if strands[-1] >= result.strands:
        raise InputError(
            f"{result.path}: opposite strands were not compared; compare again with {option('strands', 'both')}"
        )
    choosing = result.dense and edge_filter != EdgeFilter()
    pieces = (_edges_of_tiles if choosing else _stored_edges)(result, edge_filter, strands)
    if edge_filter.top is None:
        yield from pieces
        return
    best, waiting = np.empty(0, edge_type(result.d)), list[Edges]()
    for piece in pieces:
        waiting.append(piece)
        # An edge that is not among the best of a part is not among the best of all.
        if sum(map(len, waiting)) > max(PIECE, len(best)):
            best, waiting = edge_filter.best(joined([best, *waiting])), []
    best = edge_filter.best(joined([best, *waiting]))
    for first in range(0, len(best), PIECE):
        yield best[first : first + PIECE]


def _stored_edges(result: MotifResult, edge_filter: EdgeFilter, strands: Sequence[int]) -> Iterator[Edges]:
    for piece in result.edges(PIECE):
        yield piece[np.isin(piece["strand"], strands) & edge_filter.allows(piece["score"])]


def _edges_of_tiles(result: MotifResult, edge_filter: EdgeFilter, strands: Sequence[int]) -> Iterator[Edges]:
    """Yield the edges of the tiles on and above the diagonal of a dense result."""
    finder = EdgeFinder(result.scoring, edge_filter, len(result))
    n, width = len(result), PIECE // CHUNK
    for strand in strands:
        for row in range(0, n, CHUNK):
            for column in range(row, n, width):
                rows, columns = slice(row, min(row + CHUNK, n)), slice(column, min(column + width, n))
                edges = finder.of_tile(result.counters(strand, rows, columns), strand, row, column)
                if len(edges):
                    yield edges


def score_matrix(pieces: Iterable[Edges], n: int) -> Any:
    """Return the scores of edges as a symmetric scipy.sparse.csr_array, float64 [n, n]; the diagonal is empty.

    A pair with edges on both strands has the larger score.
    """
    from scipy.sparse import coo_array

    edges = joined(list(pieces) or [np.empty(0, edge_type(0))])
    edges = edges[np.lexsort((edges["score"], edges["column"], edges["row"]))]
    row, column = edges["row"], edges["column"]
    last = np.ones(len(edges), dtype=bool)
    last[:-1] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    row, column = row[last], column[last]
    # Set both directions at once, as the sum of two triangles would drop scores of 0.
    ends = np.concatenate([row, column]), np.concatenate([column, row])
    return coo_array((np.tile(edges["score"][last], 2), ends), shape=(n, n)).tocsr()
