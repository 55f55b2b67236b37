"""`hpcvdj motifs cluster`."""

import logging

from hpcvdj.cli import common, options
from hpcvdj.motifs.clusters import Clustering, cluster, further_columns
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.settings import ClusterSettings
from hpcvdj.runs.settings import Overwrite
from hpcvdj.storage.plots import require_networkx

log = logging.getLogger(__name__)

MOST_SHOWN = 10
"""The most clusters whose sizes are printed."""


def command(
    result: options.MotifResultFile,
    output: options.OutputTable,
    settings: ClusterSettings,
    edge_filter: EdgeFilter,
    strand: options.Strand = "both",
    sequences: options.Moved = None,
    overwrite: Overwrite = False,
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
    if not common.begin().is_root:
        return
    from hpcvdj.motifs.graph import score_matrix, selected_edges, strands_of
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.motifs.sequences import read_again
    from hpcvdj.repertoires.writers import require_writable_table, write_table

    require_writable_table(output, overwrite=overwrite)
    if settings.algorithm != "components":
        require_networkx()
    with MotifResult(result) as source:
        edges = selected_edges(source, edge_filter, strands_of(source, strand))
        matrix = score_matrix(edges, len(source))
        names, tables = source.names, source.tables
        read = read_again(source.compared, names, sequences)
    clustering = cluster(matrix, settings)
    table = clustering.to_table(names, further_columns(clustering, tables, read))
    write_table(output, table.to_batches(), overwrite=overwrite)
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
