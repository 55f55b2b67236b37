"""The figure of `hpcvdj enrich`: p-values beside uniform ones, and the network of the hits."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from hpcvdj.enrichment.enrich import Enrichment
from hpcvdj.storage.plots import COLOURS, pyplot, require_networkx, save

MOST = 1000
"""Hits that are drawn: those of the largest clusters."""

OTHERS = "#999999"
"""The colour of V genes that have none of their own."""

_SMALLEST, _LARGEST = 12, 120


def draw(found: Enrichment, target: Path, *, overwrite: bool = False) -> None:
    """Draw both panels to `target` (.png or .svg)."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(12, 5.5), layout="constrained")
    _draw_quantiles(left, found.qq)
    _draw_network(right, found)
    save(figure, target, overwrite=overwrite)


def _draw_quantiles(axes: Any, qq: dict[str, list[float]]) -> None:
    axes.fill_between(qq["expected"], qq["low"], qq["high"], color="#dddddd", label="95 % band without enrichment")
    axes.plot(qq["expected"], qq["expected"], color="black", linewidth=0.8)
    axes.plot(qq["expected"], qq["observed"], marker=".", linestyle="none", color=COLOURS[0], label="observed")
    axes.set(
        xscale="log", yscale="log", xlabel="uniform p-values", ylabel="randomised p-values",
        title="Clonotypes drawn at random",
    )  # fmt: skip
    axes.invert_xaxis()
    axes.invert_yaxis()
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_network(axes: Any, found: Enrichment) -> None:
    hits = found.table.filter(pc.is_valid(found.table["cluster"])).sort_by("cluster").slice(0, MOST)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.set_title(f"{hits.num_rows:,} of {found.hits:,} hits, in {found.clusters:,} clusters")
    axes.spines[:].set_visible(False)
    if not hits.num_rows:
        return
    texts, numbers = hits["junction_aa"].to_pylist(), hits["cluster"].to_numpy()
    edges = edges_of(texts, numbers)
    places = layout(edges, numbers)
    for ends in edges.tolist():
        axes.plot(*places[ends].T, color="#bbbbbb", linewidth=0.6, zorder=1)
    genes = hits["v_call"].to_pylist()
    excess = np.log10(hits["neighbours"].to_numpy() / np.maximum(hits["expected"].to_numpy(), 1e-12))
    sizes = np.interp(excess, (0, max(float(excess.max()), 1e-9)), (_SMALLEST, _LARGEST))
    largest = [gene for gene, _ in Counter(genes).most_common(len(COLOURS))]
    colours = dict(zip(largest, COLOURS, strict=False))
    for gene in [*largest, "other V genes"]:
        rows = [k for k, own in enumerate(genes) if (own if own in colours else "other V genes") == gene]
        if rows:
            colour = colours.get(gene, OTHERS)
            axes.scatter(*places[rows].T, s=sizes[rows], color=colour, label=gene, zorder=2, linewidth=0)
    axes.legend(frameon=False, title="larger: more neighbours than expected", loc="upper left", bbox_to_anchor=(1, 1))


def edges_of(texts: list[str], clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of hits of a cluster that differ in one residue, int64 [edges, 2].

    texts     their amino acids, as long as each other in a cluster
    clusters  int64 [hits], ascending
    """
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for cluster in np.unique(clusters):
        rows = np.flatnonzero(clusters == cluster)
        letters = np.array([list(texts[row].encode()) for row in rows])
        exchanges = (letters[:, np.newaxis] != letters).sum(axis=2)
        pairs.append(rows[np.argwhere(np.triu(exchanges == 1))])
    return np.concatenate(pairs)


def layout(edges: NDArray[np.int64], clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where hits are drawn, float64 [hits, 2]: clusters beside each other in rows, each by its springs.

    Fruchterman and Reingold, Software: Practice and Experience 21, 1991, as networkx has it.
    """
    nx = require_networkx()
    graph = nx.Graph(edges.tolist())
    graph.add_nodes_from(range(len(clusters)))
    places = np.zeros((len(clusters), 2))
    groups = [np.flatnonzero(clusters == cluster) for cluster in np.unique(clusters)]
    radii = np.sqrt([len(rows) for rows in groups])
    width = 2.4 * np.sqrt((radii**2).sum())
    x = y = row_height = 0.0
    for rows, radius in zip(groups, radii, strict=True):
        if x and x + 2 * radius > width:
            x, y, row_height = 0.0, y - row_height, 0.0
        if len(rows) > 1:
            found = nx.spring_layout(graph.subgraph(rows.tolist()), seed=0)
            places[rows] = radius * 0.8 * np.array([found[row] for row in rows.tolist()])
        places[rows] += (x + radius, y - radius)
        x, row_height = x + 2 * radius, max(row_height, 2 * radius)
    return places
