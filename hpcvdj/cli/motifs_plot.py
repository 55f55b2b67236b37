"""`hpcvdj motifs plot`."""

from pathlib import Path
from typing import Annotated, Literal

from hpcvdj.cli import common, options
from hpcvdj.errors import InputError, option
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.options import Option
from hpcvdj.runs.settings import Overwrite


def command(
    result: options.MotifResultFile,
    output: Annotated[Path, options.valued("--output -o", "FIG", "Figure to write: .png or .svg.")],
    edge_filter: EdgeFilter,
    kind: Annotated[
        Literal["network", "logos", "heatmap", "degree", "scores"] | None,
        Option("network: the graph, its largest clusters coloured; logos: of the largest clusters; heatmap: scores of "
               "pairs; degree: distribution of the number of neighbours; scores: distribution of the scores",
               unset="network for a result with edges, heatmap for one with all pairs"),
    ] = None,
    clusters: Annotated[
        Path | None,
        Option("clusters of hpcvdj motifs cluster: the colours of a network, what logos are of, the order of a heatmap",
               flags="--clusters --order", metavar="CLUSTERS.tsv",
               unset="those of hpcvdj motifs cluster; a heatmap by average linkage, or by component"),
    ] = None,
    letters: Annotated[
        Literal["amino-acids", "nucleotides"] | None,
        Option("letters of logos and consensus sequences", unset="amino-acids of junctions, else nucleotides"),
    ] = None,
    sequences: options.Moved = None,
    strand: options.Strand = "both",
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Draw a result: its clusters as a network, their sequences as logos, scores as a heatmap, degrees or scores as a
    distribution. Needs matplotlib; the network also networkx, logos also logomaker.

    A network leaves sequences without edges out, and of more than 1,500 sequences it draws the largest clusters. Up to
    30 of them have a colour and a label: size and consensus. A logo is of a cluster's sequences of the most frequent
    length. Both read the compared file again.

    A heatmap leaves sequences without edges out. For a result with all pairs, without --min-score and --top, it draws
    every pair, of a sample if there are more than 1,200 sequences. Other figures of such a result need --min-score or
    --top.

    Example: hpcvdj motifs plot genes.h5 --min-score 0.2 --clusters clusters.tsv -o genes.png
    """
    run = common.begin()
    if not run.is_root:
        return
    from hpcvdj.motifs.clusters import read_clusters
    from hpcvdj.motifs.plots import Wanted, draw, kind_of
    from hpcvdj.motifs.results import MotifResult
    from hpcvdj.motifs.sequences import read_again
    from hpcvdj.storage.plots import require_plottable

    require_plottable(output, overwrite=overwrite)
    with MotifResult(result) as source:
        settled = kind_of(source, kind)
        if clusters is not None and settled in ("degree", "scores"):
            raise InputError(
                f"{option('clusters', clusters)}: applies to {option('kind', 'heatmap')}, network and logos; leave it "
                "out"
            )
        wanted = Wanted(
            settled,
            edge_filter,
            strand,
            clusters=None if clusters is None else read_clusters(clusters, source.names),
            read=read_again(source.compared, source.names, sequences) if settled in ("network", "logos") else None,
            letters=letters,
        )
        shown = draw(source, output, wanted, overwrite=overwrite)
    common.say(f"shown      {shown}")
    common.say(f"written    {output}")
