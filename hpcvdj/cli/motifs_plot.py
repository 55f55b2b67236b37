"""`hpcvdj motifs plot`."""

from pathlib import Path
from typing import Annotated, Literal

from hpcvdj.cli import common, options
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.options import Option
from hpcvdj.runs.settings import Overwrite


def command(
    result: options.MotifResultFile,
    output: Annotated[Path, options.output("FIG", "Figure to write: .png or .svg.")],
    edge_filter: EdgeFilter,
    kind: Annotated[
        Literal["network", "logos"],
        Option("network: the graph, its largest clusters coloured; logos: of the largest clusters"),
    ] = "network",
    clusters: Annotated[
        Path | None,
        Option("clusters of hpcvdj motifs cluster: the colours of a network, what logos are of",
               metavar="CLUSTERS.tsv", unset="those of hpcvdj motifs cluster"),
    ] = None,
    letters: Annotated[
        Literal["amino-acids", "nucleotides"] | None,
        Option("letters of logos and consensus sequences", unset="amino-acids of junctions, else nucleotides"),
    ] = None,
    sequences: options.Moved = None,
    strand: options.Strand = "both",
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Draw the similarity graph: its clusters as a network, or their sequences as logos. Needs matplotlib; the network
    also networkx, logos also logomaker.

    A network leaves sequences without edges out, and of more than 1,500 sequences it draws the largest clusters. Up to
    30 of them have a colour and a label: size and consensus. A logo is of a cluster's sequences of the most frequent
    length. Both read the compared file again. A result with all pairs needs --min-score or --top.

    Example: hpcvdj motifs plot genes.h5 --min-score 0.2 --clusters clusters.tsv -o genes.png
    """
    if not common.begin().is_root:
        return
    from hpcvdj.motifs.clusters import read_clusters
    from hpcvdj.motifs.plots import Drawing, draw
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.motifs.sequences import read_again
    from hpcvdj.storage.plots import require_plottable

    require_plottable(output, overwrite=overwrite)
    with MotifResult(result) as source:
        assigned = None if clusters is None else read_clusters(clusters, source.names)
        read = read_again(source.compared, source.names, sequences)
        drawing = Drawing(kind, edge_filter, strand, assigned, read, letters)
        shown = draw(source, output, drawing, overwrite=overwrite)
    common.say(f"shown      {shown}")
    common.say(f"written    {output}")
