"""Edges of the similarity graph: the pairs of sequences that a filter keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.methods import array_module
from hpcvdj.motifs.scores import Scoring


@dataclass(frozen=True)
class Edges:
    """Pairs of sequences, row before column.

    row, column  int32 [edges]
    strand       int8 [edges]: 0 for the same strands, 1 for opposite ones
    counters     uint32 [edges, d + 1]
    score        float64 [edges]
    """

    row: NDArray[np.int32]
    column: NDArray[np.int32]
    strand: NDArray[np.int8]
    counters: NDArray[np.uint32]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: Any) -> Edges:
        """The edges of an index, or under a mask."""
        return Edges(**{name: values[which] for name, values in self.columns().items()})

    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(Edges)}

    @staticmethod
    def none(d: int) -> Edges:
        """No edges."""
        nothing = np.empty(0, np.int32)
        return Edges(nothing, nothing, np.empty(0, np.int8), np.empty((0, d + 1), np.uint32), np.empty(0))


def joined(parts: Sequence[Edges], d: int) -> Edges:
    """All edges of `parts`, by strand, row and column."""
    parts = parts or [Edges.none(d)]
    names = parts[0].columns()
    every = Edges(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
    return every.take(np.lexsort((every.column, every.row, every.strand)))


@dataclass(frozen=True)
class EdgeFilter:
    """Which pairs become edges: those with a score of at least `minimum`, and of each sequence the `top` best.

    None keeps every pair with a common k-mer.  A pair among the best of one of its sequences is an edge.
    """

    minimum: float | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if self.minimum is not None and math.isnan(self.minimum):
            raise InputError("--min-score nan: give a number")
        if self.top is not None and self.top < 1:
            raise InputError(f"--top {self.top}: give at least 1")

    def allows(self, score: Any) -> Any:
        """Which scores are numbers, and not below the minimum."""
        return (score == score) if self.minimum is None else (score >= self.minimum)

    def best(self, edges: Edges) -> Edges:
        """The `top` best edges of each sequence, all sequences' edges being known."""
        if self.top is None or not len(edges):
            return edges
        ends = np.concatenate([edges.row, edges.column])
        others = np.concatenate([edges.column, edges.row])
        # Best first; equal scores by the other sequence, so that the choice does not depend on the tiles.
        order = np.lexsort((np.tile(edges.strand, 2), others, -np.tile(edges.score, 2), ends))
        kept = order[_rank(ends[order]) < self.top]
        return edges.take(np.unique(kept % len(edges)))


def _rank(ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """The position of each entry among those of the same value; `ends` are ascending."""
    return np.arange(len(ends)) - np.searchsorted(ends, ends)


class EdgeFinder:
    """Finds the edges of a set tile by tile, in any order.

    With `top`, what is left out is not among the best of its sequences; what is kept may not be either.
    """

    def __init__(self, scoring: Scoring, edge_filter: EdgeFilter, sequences: int) -> None:
        self._scoring, self._filter = scoring, edge_filter
        # No sequence has more edges than that.
        self._top = min(edge_filter.top or 0, 2 * max(1, sequences))
        self._best = np.full((sequences, self._top), -np.inf)

    def of_tile(
        self, counters: Any, strand: int, row: int, column: int, pairs: NDArray[np.int64] | None = None
    ) -> Edges:
        """The edges among counters [d + 1, rows, columns] that begin at `row` and `column`.

        pairs  on a CPU, the pairs of each row, if they are known: see `tile_cpu.clear_lower`
        """
        find = self._on_cpu if isinstance(counters, np.ndarray) else self._on_gpu
        edges = find(counters, strand, row, column, pairs)
        if self._top:
            edges = self._filter.best(edges)
            self._learn(edges)
        return edges

    def _on_cpu(self, counters: Any, strand: int, row: int, column: int, pairs: NDArray[np.int64] | None) -> Edges:
        from hpcvdj.kernels.kmers.tile_cpu import clear_lower, list_pairs  # compiled by numba, slow to import

        i, j = list_pairs(counters, row, column, clear_lower(counters, row, column)[1] if pairs is None else pairs)
        own, i, j = counters[:, i, j], i + row, j + column
        score = self._scoring.pairs(own, strand, i, j)
        kept = self._filter.allows(score)
        if self._top:
            kept &= score >= np.minimum(self._best[i, 0], self._best[j, 0])
        return _edges(i[kept], j[kept], strand, own[:, kept], score[kept])

    def _on_gpu(self, counters: Any, strand: int, row: int, column: int, _: NDArray[np.int64] | None) -> Edges:
        xp = array_module(counters)
        score = self._scoring.rectangle(counters, strand, row, column)
        kept = (column + xp.arange(score.shape[1]))[None, :] > (row + xp.arange(score.shape[0]))[:, None]
        kept &= (counters != 0).any(axis=0)
        kept &= self._filter.allows(score)
        if self._top:
            kept &= self._among_the_best(xp, xp.where(kept, score, -xp.inf), row, column)
        i, j = xp.nonzero(kept)
        own, scores, i, j = (values.get() for values in (counters[:, i, j], score[i, j], i, j))
        return _edges(i + row, j + column, strand, own, scores)

    def _among_the_best(self, xp: Any, score: Any, row: int, column: int) -> Any:
        """Which scores are among the best of their row, or column, in this tile and all tiles so far."""
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
        ends, scores = np.concatenate([edges.row, edges.column]), np.tile(edges.score, 2)
        order = np.lexsort((-scores, ends))
        ends, scores = ends[order], scores[order]
        rank = _rank(ends)
        kept = rank < self._top
        new = np.full(self._best.shape, -np.inf)
        new[ends[kept], rank[kept]] = scores[kept]
        self._best = np.sort(np.concatenate([self._best, new], axis=1), axis=1)[:, self._top :]


def _edges(i: Any, j: Any, strand: int, counters: Any, score: Any) -> Edges:
    return Edges(
        i.astype(np.int32),
        j.astype(np.int32),
        np.full(len(i), strand, np.int8),
        np.ascontiguousarray(counters.T, dtype=np.uint32),
        score,
    )
