"""Figures of a result: its network, logos of clusters, a heatmap of the scores, distributions of degrees and scores."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.motifs.clusters import cluster, majority, positive_scores
from hpcvdj.motifs.edges import STRANDS, EdgeFilter
from hpcvdj.motifs.graph import score_matrix, selected_edges, strands_of, tiles
from hpcvdj.motifs.logos import LONGEST, MOST_LOGOS, Letters, alignment, draw_logos, require_logomaker
from hpcvdj.motifs.network import MOST_NAMED, draw_network, network
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.sequences import SEPARATOR, InputSet
from hpcvdj.recombination.repertoire import ANCHOR_LETTERS
from hpcvdj.storage.plots import COLOURS, pyplot, require_networkx, require_plottable, save

Kind = Literal["network", "logos", "heatmap", "degree", "scores"]

_SIZES = {"heatmap": (7, 6), "network": (10, 7)}
"""Inches."""

_LONGEST_LABEL = 40
"""Letters of a consensus that fits beside a network."""

MOST = 1200
"""Rows of a heatmap, and sequences that are clustered hierarchically."""

BINS = 100

_LABELLED = 0.02
"""A cluster of this share of a heatmap's rows has its number beside it."""

ScorePieces = Iterator[tuple[int, NDArray[np.float64]]]
"""(strand, scores), piece by piece."""


@dataclass(frozen=True)
class Heatmap:
    """A heatmap's values.

    values    float64 [rows, rows]: the score, or the largest score of the pairs that a cell stands for; NaN for none
    cluster   int64 [rows]: the cluster of each row's first sequence; empty if no clusters were given
    shown     sequences that the rows stand for
    order     how the rows are ordered, in words
    """

    values: NDArray[np.float64]
    cluster: NDArray[np.int64]
    shown: int
    order: str


@dataclass(frozen=True)
class Wanted:
    """What a figure shows.

    kind         `network`, `logos`, `heatmap`, `degree` or `scores`; by default the network of edges, or the heatmap of
                 all pairs
    edge_filter  which edges
    strand       `+`, `-`, or `both`
    clusters     int64 [sequences]: the colours of a network, the clusters of the logos, the order of a heatmap's rows
    read         the sequences, for the consensus of a cluster and for logos; None if they are not there
    letters      of logos and of a consensus; by default amino acids of junctions, else nucleotides
    """

    kind: Kind | None = None
    edge_filter: EdgeFilter = field(default_factory=EdgeFilter)
    strand: str = "both"
    clusters: NDArray[np.int64] | None = None
    read: InputSet | None = None
    letters: Letters | None = None


def kind_of(result: MotifResult, kind: Kind | None) -> Kind:
    """The kind of figure that is drawn of a result if `kind` is wanted."""
    return kind or ("heatmap" if result.dense else "network")


def draw(result: MotifResult, target: Path, wanted: Wanted, *, overwrite: bool = False) -> str:
    """Draw a figure to `target` (.png or .svg); returns what it shows, in words."""
    require_plottable(target, overwrite=overwrite)
    kind = kind_of(result, wanted.kind)
    strands = strands_of(result, wanted.strand)
    if kind == "network":
        require_networkx(f", or draw {option('kind', 'heatmap')}")
    if kind == "logos":
        require_logomaker()
        figure = pyplot().figure(figsize=(9, 7), layout="constrained")
        words = _draw_logos(figure, result, wanted, strands)
        figure.suptitle(words, fontsize="medium")
        save(figure, target, overwrite=overwrite)
        return words
    figure, axes = pyplot().subplots(figsize=_SIZES.get(kind, (6.5, 4.2)), layout="constrained")
    if kind == "network":
        words = _draw_network(axes, result, wanted, strands)
    elif kind == "heatmap":
        words = _draw_heatmap(axes, result, wanted.edge_filter, strands, wanted.clusters)
    else:
        words = (_draw_degree if kind == "degree" else _draw_scores)(axes, result, wanted.edge_filter, strands)
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(words, fontsize="medium")
    save(figure, target, overwrite=overwrite)
    return words


