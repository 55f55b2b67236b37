"""Clusters of the similarity graph, by algorithms of networkx and scipy.

- components         sequences that a path of edges connects
- louvain            Blondel, Guillaume, Lambiotte and Lefebvre, Fast unfolding of communities in large networks, J Stat
                     Mech (2008) P10008: high modularity; a resolution above 1 gives smaller clusters
- label-propagation  Traag and Subelj, Large network community detection by fast label propagation, Sci Rep 13 (2023)
                     2701, with weights
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, option
from hpcvdj.motifs.settings import ClusterSettings
from hpcvdj.storage.plots import require_networkx

if TYPE_CHECKING:
    from hpcvdj.motifs.sequences import InputSet  # slow to import

LARGEST_SCORE = 1e100
"""Scores must be smaller, as modularity squares sums of scores."""

COLUMNS = ("name", "cluster", "size", "degree", "weighted_degree")


@dataclass(frozen=True)
class Clustering:
    """The cluster of each sequence, and its neighbours.

    cluster          int32 [sequences]: by size, from 1 for the largest cluster; among equal ones, the cluster with the
                     earliest sequence is first; 0 means no cluster
    degree           int32 [sequences]: number of neighbours
    weighted_degree  float64 [sequences]: sum of the scores of the edges
    modularity       Newman's modularity with weights, at resolution 1; each sequence of cluster 0 is alone; NaN without
                     edges
    left_out         number of edges without a positive score
    """

    cluster: NDArray[np.int32]
    degree: NDArray[np.int32]
    weighted_degree: NDArray[np.float64]
    modularity: float
    left_out: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of sequences of clusters 1, 2, …, int64 [clusters]."""
        return np.bincount(self.cluster, minlength=1)[1:]

    def to_table(self, names: list[str], tables: Sequence[str] = (), read: "InputSet | None" = None) -> Any:
        """Return a pyarrow Table of `COLUMNS` with a row for each sequence in order; cluster 0 has size 0 there.

        tables  see `MotifResult.tables`: a further column if there are any
        read    see `read_again`: for junctions, columns of their genes and of their cluster's consensus follow
        """
        import pyarrow as pa

        sizes = np.concatenate([[0], self.sizes])
        values = names, self.cluster, sizes[self.cluster], self.degree, self.weighted_degree
        columns: dict[str, Any] = dict(zip(COLUMNS, values, strict=True)) | ({"tables": tables} if tables else {})
        if read is not None and read.columns:
            *_, sequences = read.columns.values()
            columns |= {**read.columns, "consensus": consensus(sequences, self.cluster)}
        return pa.table({name: pa.array(column) for name, column in columns.items()})


def consensus(sequences: Sequence[str], clusters: NDArray[np.int32]) -> list[str]:
    """Return the consensus of each sequence's cluster; empty for cluster 0.

    Only the sequences of the most frequent length count (the longest of equally frequent lengths).  At each position,
    the consensus has the base of more than half of these sequences, or N.

    >>> consensus(["ACGT", "ACGA", "AAGC", "AC", "TT"], np.array([1, 1, 1, 1, 0]))
    ['ACGN', 'ACGN', 'ACGN', 'ACGN', '']
    """
    members: dict[int, list[str]] = {}
    for number, sequence in zip(clusters.tolist(), sequences, strict=True):
        members.setdefault(number, []).append(sequence)
    texts = {number: majority(texts_of, "N") if number else "" for number, texts_of in members.items()}
    return [texts[number] for number in clusters.tolist()]


def most_frequent_length(sequences: Sequence[str]) -> list[str]:
    """Return the sequences of the most frequent length; of equally frequent lengths, of the longest."""
    lengths = Counter(map(len, sequences))
    most = max(lengths, key=lambda length: (lengths[length], length))
    return [sequence for sequence in sequences if len(sequence) == most]


def majority(sequences: Sequence[str], unknown: str) -> str:
    """Return the consensus of the sequences of the most frequent length: the letter of more than half, or `unknown`."""
    chosen = most_frequent_length(sequences)
    most = [Counter(column).most_common(1)[0] for column in zip(*chosen, strict=True)]
    return "".join(letter if 2 * number > len(chosen) else unknown for letter, number in most)


