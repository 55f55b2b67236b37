"""`hpcvdj motifs cluster`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common, motifs_options

if TYPE_CHECKING:
    from hpcvdj.motifs.clusters import Clustering

NAME = "cluster"

MOST_SHOWN = 10
"""Clusters whose sizes are printed."""


class Method(StrEnum):
    """How to cluster."""

    louvain = "louvain"
    components = "components"
    label_propagation = "label-propagation"


class Singletons(StrEnum):
    """What becomes of a sequence without an edge."""

    none = "none"
    own = "own"


def command(
    result: motifs_options.ResultFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Table to write: .tsv, .tsv.gz or .parquet.", show_default=False
        ),
    ],
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="louvain: high modularity; components: what paths of edges join; label-propagation: what most of "
            "one's neighbours are. All but components need networkx.",
        ),
    ] = Method.louvain,
    resolution: Annotated[
        float, typer.Option("--resolution", metavar="R", help="Of louvain: above 1, smaller clusters; below, larger.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same clusters.")] = 1,
    min_score: motifs_options.MinScore = None,
    top: motifs_options.Top = None,
    strand: motifs_options.StrandOption = motifs_options.Strand.both,
    min_size: Annotated[
        int, typer.Option("--min-size", min=1, metavar="N", help="Dissolve smaller clusters: their cluster is 0.")
    ] = 1,
    singletons: Annotated[
        Singletons,
        typer.Option("--singletons", help="Sequences without an edge: none: their cluster is 0; own: one for each."),
    ] = Singletons.none,
    overwrite: common.Overwrite = False,
) -> None:
    """Cluster the similarity graph.

    Writes a row for each sequence: name, cluster (1 is the largest; 0: in none), size of the cluster, degree
    (neighbours) and weighted degree (sum of its edges' scores). An edge weighs its score; of a pair with an edge on
    both strands, the larger; edges without a positive score are left out.

    Example: hpcvdj motifs cluster genes.h5 --min-score 0.2 -o clusters.tsv
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.motifs.clusters import cluster
    from hpcvdj.motifs.graph import networkx, score_matrix, selected_edges, strands_of
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.repertoires.tables import table_suffix
    from hpcvdj.storage import require_writable

    table_suffix(output)
    require_writable(output, overwrite=overwrite)
    if method is not Method.components:
        networkx()  # Without it, say so before the work.
    with MotifResult(result) as source:
        chosen = motifs_options.selection(min_score, top)
        matrix = score_matrix(selected_edges(source, chosen, strands_of(source, strand.value)), len(source))
        names = source.names
    found = cluster(
        matrix, method.value, resolution=resolution, seed=seed, min_size=min_size, singletons=singletons.value
    )  # fmt: skip
    found.write(names, output, overwrite=overwrite)
    _report(found)
    common.say(f"written    {output}")


def _report(found: Clustering) -> None:
    sizes = found.sizes
    edges = int(found.degree.sum(dtype="int64")) // 2
    dropped = f", {found.left_out:,} without a positive score left out" if found.left_out else ""
    common.say(f"graph      {len(found.cluster):,} sequences, {edges:,} edges{dropped}")
    isolated, none = int((found.degree == 0).sum()), int((found.cluster == 0).sum())
    common.say(f"clusters   {len(sizes):,}, {none:,} sequences in none; {isolated:,} have no edge")
    if len(sizes):
        more = f", ... {sizes[-1]:,}" if len(sizes) > MOST_SHOWN else ""
        common.say(f"sizes      {', '.join(f'{size:,}' for size in sizes[:MOST_SHOWN])}{more}")
    if edges:
        common.say(f"modularity {found.modularity:.4f}")
