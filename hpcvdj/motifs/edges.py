"""Edges of the similarity graph: the pairs of sequences that a filter keeps."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.methods import array_module
from hpcvdj.motifs.scores import Scoring
from hpcvdj.options import Settings, setting

STRANDS = ("+", "-")
"""The strand relations of a pair: both sequences as given, or one of them reverse-complemented."""

Edges: TypeAlias = NDArray[np.void]
"""Pairs of sequences, row before column, of the type `edge_type`."""


def edge_type(d: int) -> np.dtype[np.void]:
    """Return the type of an edge; its strand is an index of `STRANDS`."""
    return np.dtype(
        [("row", "i4"), ("column", "i4"), ("strand", "i1"), ("counters", "u4", (d + 1,)), ("score", "f8")]
    )  # fmt: skip


def edges_of(columns: Mapping[str, Any]) -> Edges:
    """Make edges of the columns of `edge_type`; the counters are [edges, d + 1]."""
    edges = np.empty(len(columns["row"]), edge_type(columns["counters"].shape[1] - 1))
    for name, values in columns.items():
        edges[name] = values
    return edges


def joined(parts: Sequence[Edges]) -> Edges:
    """Return the edges of at least one part, sorted by strand, row and column."""
    edges = np.concatenate(parts)
    return edges[np.lexsort((edges["column"], edges["row"], edges["strand"]))]


class EdgeFilter(Settings, kw_only=True):
    """Which pairs become edges: those with a score of at least `min_score` among the `top` best of a sequence."""

    min_score: float | None = setting("keep pairs with a score of at least this", None, unset="no limit")
    top: int | None = setting("keep a pair if it is among so many best of either sequence", None, unset="all", least=1)

    def allows(self, score: Any) -> Any:
        """Return whether each score is a number and not below the minimum."""
        return (score == score) if self.min_score is None else (score >= self.min_score)

    def best(self, edges: Edges) -> Edges:
        """Return the `top` best edges of each sequence; `edges` are all edges of the sequences."""
        if self.top is None or not len(edges):
            return edges
        ends = np.concatenate([edges["row"], edges["column"]])
        others = np.concatenate([edges["column"], edges["row"]])
        # The best edge is first.  Equal scores are in the order of the other sequence, whatever the tiles are.
        order = np.lexsort((np.tile(edges["strand"], 2), others, -np.tile(edges["score"], 2), ends))
        kept = order[_rank(ends[order]) < self.top]
        return edges[np.unique(kept % len(edges))]


def _rank(ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the position of each entry among those of equal value; `ends` are ascending."""
    return np.arange(len(ends)) - np.searchsorted(ends, ends)


class EdgeFinder:
    """Finds the edges of a set tile by tile, in any order.

    With `top`, it drops only edges that are not among the best of either sequence, but it may keep some of these.
    """

    def __init__(self, scoring: Scoring, edge_filter: EdgeFilter, sequences: int) -> None:
        self._scoring, self._filter = scoring, edge_filter
        # A sequence has at most so many edges.
        self._top = min(edge_filter.top or 0, 2 * max(1, sequences))
        self._best = np.full((sequences, self._top), -np.inf)

    def of_tile(
        self, counters: Any, strand: int, row: int, column: int, pairs: NDArray[np.int64] | None = None
    ) -> Edges:
        """Return the edges among counters [d + 1, rows, columns] that begin at `row` and `column`.

        pairs  on a CPU, the number of pairs of each row if it is known: see `tile_cpu.clear_lower`
        """
        if isinstance(counters, np.ndarray):
            edges = self._on_cpu(counters, strand, row, column, pairs)
        else:
            edges = self._on_gpu(counters, strand, row, column)
        if self._top:
            edges = self._filter.best(edges)
            self._learn(edges)
        return edges

    def _on_cpu(self, counters: Any, strand: int, row: int, column: int, pairs: NDArray[np.int64] | None) -> Edges:
        from hpcvdj.kernels.kmers.tile_cpu import clear_lower, list_pairs  # compiled by numba, slow to import

        i, j = list_pairs(counters, row, column, clear_lower(counters, row, column)[1] if pairs is None else pairs)
        listed, i, j = counters[:, i, j], i + row, j + column
        score = self._scoring.pairs(listed, strand, i, j)
        kept = self._filter.allows(score)
        if self._top:
            kept &= score >= np.minimum(self._best[i, 0], self._best[j, 0])
        columns = {"row": i[kept], "column": j[kept], "counters": listed[:, kept].T, "score": score[kept]}
        return edges_of({**columns, "strand": strand})

    def _on_gpu(self, counters: Any, strand: int, row: int, column: int) -> Edges:
        xp = array_module(counters)
        score = self._scoring.rectangle(counters, strand, row, column)
        kept = (column + xp.arange(score.shape[1]))[None, :] > (row + xp.arange(score.shape[0]))[:, None]
        kept &= (counters != 0).any(axis=0)
        kept &= self._filter.allows(score)
        if self._top:
            kept &= self._among_the_best(xp, xp.where(kept, score, -xp.inf), row, column)
        i, j = xp.nonzero(kept)
        columns = {"row": i + row, "column": j + column, "counters": counters[:, i, j].T, "score": score[i, j]}
        return edges_of({**{name: values.get() for name, values in columns.items()}, "strand": strand})

    def _among_the_best(self, xp: Any, score: Any, row: int, column: int) -> Any:
        """Return whether each score is among the best of its row or column in this tile and all earlier tiles."""
        among = xp.zeros(score.shape, dtype=bool)
        for axis, first in ((0, column), (1, row)):
            size = score.shape[axis]
            least = xp.asarray(self._best[first : first + score.shape[1 - axis], 0])
            least = least[None, :] if axis == 0 else least[:, None]
            if self._top < size:
                nth = xp.take(xp.partition(score, size - self._top, axis=axis), xp.array([size - self._top]), axis)
                least = xp.maximum(least, nth)
            among |= score >= least
        return among

    def _learn(self, edges: Edges) -> None:
        """Note the scores that a further edge of each sequence must reach."""
        ends, scores = np.concatenate([edges["row"], edges["column"]]), np.tile(edges["score"], 2)
        order = np.lexsort((-scores, ends))
        ends, scores = ends[order], scores[order]
        rank = _rank(ends)
        kept = rank < self._top
        new = np.full(self._best.shape, -np.inf)
        new[ends[kept], rank[kept]] = scores[kept]
        self._best = np.sort(np.concatenate([self._best, new], axis=1), axis=1)[:, self._top :]