def cluster(matrix: Any, settings: ClusterSettings | None = None) -> Clustering:
    """Cluster the graph of a symmetric sparse matrix of scores (`graph.score_matrix`), the same way for the same seed.

    Edges without a positive score do not count, as they show no similarity.
    """
    settings = settings or ClusterSettings()
    positive, left_out = positive_scores(matrix)
    if not positive.data.max(initial=0.0) < LARGEST_SCORE:
        raise InputError(
            f"scores of {LARGEST_SCORE:g} and more cannot be added up; compare with smaller {option('weights')}"
        )
    degree = np.diff(positive.indptr).astype(np.int32)
    label = _labels(positive, settings)
    if settings.singletons == "none":
        label[degree == 0] = -1
    clusters = _numbered(label, settings.min_size)
    weighted = np.asarray(positive.sum(axis=1), dtype=np.float64).ravel()
    return Clustering(clusters, degree, weighted, modularity(positive, clusters), left_out)


def positive_scores(matrix: Any) -> tuple[Any, int]:
    """Return the matrix without the edges that have no positive score, and the number of these edges."""
    positive = matrix.copy()
    left_out = int((positive.data <= 0).sum()) // 2
    positive.data[positive.data <= 0] = 0
    positive.eliminate_zeros()
    return positive, left_out


def _labels(matrix: Any, settings: ClusterSettings) -> NDArray[np.int64]:
    """Return a label for each sequence, int64 [sequences]."""
    if settings.algorithm == "components":
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(matrix, directed=False)[1], dtype=np.int64)
    nx = require_networkx()
    label = -2 - np.arange(matrix.shape[0])  # every sequence is alone; -1 would mean no cluster
    # Nodes are numbers in order: the algorithms iterate over sets, in which the order of texts varies between runs.
    graph = nx.from_scipy_sparse_array(matrix)
    graph.remove_nodes_from(list(nx.isolates(graph)))
    seed, resolution = settings.seed, settings.resolution
    if settings.algorithm == "louvain":
        groups = nx.community.louvain_communities(graph, weight="weight", resolution=resolution, seed=seed)
    else:
        groups = nx.community.fast_label_propagation_communities(graph, weight="weight", seed=seed)
    for number, group in enumerate(groups):
        label[list(group)] = number
    return label


def _numbered(label: NDArray[np.int64], min_size: int) -> NDArray[np.int32]:
    """Return the clusters of labels, numbered by size, int32 [sequences]; label -1 means no cluster."""
    values, first, inverse, sizes = np.unique(label, return_index=True, return_inverse=True, return_counts=True)
    kept = (sizes >= min_size) & (values != -1)
    order = np.lexsort((first, -sizes, ~kept))
    number = np.empty(len(values), dtype=np.int32)
    number[order] = np.arange(1, len(values) + 1)
    number[~kept] = 0
    return number[inverse]


def modularity(matrix: Any, label: NDArray[np.int32]) -> float:
    """Return Newman's modularity of a weighted graph, a symmetric matrix without diagonal; label 0 is no cluster.

    Q = sum over clusters of L_c / m - (k_c / 2m)^2: Newman, Analysis of weighted networks, Phys Rev E 70 (2004) 056131.
    """
    both = float(matrix.sum())
    if not both > 0:
        return float("nan")
    apart = label.astype(np.int64).copy()
    apart[apart == 0] = apart.max(initial=0) + 1 + np.arange((apart == 0).sum())
    edges = matrix.tocoo()
    inside = float(edges.data[apart[edges.row] == apart[edges.col]].sum())
    strength = np.bincount(apart, weights=np.asarray(matrix.sum(axis=1)).ravel())
    return inside / both - float((strength**2).sum()) / both**2


def read_clusters(path: Path, names: list[str]) -> NDArray[np.int64]:
    """Read the clusters of `names` from a table of clusters, int64 [names].  Raise InputError if one is missing."""
    from hpcvdj.repertoires.readers import open_table

    clusters: dict[str, int] = {}
    for batch in open_table(path).batches(("name", "cluster")):
        for name, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if not text.isdigit():
                raise InputError(f"{path}: the cluster of {name!r} is {text!r}, not a number; give a table of clusters")
            clusters[name] = int(text)
    missing = next((name for name in names if name not in clusters), None)
    if missing is not None:
        raise InputError(f"{path}: has no row for {missing!r}; give the clusters of this result")
    return np.array([clusters[name] for name in names], dtype=np.int64)
