"""Figures of a result: a heatmap of the scores, the distribution of degrees, that of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import Selection
from hpcvdj.motifs.graph import score_matrix, selected_edges, strands_of, tiles
from hpcvdj.motifs.results import STRANDS, MotifResult
from hpcvdj.plotting import COLOURS, pyplot, require_plottable, save

KINDS = ("heatmap", "degree", "scores")

MOST = 1200
"""Rows of a heatmap, and sequences that are clustered hierarchically."""

BINS = 100

_LABELLED = 0.02
"""A cluster of this share of a heatmap's rows has its number beside it."""


@dataclass(frozen=True)
class Heatmap:
    """A heatmap's values.

    values    float64 [rows, rows]: the score, or the largest of the pairs behind; NaN where there is none
    cluster   int64 [rows]: the cluster of each row's (first) sequence; empty if no clusters were given
    shown     sequences behind the rows; `of` there are
    order     how the rows are ordered, in words
    """

    values: NDArray[np.float64]
    cluster: NDArray[np.int64]
    shown: int
    of: int
    order: str


def draw(
    result: MotifResult,
    target: Path,
    kind: str = "heatmap",
    selection: Selection | None = None,
    *,
    strand: str = "both",
    clusters: NDArray[np.int64] | None = None,
    overwrite: bool = False,
) -> str:
    """Draw a figure of `KINDS` to `target` (.png or .svg); returns what it shows, in words.

    clusters  int64 [sequences]: orders the heatmap's rows
    """
    require_plottable(target, overwrite=overwrite)
    selection = selection or Selection()
    strands = strands_of(result, strand)
    figure, axes = pyplot().subplots(figsize=(7, 6) if kind == "heatmap" else (6.5, 4.2), layout="constrained")
    if kind == "heatmap":
        found = heatmap(result, selection, strands, clusters)
        said = _draw_heatmap(figure, axes, found, result, every=result.dense and selection == Selection())
    else:
        distribution = _draw_degree if kind == "degree" else _draw_scores
        said = distribution(axes, result, selection, strands)
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, target, overwrite=overwrite)
    return said


def heatmap(
    result: MotifResult, selection: Selection, strands: list[int], clusters: NDArray[np.int64] | None = None
) -> Heatmap:
    """The scores in order: by `clusters`, else by hierarchical clustering, else (many sequences) by components.

    Of more than `MOST` sequences of a dense result evenly many are drawn; edges are pooled, the largest score of each
    block, and sequences without any are left out.
    """
    if result.dense and selection == Selection():
        return _of_all_pairs(result, strands, clusters)
    matrix = score_matrix(selected_edges(result, selection, strands), len(result))
    linked = np.flatnonzero(np.diff(matrix.indptr))
    if not len(linked):
        raise InputError(f"{result.path}: no edge to draw; take a lower --min-score")
    inner = matrix[linked][:, linked]
    if clusters is not None:
        order, words = _by_cluster(clusters[linked]), "by cluster"
    elif len(linked) <= MOST:
        order, words = _by_linkage(_filled(inner)), "by average linkage"
    else:
        order, words = _by_component(inner), "by connected component"
    rows = min(len(linked), MOST)
    place = np.empty(len(linked), dtype=np.int64)
    place[order] = np.arange(len(linked)) * rows // len(linked)
    values = np.full((rows, rows), -np.inf)
    ends = inner.tocoo()
    np.maximum.at(values, (place[ends.row], place[ends.col]), ends.data)
    values[np.isneginf(values)] = np.nan
    first = order[np.searchsorted(place[order], np.arange(rows))]
    chosen = clusters[linked][first] if clusters is not None else np.empty(0, np.int64)
    return Heatmap(values, chosen, len(linked), len(result), words)