def _clustered(result: MotifResult, wanted: Wanted, strands: list[int]) -> tuple[Any, NDArray[np.int64]]:
    """The graph, edges with a positive score alone, and the cluster of each sequence; InputError without edges."""
    matrix = score_matrix(selected_edges(result, wanted.edge_filter, strands), len(result))
    positive, _ = positive_scores(matrix)
    if not positive.nnz:
        raise InputError(f"{result.path}: has no edge to draw; give a lower {option('min_score')}")
    clusters = wanted.clusters
    return positive, cluster(positive).cluster.astype(np.int64) if clusters is None else clusters


def _largest(clusters: NDArray[np.int64], most: int) -> list[int]:
    """The numbers of the largest clusters of two sequences or more; of equal ones, the smaller number first."""
    numbers, sizes = np.unique(clusters[clusters > 0], return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    return [int(numbers[k]) for k in order[:most].tolist() if sizes[k] > 1]


def _aligned(result: MotifResult, wanted: Wanted, members: NDArray[np.bool_]) -> tuple[list[str], Letters]:
    """The alignment of a cluster, and its letters."""
    if wanted.read is None:
        return [], wanted.letters or "nucleotides"
    texts = [wanted.read.sequences.text(k) for k in np.flatnonzero(members).tolist()]
    junctions = wanted.read.are_tables and result.compared.sequence_field in ANCHOR_LETTERS
    letters: Letters = wanted.letters or ("amino-acids" if junctions else "nucleotides")
    return alignment(texts, letters), letters


def _described(result: MotifResult, members: NDArray[np.bool_]) -> str:
    """The size of a cluster and, if several tables were compared, how many of them have its sequences."""
    several = result.tables
    names = {name for k in np.flatnonzero(members).tolist() for name in several[k].split(SEPARATOR)} if several else ()
    return f"{int(members.sum()):,}" + (f" in {len(names)} table{'s' * (len(names) > 1)}" if names else "")


def _draw_network(axes: Any, result: MotifResult, wanted: Wanted, strands: list[int]) -> str:
    matrix, clusters = _clustered(result, wanted, strands)
    own = network(matrix, clusters)
    labels = {}
    for number in _largest(clusters[own.nodes], MOST_NAMED):
        members = clusters == number
        aligned, letters = _aligned(result, wanted, members)
        text = majority(aligned, "X" if letters == "amino-acids" else "N") if aligned else ""
        text = text if len(text) <= _LONGEST_LABEL else ""
        labels[number] = f"{number}: {_described(result, members)}{text and ', ' + text}"
    draw_network(axes, own, clusters, labels)
    isolated = len(result) - int((np.diff(matrix.indptr) > 0).sum())
    left_out = len(result) - isolated - len(own.nodes)
    drawn = f"{len(own.nodes):,} of {len(result):,} sequences, {len(own.edges):,} of {int(matrix.nnz) // 2:,} edges"
    rest = f", {left_out:,} in smaller clusters left out" if left_out else ""
    return f"{drawn}; {isolated:,} without edges{rest}"


def _draw_logos(figure: Any, result: MotifResult, wanted: Wanted, strands: list[int]) -> str:
    if wanted.read is None:
        raise InputError(
            f"{result.path}: logos need the compared sequences; {option('sequences')} says where their file is"
        )
    _, clusters = _clustered(result, wanted, strands)
    alignments: dict[str, list[str]] = {}
    for number in _largest(clusters, len(clusters)):
        if len(alignments) == MOST_LOGOS:
            break
        members = clusters == number
        aligned, letters = _aligned(result, wanted, members)
        if len(aligned) > 1 and len(aligned[0]) <= LONGEST:
            size = _described(result, members)
            alignments[f"{number}: {len(aligned):,} of {size}, {len(aligned[0])} letters"] = aligned
    if not alignments:
        raise InputError(
            f"{result.path}: no cluster has two sequences of one length, at most {LONGEST} letters long; draw another "
            f"{option('kind')}"
        )
    draw_logos(figure, alignments, letters)
    return f"{letters.replace('-', ' ')} of {len(alignments)} clusters, their sequences of the most frequent length"


def _all_pairs(result: MotifResult, edge_filter: EdgeFilter) -> bool:
    return result.dense and edge_filter == EdgeFilter()


def heatmap(
    result: MotifResult, edge_filter: EdgeFilter, strands: list[int], clusters: NDArray[np.int64] | None = None
) -> Heatmap:
    """The scores, ordered by `clusters`, else by hierarchical clustering, else (many sequences) by components.

    If a dense result has more than `MOST` sequences, evenly many are drawn.  Edges are pooled to the largest score of
    each block, and sequences without edges are left out.
    """
    if _all_pairs(result, edge_filter):
        return _heatmap_of_all_pairs(result, strands, clusters)
    matrix = score_matrix(selected_edges(result, edge_filter, strands), len(result))
    linked = np.flatnonzero(np.diff(matrix.indptr))
    if not len(linked):
        raise InputError(f"{result.path}: has no edge to draw; give a lower {option('min_score')}")
    inner = matrix[linked][:, linked]
    if clusters is not None:
        order, words = _by_cluster(clusters[linked]), "by cluster"
    elif len(linked) <= MOST:
        order, words = _by_linkage(inner.toarray()), "by average linkage"
    else:
        order, words = _by_component(inner), "by connected component"
    rows = min(len(linked), MOST)
    row_of = np.empty(len(linked), dtype=np.int64)
    row_of[order] = np.arange(len(linked)) * rows // len(linked)
    values = np.full((rows, rows), np.nan)
    ends = inner.tocoo()
    np.fmax.at(values, (row_of[ends.row], row_of[ends.col]), ends.data)
    first = order[np.searchsorted(row_of[order], np.arange(rows))]
    row_clusters = clusters[linked][first] if clusters is not None else np.empty(0, np.int64)
    return Heatmap(values, row_clusters, len(linked), words)


def _heatmap_of_all_pairs(result: MotifResult, strands: list[int], clusters: NDArray[np.int64] | None) -> Heatmap:
    n = len(result)
    ordered = np.arange(n) if clusters is None else _by_cluster(clusters)
    drawn = ordered[np.unique(np.arange(min(n, MOST)) * n // min(n, MOST))]
    ascending = np.sort(drawn)
    values = np.full((len(drawn), len(drawn)), np.nan)
    for strand, row, column, counters in tiles(result, strands):
        score = result.scoring.rectangle(counters, strand, row, column)
        r0, r1 = np.searchsorted(ascending, (row, row + score.shape[0]))
        c0, c1 = np.searchsorted(ascending, (column, column + score.shape[1]))
        part = score[np.ix_(ascending[r0:r1] - row, ascending[c0:c1] - column)]
        values[r0:r1, c0:c1] = np.fmax(values[r0:r1, c0:c1], part)
    # Below the diagonal a tile has what mirrors it, or nothing.
    values = np.triu(values, 1) + np.triu(values, 1).T
    np.fill_diagonal(values, np.nan)
    if clusters is None:
        order, words = _by_linkage(values), "by average linkage"
    else:
        order, words = np.searchsorted(ascending, drawn), "by cluster"
    row_clusters = clusters[ascending[order]] if clusters is not None else np.empty(0, np.int64)
    return Heatmap(values[np.ix_(order, order)], row_clusters, len(drawn), words)


def _by_cluster(clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cluster 1 first, sequences in no cluster last."""
    return np.lexsort((np.arange(len(clusters)), clusters, clusters == 0))


def _by_linkage(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Leaves of the average-linkage tree (UPGMA); the distance is how far a score is from the largest."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(scores) < 3:
        return np.arange(len(scores))
    condensed = np.nan_to_num(scores, nan=0.0)[np.triu_indices(len(scores), 1)]
    return np.asarray(leaves_list(linkage(condensed.max() - condensed, "average")), dtype=np.int64)


def _by_component(matrix: Any) -> NDArray[np.int64]:
    """Components, the largest first; neighbours near each other in each (reverse Cuthill and McKee)."""
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    label = connected_components(matrix, directed=False)[1]
    rank = np.empty(len(label), dtype=np.int64)
    rank[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(len(label))
    return np.lexsort((rank, label, -np.bincount(label)[label]))


def _draw_heatmap(
    axes: Any, result: MotifResult, edge_filter: EdgeFilter, strands: list[int], clusters: NDArray[np.int64] | None
) -> str:
    from matplotlib.colors import PowerNorm

    map_ = heatmap(result, edge_filter, strands, clusters)
    # Most of all pairs have a small score and few a large one: the root shows both.
    norm = PowerNorm(0.5) if _all_pairs(result, edge_filter) else None
    image = axes.imshow(map_.values, interpolation="nearest", cmap="viridis_r", norm=norm)
    axes.figure.colorbar(image, ax=axes, label=f"score ({result.scoring.score.name})", shrink=0.8)
    axes.set(xticks=[], yticks=[])
    if len(map_.cluster):
        numbers, first, sizes = np.unique(map_.cluster, return_index=True, return_counts=True)
        wide = (sizes >= _LABELLED * len(map_.cluster)) & (numbers > 0)
        axes.set_yticks((first + (sizes - 1) / 2)[wide], [f"{number}" for number in numbers[wide]], fontsize="small")
        axes.set_ylabel("cluster")
    pooled = f", pooled into {len(map_.values):,} rows" if len(map_.values) < map_.shown else ""
    return f"{map_.shown:,} of {len(result):,} sequences, {map_.order}{pooled}"


def _draw_degree(axes: Any, result: MotifResult, edge_filter: EdgeFilter, strands: list[int]) -> str:
    matrix = score_matrix(selected_edges(result, edge_filter, strands), len(result))
    degree = np.diff(matrix.indptr)
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    if not len(values):
        raise InputError(f"{result.path}: has no edge to draw; give a lower {option('min_score')}")
    share = np.cumsum(counts[::-1])[::-1] / len(degree)
    axes.plot(values, share, marker=".", linestyle="none", color=COLOURS[0])
    axes.set(xscale="log", yscale="log", xlabel="neighbours, x", ylabel="share of sequences with x or more")
    isolated = int((degree == 0).sum())
    return f"{len(degree):,} sequences, {int(matrix.nnz) // 2:,} edges, {isolated:,} sequences without edges"


def _draw_scores(axes: Any, result: MotifResult, edge_filter: EdgeFilter, strands: list[int]) -> str:
    edges, counts = histogram(lambda: _scores(result, edge_filter, strands), strands)
    total = int(counts.sum())
    if not total:
        raise InputError(f"{result.path}: has no pair to draw; give a lower {option('min_score')}")
    for strand, of_strand, colour in zip(strands, counts, COLOURS, strict=False):
        axes.stairs(of_strand, edges, color=colour, label=f"strand {STRANDS[strand]}", linewidth=1.2)
    what = "pairs with a common k-mer" if _all_pairs(result, edge_filter) else "edges"
    axes.set(yscale="log", xlabel=f"score ({result.scoring.score.name})", ylabel=what)
    if len(strands) > 1:
        axes.legend(frameon=False)
    return f"{len(result):,} sequences, {total:,} {what}"


def _scores(result: MotifResult, edge_filter: EdgeFilter, strands: list[int]) -> ScorePieces:
    """The scores of the edges; for a dense result without a filter, of all pairs with a common k-mer."""
    if not _all_pairs(result, edge_filter):
        for piece in selected_edges(result, edge_filter, strands):
            for strand in strands:
                yield strand, piece["score"][piece["strand"] == strand]
        return
    for strand, row, column, counters in tiles(result, strands):
        score = result.scoring.rectangle(counters, strand, row, column)
        above = column + np.arange(score.shape[1])[None, :] > row + np.arange(score.shape[0])[:, None]
        yield strand, score[above & (counters != 0).any(axis=0) & ~np.isnan(score)]


def histogram(
    pieces: Callable[[], ScorePieces], strands: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:  # fmt: skip
    """Borders float64 [BINS + 1] and counts int64 [strands, BINS] of scores, which are read twice."""
    least, most = np.inf, -np.inf
    for _, scores in pieces():
        least, most = scores.min(initial=least), scores.max(initial=most)
    if least > most:
        least, most = 0.0, 1.0
    borders = np.histogram_bin_edges([], BINS, (float(least), float(most)))
    counts = np.zeros((len(strands), BINS), dtype=np.int64)
    for strand, scores in pieces():
        counts[strands.index(strand)] += np.histogram(scores, borders)[0]
    return borders, counts
