"""The drawing of a similarity graph as a network.

The force-directed layout of networkx (Fruchterman and Reingold, Graph drawing by force-directed placement, Softw Pract
Exper 21 (1991) 1129) places the nodes of each component.  Components are packed beside each other, the largest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.storage.plots import COLOURS, require_networkx

MOST_NODES = 1500
"""The largest number of nodes in a drawing, as the time of the layout grows with its square.

A larger graph is reduced to complete clusters, the largest first.
"""

MOST_NAMED = 30
"""The largest number of clusters with a colour and a label."""

_RASTER = 5000
"""With more edges, an .svg file has a raster image of them."""


@dataclass(frozen=True)
class Network:
    """A layout: which sequences to draw, and where.

    nodes      int64 [nodes]: sequences, ascending
    positions  float64 [nodes, 2]
    edges      int64 [edges, 2]: pairs of nodes, the smaller index first
    """

    nodes: NDArray[np.int64]
    positions: NDArray[np.float64]
    edges: NDArray[np.int64]


def network(matrix: Any, clusters: NDArray[Any]) -> Network:
    """Lay out a graph (`graph.score_matrix`, positive scores only), without sequences that have no edges.

    clusters  the cluster of each sequence
    """
    from scipy.sparse.csgraph import connected_components

    nodes = drawn_nodes(matrix, clusters)
    inner = matrix[nodes][:, nodes]
    label = connected_components(inner, directed=False)[1]
    order = np.argsort(-np.bincount(label), kind="stable")
    parts = [np.flatnonzero(label == component) for component in order.tolist()]
    positions = np.empty((len(nodes), 2))
    layouts = [_layout(inner[part][:, part]) for part in parts]
    for part, corner, layout in zip(parts, packed([layout.max(axis=0) for layout in layouts]), layouts, strict=True):
        positions[part] = corner + layout
    ends = inner.tocoo()
    upper = ends.row < ends.col
    return Network(nodes, positions, np.stack([ends.row[upper], ends.col[upper]], axis=1).astype(np.int64))


def drawn_nodes(matrix: Any, clusters: NDArray[Any]) -> NDArray[np.int64]:
    """Return the sequences to draw, int64 [nodes], ascending: those with edges, at most `MOST_NODES`."""
    linked = np.flatnonzero(np.diff(matrix.indptr))
    if len(linked) <= MOST_NODES:
        return linked.astype(np.int64)
    sizes = np.bincount(clusters[linked])
    sizes[0] = 0
    largest = np.argsort(-sizes, kind="stable")
    fitting = largest[(np.cumsum(sizes[largest]) <= MOST_NODES) & (sizes[largest] > 0)]
    if len(fitting):
        return linked[np.isin(clusters[linked], fitting)].astype(np.int64)
    # The largest cluster (or, without clusters, the set) is too large: take its sequences most similar to others.
    chosen = linked[clusters[linked] == largest[0]]
    strength = np.asarray(matrix.sum(axis=1)).ravel()[chosen]
    return np.sort(chosen[np.argsort(-strength, kind="stable")[:MOST_NODES]]).astype(np.int64)


def _layout(matrix: Any) -> NDArray[np.float64]:
    """Return the positions of a component's nodes, float64 [nodes, 2], from (0, 0) on; the area grows with them."""
    nx = require_networkx()
    placed = nx.spring_layout(nx.from_scipy_sparse_array(matrix), seed=1)
    positions = np.array([placed[node] for node in range(matrix.shape[0])], dtype=np.float64)
    positions -= positions.min(axis=0)
    positions *= np.sqrt(len(positions)) / (positions.max() or 1.0)
    return positions


def packed(sizes: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the corners of boxes of these sizes (width, height), which are side by side in rows without overlap."""
    gap = 1.0
    width = max([float(np.sqrt(sum((w + gap) * (h + gap) for w, h in sizes))), *(float(w) for w, _ in sizes)])
    corners, x, y, height = [], 0.0, 0.0, 0.0
    for box_width, box_height in sizes:
        if x and x + box_width > width:
            x, y, height = 0.0, y - height - gap, 0.0
        corners.append(np.array([x, y - box_height]))
        x, height = x + box_width + gap, max(height, float(box_height))
    return corners


def draw_network(axes: Any, graph: Network, clusters: NDArray[Any], labels: dict[int, str]) -> None:
    """Draw nodes and edges.  Clusters with a label have a colour and show their number.

    clusters  the cluster of each sequence, including those that are not drawn
    """
    from matplotlib.collections import LineCollection

    many = len(graph.edges) > _RASTER
    segments = list(graph.positions[graph.edges])
    lines = LineCollection(segments, colors="0.5", alpha=0.15 if many else 0.35, linewidths=0.5, zorder=0)
    lines.set_rasterized(many)
    axes.add_collection(lines)
    inside = clusters[graph.nodes]
    area = 12.0 if len(graph.nodes) > 300 else 25.0
    others = ~np.isin(inside, list(labels))
    axes.scatter(*graph.positions[others].T, s=area, color="#999999", linewidths=0)
    for rank, (number, label) in enumerate(labels.items()):
        members = graph.positions[inside == number]
        axes.scatter(*members.T, s=area, color=COLOURS[rank % len(COLOURS)], linewidths=0, label=label)
        box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.7}
        axes.text(*members.mean(axis=0), str(number), ha="center", va="center", fontsize=6, bbox=box)
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.set_axis_off()
    if labels:
        axes.legend(
            loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, title="cluster: sequences, consensus",
            prop={"family": "monospace", "size": 6}, title_fontsize=7, alignment="left", handletextpad=0.2,
        )  # fmt: skip
