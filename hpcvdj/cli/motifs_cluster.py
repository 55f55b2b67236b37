"""`hpcvdj motifs cluster`."""

import logging
from typing import Annotated

import typer

from hpcvdj.cli import common, motifs_options, options
from hpcvdj.motifs.clusters import Clustering, Method, Singletons, cluster, further_columns
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.storage.plots import require_networkx

log = logging.getLogger(__name__)

MOST_SHOWN = 10
"""Clusters whose sizes are printed."""


def command(
    result: motifs_options.ResultFile,
    output: options.OutputTable,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="louvain: clusters of high modularity; components: sequences that a path of edges connects; "
            "label-propagation: each sequence takes the cluster with the largest weight among its neighbours. All but "
            "components need networkx.",
        ),
    ] = "louvain",
    resolution: Annotated[
        float,
        typer.Option(
            "--resolution", metavar="R", help="For louvain: above 1 gives smaller clusters, below 1 larger ones."
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same clusters.")] = 1,
    min_score: motifs_options.MinScore = None,
    top: motifs_options.Top = None,
    strand: motifs_options.Strand = "both",
    min_size: Annotated[
        int,
        typer.Option("--min-size", min=1, metavar="N", help="Put clusters of fewer than N sequences into cluster 0."),
    ] = 1,
    singletons: Annotated[
        Singletons,
        typer.Option(
            "--singletons",
            help="Sequences without edges: none puts them in cluster 0, own gives each its own cluster.",
        ),
    ] = "none",
    sequences: motifs_options.Moved = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Cluster the similarity graph.

    Writes a row for each sequence: name, cluster (1 is the largest; 0: in none), size of the cluster, degree
    (neighbours) and weighted degree (sum of its edges' scores). The weight of an edge is its score; for a pair with an
    edge on both strands, the larger score. Edges without a positive score are left out.

    If several tables were compared, also `tables`: those that have the junction. For junctions of a table, also
    v_call, j_call, the junction, and the consensus of its cluster: of the junctions of
    the most frequent length, the base that more than half of them have, else N.

    Example: hpcvdj motifs cluster genes.h5 --min-score 0.2 -o clusters.tsv
    """
    run = common.begin()
    if not run.is_root:
        return
    from hpcvdj.motifs.graph import score_matrix, selected_edges, strands_of
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.motifs.sequences import read_again
    from hpcvdj.repertoires.tables import table_suffix
    from hpcvdj.storage.files import require_writable

    table_suffix(output)
    require_writable(output, overwrite=overwrite)
    if method != "components":
        require_networkx()
    with MotifResult(result) as source:
        edges = selected_edges(source, EdgeFilter(min_score, top), strands_of(source, strand))
        matrix = score_matrix(edges, len(source))
        names, tables = source.names, source.tables
        read = read_again(source.compared, names, sequences)
    clustering = cluster(matrix, method, resolution=resolution, seed=seed, min_size=min_size, singletons=singletons)
    clustering.write(names, output, further=further_columns(clustering, tables, read), overwrite=overwrite)
    _report(clustering)
    common.say(f"written    {output}")


def _report(clustering: Clustering) -> None:
    sizes = clustering.sizes
    edges = int(clustering.degree.sum(dtype="int64")) // 2
    dropped = f", {clustering.left_out:,} without a positive score left out" if clustering.left_out else ""
    common.say(f"graph      {len(clustering.cluster):,} sequences, {edges:,} edges{dropped}")
    isolated, none = int((clustering.degree == 0).sum()), int((clustering.cluster == 0).sum())
    common.say(f"clusters   {len(sizes):,}, {none:,} sequences in none; {isolated:,} have no edge")
    if len(sizes):
        more = f", ... {sizes[-1]:,}" if len(sizes) > MOST_SHOWN else ""
        common.say(f"sizes      {', '.join(f'{size:,}' for size in sizes[:MOST_SHOWN])}{more}")
    if edges:
        common.say(f"modularity {clustering.modularity:.4f}")
