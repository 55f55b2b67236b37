"""The similarity graph of a result: its edges, chosen piece by piece, and their scores as a sparse matrix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import Edges, Selection, joined, no_edges
from hpcvdj.motifs.results import CHUNK, STRANDS, MotifResult

PIECE = 1 << 20
"""Edges of a piece at most; the pairs of a tile of dense counters likewise."""


def strands_of(result: MotifResult, strand: str = "both") -> list[int]:
    """The strand relations called `strand`: `+`, `-`, or `both` for all there are; InputError if it is not there."""
    if strand == "both":
        return list(range(result.strands))
    s = STRANDS.index(strand)
    if s >= result.strands:
        raise InputError(f"{result.path}: opposite strands were not compared; compare again with --strands both")
    return [s]


def selected_edges(
    result: MotifResult, selection: Selection | None = None, strands: Sequence[int] | None = None
) -> Iterator[Edges]:
    """The edges of a result that the selection lets through, at most `PIECE` at a time, each pair once a strand.

    Stored edges come by strand, row and column; those of dense counters tile by tile, unless `top` is set.
    InputError for dense counters without a selection: every pair would be an edge.
    """
    selection = selection or Selection()
    strands = range(result.strands) if strands is None else strands
    if result.dense and selection == Selection():
        raise InputError(f"{result.path}: has all pairs, not edges; select some with --min-score or --top")
    if selection.top is not None and selection.top < 1:
        raise InputError(f"--top {selection.top}: each sequence keeps at least 1 edge")
    pieces = _of_tiles(result, selection, strands) if result.dense else _stored(result, selection, strands)
    if selection.top is None:
        yield from pieces
        return
    kept = no_edges(result.d)
    waiting: list[Edges] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece)
        # What is not among the best of a part is not among the best of the whole.
        if held > max(PIECE, len(kept)):
            kept, waiting, held = selection.finish(joined([kept, *waiting], result.d)), [], 0
    kept = selection.finish(joined([kept, *waiting], result.d))
    for first in range(0, len(kept), PIECE):
        yield kept.take(np.arange(first, min(first + PIECE, len(kept))))


def _stored(result: MotifResult, selection: Selection, strands: Sequence[int]) -> Iterator[Edges]:
    for piece in result.edges(PIECE):
        kept = np.isin(piece.strand, strands)
        if selection.minimum is not None:
            kept &= piece.score >= selection.minimum
        yield piece.take(kept)


def _of_tiles(result: MotifResult, selection: Selection, strands: Sequence[int]) -> Iterator[Edges]:
    for strand, row, column, counters, score in tiles(result, strands):
        found = selection.from_tile(counters, score, row, column, strand)
        if len(found):
            yield found


def tiles(
    result: MotifResult, strands: Sequence[int]
) -> Iterator[tuple[int, int, int, NDArray[Any], NDArray[np.float64]]]:
    """(strand, first row, first column, counters, scores) of the tiles on and above the diagonal of a dense result."""
    n, scoring = len(result), result.scoring
    mine = result.terms(0)
    for strand in strands:
        theirs = result.terms(strand)
        for row in range(0, n, CHUNK):
            rows = slice(row, min(row + CHUNK, n))
            for column in range(row, n, PIECE // CHUNK):
                columns = slice(column, min(column + PIECE // CHUNK, n))
                counters = result.counters(strand, rows, columns)
                score = scoring.of(
                    counters, mine.part(rows.start, rows.stop), theirs.part(columns.start, columns.stop)
                )  # fmt: skip
                yield strand, row, column, counters, score


def score_matrix(pieces: Iterable[Edges], n: int) -> Any:
    """The scores of edges as a symmetric scipy.sparse.csr_array, float64 [n, n]; the diagonal is empty.

    Of a pair that has an edge on both strands, the larger score stands.
    """
    from scipy.sparse import coo_array

    listed = list(pieces)
    row = np.concatenate([np.empty(0, np.int32), *(piece.row for piece in listed)])
    column = np.concatenate([np.empty(0, np.int32), *(piece.column for piece in listed)])
    score = np.concatenate([np.empty(0), *(piece.score for piece in listed)])
    order = np.lexsort((score, column, row))
    row, column, score = row[order], column[order], score[order]
    last = np.ones(len(row), dtype=bool)
    last[:-1] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    row, column, score = row[last], column[last], score[last]
    # Both directions at once: the sum of two triangles would drop scores of 0.
    ends = np.concatenate([row, column]), np.concatenate([column, row])
    return coo_array((np.concatenate([score, score]), ends), shape=(n, n)).tocsr()


def networkx() -> Any:
    """The module networkx; InputError without it."""
    try:
        import networkx
    except ImportError:
        raise InputError("graphs need networkx: install hpcvdj[graphs]") from None
    return networkx
