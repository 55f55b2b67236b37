"""Edges of the similarity graph: the pairs of a tile of counters that a selection lets through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.profile import array_module


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

    def take(self, which: NDArray[Any]) -> Edges:
        """Those at the places, or under the mask, `which`."""
        return Edges(
            self.row[which], self.column[which], self.strand[which], self.counters[which], self.score[which]
        )  # fmt: skip


def no_edges(d: int) -> Edges:
    """None at all."""
    nothing = np.empty(0, np.int32)
    return Edges(nothing, nothing, np.empty(0, np.int8), np.empty((0, d + 1), np.uint32), np.empty(0))


def joined(parts: list[Edges], d: int) -> Edges:
    """All of `parts`, by strand, row and column, each pair once."""
    parts = parts or [no_edges(d)]
    every = Edges(*(np.concatenate([getattr(part, name) for part in parts]) for name in Edges.__dataclass_fields__))
    every = every.take(np.lexsort((every.column, every.row, every.strand)))
    new = np.ones(len(every), dtype=bool)
    same = (every.row[1:] == every.row[:-1]) & (every.column[1:] == every.column[:-1])
    new[1:] = ~(same & (every.strand[1:] == every.strand[:-1]))
    return every.take(new)


@dataclass(frozen=True)
class Selection:
    """Which pairs become edges: those of a score of `minimum` at least, and of each sequence the `top` best.

    None lets every pair with a common k-mer through.  A pair among the best of one of its sequences is an edge.
    """

    minimum: float | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if self.minimum is not None and math.isnan(self.minimum):
            raise InputError("--min-score nan: give a number")

    def from_tile(
        self,
        counters: Any,
        score: Any,
        first_row: int,
        first_column: int,
        strand: int,
        row_least: NDArray[np.float64] | None = None,
        column_least: NDArray[np.float64] | None = None,
    ) -> Edges:
        """Edges of a tile [d + 1, rows, columns], or more: what only the whole set's best leave out is still in.

        `row_least` and `column_least` are scores that an edge of each sequence must reach, as far as is known.
        """
        xp = array_module(counters)
        rows = xp.arange(first_row, first_row + score.shape[0])[:, None]
        columns = xp.arange(first_column, first_column + score.shape[1])[None, :]
        kept = columns > rows
        kept &= (counters != 0).any(axis=0)
        kept &= score == score  # not NaN
        if self.minimum is not None:
            kept &= score >= self.minimum
        if self.top is not None:
            # The best of a row (or a column) of this tile hold the best of the whole that lie in it.
            ranked = xp.where(kept, score, -xp.inf)
            enough = xp.zeros_like(kept)
            for axis, known in ((0, column_least), (1, row_least)):
                size = ranked.shape[axis]
                least = xp.full((1, 1), -xp.inf)
                if self.top < size:
                    least = xp.take(xp.partition(ranked, size - self.top, axis=axis), xp.array([size - self.top]), axis)
                if known is not None:
                    least = xp.maximum(least, xp.asarray(known)[None, :] if axis == 0 else xp.asarray(known)[:, None])
                enough |= ranked >= least
            kept &= enough
        i, j = xp.nonzero(kept)
        found = (i + first_row, j + first_column, counters[:, i, j].T, score[i, j])
        row, column, counts, scores = (part if xp is np else part.get() for part in found)
        return Edges(
            row.astype(np.int32),
            column.astype(np.int32),
            np.full(len(row), strand, np.int8),
            np.ascontiguousarray(counts, dtype=np.uint32),
            scores,
        )

    def from_pairs(
        self,
        edges: Edges,
        row_least: NDArray[np.float64] | None,
        column_least: NDArray[np.float64] | None,
        first_row: int,
        first_column: int,
    ) -> Edges:
        """As `from_tile`, of the pairs of a tile that have a counter, with their scores."""
        kept = ~np.isnan(edges.score)
        if self.minimum is not None:
            kept &= edges.score >= self.minimum
        if row_least is not None and column_least is not None:
            least = np.minimum(row_least[edges.row - first_row], column_least[edges.column - first_column])
            kept &= edges.score >= least
        return self.finish(edges.take(kept))

    def finish(self, edges: Edges) -> Edges:
        """The edges of the whole set, of what `from_tile` gave of all tiles."""
        if self.top is None or not len(edges):
            return edges
        ends = np.concatenate([edges.row, edges.column])
        others = np.concatenate([edges.column, edges.row])
        place = np.tile(np.arange(len(edges)), 2)
        # Best first; equal scores by the other sequence, so that the choice does not hang on the tiles.
        order = np.lexsort((np.tile(edges.strand, 2), others, -np.tile(edges.score, 2), ends))
        sorted_ends = ends[order]
        begins = np.searchsorted(sorted_ends, sorted_ends)
        best = np.arange(len(order)) - begins < self.top
        return edges.take(np.unique(place[order[best]]))


class TopScores:
    """The `top`-th best score of each sequence so far: what a further edge must reach.  Nothing if `top` is None."""

    def __init__(self, sequences: int, top: int | None) -> None:
        # No sequence has more edges: memory goes by what there is.
        self._top = top = top and min(top, 2 * max(1, sequences))
        self._best = np.full((sequences, top), -np.inf) if top is not None else None

    def of(self, first: int, last: int) -> NDArray[np.float64] | None:
        """Those of sequences first … last-1, -inf for one that has fewer edges."""
        return None if self._best is None else self._best[first:last, 0]

    def learn(self, edges: Edges) -> None:
        """Take the edges of one more tile into account."""
        if self._best is None or self._top is None or not len(edges):
            return
        ends = np.concatenate([edges.row, edges.column])
        order = np.lexsort((-np.tile(edges.score, 2), ends))
        ends, scores = ends[order], np.tile(edges.score, 2)[order]
        place = np.arange(len(ends)) - np.searchsorted(ends, ends)
        kept = place < self._top
        mine = np.full((len(self._best), self._top), -np.inf)
        mine[ends[kept], place[kept]] = scores[kept]
        both = np.sort(np.concatenate([self._best, mine], axis=1), axis=1)
        self._best = both[:, self._top :]
