"""Figures of a result: its network, and logos of clusters."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.motifs.clusters import cluster, majority, positive_scores
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.graph import score_matrix, selected_edges
from hpcvdj.motifs.logos import LONGEST, MOST_LOGOS, Letters, alignment, draw_logos, require_logomaker
from hpcvdj.motifs.network import MOST_NAMED, draw_network, network
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.sequences import SEPARATOR, InputSet
from hpcvdj.recombination.repertoire import ANCHOR_LETTERS
from hpcvdj.storage.plots import pyplot, require_networkx, require_plottable, save

Kind = Literal["network", "logos"]


@dataclass(frozen=True)
class Drawing:
    """The content of a figure.

    kind         the network of the graph, or the logos of its clusters
    edge_filter  which edges to use
    strand       `+`, `-`, or `both`
    clusters     int64 [sequences]: the clusters to colour or to show as logos; by default those of `cluster`
    read         the sequences, for logos and for the consensus of a cluster; None if their files are gone
    letters      the letters of logos and of a consensus; by default amino acids for junctions, else nucleotides
    """

    kind: Kind = "network"
    edge_filter: EdgeFilter = field(default_factory=EdgeFilter)
    strand: str = "both"
    clusters: NDArray[np.int64] | None = None
    read: InputSet | None = None
    letters: Letters | None = None


def draw(result: MotifResult, target: Path, drawing: Drawing, *, overwrite: bool = False) -> str:
    """Draw a figure to `target` (.png or .svg), and return a description of it."""
    require_plottable(target, overwrite=overwrite)
    if drawing.kind == "network":
        require_networkx()
        figure, axes = pyplot().subplots(figsize=(10, 7), layout="constrained")
        words = _draw_network(axes, result, drawing)
        axes.set_title(words, fontsize="medium")
    else:
        require_logomaker()
        figure = pyplot().figure(figsize=(9, 7), layout="constrained")
        words = _draw_logos(figure, result, drawing)
        figure.suptitle(words, fontsize="medium")
    save(figure, target, overwrite=overwrite)
    return words


def _clustered(result: MotifResult, drawing: Drawing) -> tuple[Any, NDArray[np.int64]]:
    """Return the graph of positive scores and the cluster of each sequence.  Raise InputError without edges."""
    matrix = score_matrix(selected_edges(result, drawing.edge_filter, drawing.strand), len(result))
    positive, _ = positive_scores(matrix)
    if not positive.nnz:
        raise InputError(f"{result.path}: has no edge to draw; give a lower {option('min_score')}")
    clusters = drawing.clusters
    return positive, cluster(positive).cluster.astype(np.int64) if clusters is None else clusters


def _largest(clusters: NDArray[np.int64], most: int) -> list[int]:
    """Return the numbers of the largest clusters of two or more sequences, of equal ones the smaller number first."""
    numbers, sizes = np.unique(clusters[clusters > 0], return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    return [int(numbers[k]) for k in order[:most].tolist() if sizes[k] > 1]


def _aligned(result: MotifResult, drawing: Drawing, members: NDArray[np.bool_]) -> tuple[list[str], Letters]:
    if drawing.read is None:
        return [], drawing.letters or "nucleotides"
    texts = [drawing.read.sequences.text(k) for k in np.flatnonzero(members).tolist()]
    junctions = drawing.read.are_tables and result.compared.sequence_field in ANCHOR_LETTERS
    letters: Letters = drawing.letters or ("amino-acids" if junctions else "nucleotides")
    return alignment(texts, letters), letters


def _described(result: MotifResult, members: NDArray[np.bool_]) -> str:
    """Return the size of a cluster and, if several tables were compared, how many of them have its sequences."""
    size, tables = f"{int(members.sum()):,}", result.tables
    if not tables:
        return size
    names = {name for k in np.flatnonzero(members).tolist() for name in tables[k].split(SEPARATOR)}
    return f"{size} in {len(names)} table{'s' * (len(names) > 1)}"


def _draw_network(axes: Any, result: MotifResult, drawing: Drawing) -> str:
    matrix, clusters = _clustered(result, drawing)
    graph = network(matrix, clusters)
    labels = {}
    for number in _largest(clusters[graph.nodes], MOST_NAMED):
        members = clusters == number
        aligned, letters = _aligned(result, drawing, members)
        text = majority(aligned, "X" if letters == "amino-acids" else "N") if aligned else ""
        fits = 0 < len(text) <= 40  # beside the network
        labels[number] = f"{number}: {_described(result, members)}" + f", {text}" * fits
    draw_network(axes, graph, clusters, labels)
    isolated = len(result) - int((np.diff(matrix.indptr) > 0).sum())
    left_out = len(result) - isolated - len(graph.nodes)
    drawn = f"{len(graph.nodes):,} of {len(result):,} sequences, {len(graph.edges):,} of {int(matrix.nnz) // 2:,} edges"
    rest = f", {left_out:,} in smaller clusters left out" if left_out else ""
    return f"{drawn}; {isolated:,} without edges{rest}"


def _draw_logos(figure: Any, result: MotifResult, drawing: Drawing) -> str:
    if drawing.read is None:
        raise InputError(
            f"{result.path}: logos need the compared sequences; {option('sequences')} says where their file is"
        )
    _, clusters = _clustered(result, drawing)
    alignments: dict[str, list[str]] = {}
    for number in _largest(clusters, len(clusters)):
        if len(alignments) == MOST_LOGOS:
            break
        members = clusters == number
        aligned, letters = _aligned(result, drawing, members)
        if len(aligned) > 1 and len(aligned[0]) <= LONGEST:
            size = _described(result, members)
            alignments[f"{number}: {len(aligned):,} of {size}, {len(aligned[0])} letters"] = aligned
    if not alignments:
        raise InputError(
            f"{result.path}: no cluster has two sequences of one length, at most {LONGEST} letters long; draw "
            f"{option('kind', 'network')}"
        )
    draw_logos(figure, alignments, letters)
    return f"{letters.replace('-', ' ')} of {len(alignments)} clusters, their sequences of the most frequent length"