def _of_all_pairs(result: MotifResult, strands: list[int], clusters: NDArray[np.int64] | None) -> Heatmap:
    n = len(result)
    if not n:
        raise InputError(f"{result.path}: has no sequences to draw")
    every = np.arange(n) if clusters is None else _by_cluster(clusters)
    chosen = every[np.unique(np.arange(min(n, MOST)) * n // min(n, MOST))]
    ascending = np.sort(chosen)
    values = np.full((len(chosen), len(chosen)), np.nan)
    for _, row, column, _, score in tiles(result, strands):
        r0, r1 = np.searchsorted(ascending, (row, row + score.shape[0]))
        c0, c1 = np.searchsorted(ascending, (column, column + score.shape[1]))
        part = score[np.ix_(ascending[r0:r1] - row, ascending[c0:c1] - column)]
        values[r0:r1, c0:c1] = np.fmax(values[r0:r1, c0:c1], part)
    # Below the diagonal a tile holds what mirrors it, or nothing.
    values = np.triu(values, 1) + np.triu(values, 1).T
    np.fill_diagonal(values, np.nan)
    if clusters is None:
        order, words = _by_linkage(values), "by average linkage"
    else:
        order, words = np.searchsorted(ascending, chosen), "by cluster"
    shown = clusters[ascending[order]] if clusters is not None else np.empty(0, np.int64)
    return Heatmap(values[np.ix_(order, order)], shown, len(chosen), n, words)


def _filled(matrix: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = matrix.toarray()
    return values


def _by_cluster(clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cluster 1 first, those of none last."""
    return np.lexsort((np.arange(len(clusters)), clusters, clusters == 0))


def _by_linkage(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Leaves of the average-linkage tree (UPGMA); the distance is how far a score is from the largest."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(scores) < 3:
        return np.arange(len(scores))
    known = np.nan_to_num(scores, nan=0.0)
    condensed = known[np.triu_indices(len(known), 1)]
    return np.asarray(leaves_list(linkage(condensed.max() - condensed, "average")), dtype=np.int64)


def _by_component(matrix: Any) -> NDArray[np.int64]:
    """Components, the largest first; neighbours near each other in each (reverse Cuthill and McKee)."""
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    label = connected_components(matrix, directed=False)[1]
    rank = np.empty(len(label), dtype=np.int64)
    rank[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(len(label))
    return np.lexsort((rank, label, -np.bincount(label)[label]))


def _draw_heatmap(figure: Any, axes: Any, found: Heatmap, result: MotifResult, *, every: bool) -> str:
    from matplotlib.colors import PowerNorm

    # Of all pairs most have a small score and few a large one: by the root both show.
    norm = PowerNorm(0.5) if every else None
    image = axes.imshow(found.values, interpolation="nearest", cmap="viridis_r", norm=norm)
    figure.colorbar(image, ax=axes, label=f"score ({result.scoring.kind})", shrink=0.8)
    pooled = len(found.values) < found.shown
    words = f"{found.shown:,} of {found.of:,} sequences, {found.order}"
    if pooled:
        words += f", pooled into {len(found.values):,} rows"
    axes.set_title(words, fontsize="medium")
    axes.set(xticks=[], yticks=[])
    if len(found.cluster):
        numbers, first, sizes = np.unique(found.cluster, return_index=True, return_counts=True)
        wide = (sizes >= _LABELLED * len(found.cluster)) & (numbers > 0)
        axes.set_yticks((first + (sizes - 1) / 2)[wide], [f"{number}" for number in numbers[wide]], fontsize="small")
        axes.set_ylabel("cluster")
    return words


def _draw_degree(axes: Any, result: MotifResult, selection: Selection, strands: list[int]) -> str:
    matrix = score_matrix(selected_edges(result, selection, strands), len(result))
    degree = np.diff(matrix.indptr)
    values, share = tail(degree)
    if not len(values):
        raise InputError(f"{result.path}: no edge to draw; take a lower --min-score")
    axes.plot(values, share, marker=".", linestyle="none", color=COLOURS[0])
    axes.set_xscale("log")
    axes.set_yscale("log")
    alone = int((degree == 0).sum())
    words = f"{len(degree):,} sequences, {int(matrix.nnz) // 2:,} edges, {alone:,} sequences without"
    axes.set(xlabel="neighbours, x", ylabel="share of sequences with x or more")
    axes.set_title(words, fontsize="medium")
    return words


def tail(degree: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Degrees above 0 that occur, and the share of all that have that many or more.

    >>> [part.tolist() for part in tail(np.array([0, 1, 1, 3]))]
    [[1, 3], [0.75, 0.25]]
    """
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    return values.astype(np.int64), np.cumsum(counts[::-1])[::-1] / max(1, len(degree))


def _draw_scores(axes: Any, result: MotifResult, selection: Selection, strands: list[int]) -> str:
    edges, counts = histogram(lambda: _scores(result, selection, strands), strands)
    total = int(counts.sum())
    if not total:
        raise InputError(f"{result.path}: no pair to draw; take a lower --min-score")
    for s, colour in zip(strands, COLOURS, strict=False):
        axes.stairs(counts[strands.index(s)], edges, color=colour, label=f"strand {STRANDS[s]}", linewidth=1.2)
    axes.set_yscale("log")
    what = "pairs with a common k-mer" if result.dense and selection == Selection() else "edges"
    words = f"{len(result):,} sequences, {total:,} {what}"
    axes.set(xlabel=f"score ({result.scoring.kind})", ylabel=what)
    axes.set_title(words, fontsize="medium")
    if len(strands) > 1:
        axes.legend(frameon=False)
    return words


def _scores(
    result: MotifResult, selection: Selection, strands: list[int]
) -> Iterator[tuple[int, NDArray[np.float64]]]:  # fmt: skip
    """(strand, scores) of the pairs, piece by piece: of a dense result without a selection all with a common k-mer."""
    if not result.dense or selection != Selection():
        for piece in selected_edges(result, selection, strands):
            for s in strands:
                yield s, piece.score[piece.strand == s]
        return
    for strand, row, column, counters, score in tiles(result, strands):
        above = column + np.arange(score.shape[1])[None, :] > row + np.arange(score.shape[0])[:, None]
        yield strand, score[above & (counters != 0).any(axis=0) & ~np.isnan(score)]


def histogram(
    pieces: Callable[[], Iterator[tuple[int, NDArray[np.float64]]]], strands: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Borders float64 [BINS + 1] and counts int64 [strands, BINS] of scores that are gone through twice."""
    least, most = np.inf, -np.inf
    for _, some in pieces():
        if len(some):
            least, most = min(least, float(some.min())), max(most, float(some.max()))
    if least > most:
        least, most = 0.0, 1.0
    borders = np.histogram_bin_edges([], BINS, (least, most))
    counts = np.zeros((len(strands), BINS), dtype=np.int64)
    for s, some in pieces():
        counts[strands.index(s)] += np.histogram(some, borders)[0]
    return borders, counts
