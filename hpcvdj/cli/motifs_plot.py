"""`hpcvdj motifs plot`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcvdj.cli import common, motifs_options, options
from hpcvdj.errors import InputError
from hpcvdj.motifs.edges import EdgeFilter


def command(
    result: motifs_options.ResultFile,
    output: Annotated[
        Path, options.option("--output -o", "FIG", "Figure to write: .png or .svg.")
    ],
    kind: Annotated[
        Literal["heatmap", "degree", "scores"],
        typer.Option(
            "--kind",
            help="heatmap: scores of pairs; degree: distribution of the number of neighbours; scores: distribution of "
            "the scores.",
        ),
    ] = "heatmap",
    order: Annotated[
        Path | None,
        typer.Option(
            "--order", metavar="CLUSTERS.tsv", help="Order the heatmap by the clusters of `hpcvdj motifs cluster`.",
            show_default="by average linkage; many sequences with edges: by component",
        ),
    ] = None,
    min_score: motifs_options.MinScore = None,
    top: motifs_options.Top = None,
    strand: motifs_options.Strand = "both",
    overwrite: options.Overwrite = False,
) -> None:  # fmt: skip
    """Draw a result: scores as a heatmap, degrees or scores as a distribution. Needs matplotlib.

    A heatmap leaves sequences without edges out. For a result with all pairs, without --min-score and --top, it draws
    every pair, of a sample if there are more than 1,200 sequences. The degrees of such a result need --min-score or
    --top.

    Example: hpcvdj motifs plot genes.h5 --min-score 0.2 --order clusters.tsv -o genes.png
    """
    run = common.begin()
    if not run.is_root:
        return
    from hpcvdj.motifs.clusters import read_clusters
    from hpcvdj.motifs.plots import draw
    from hpcvdj.motifs.results import MotifResult

    if order is not None and kind != "heatmap":
        raise InputError(f"--order {order}: applies to --kind heatmap; leave it out")
    with MotifResult(result) as source:
        clusters = None if order is None else read_clusters(order, source.names)
        edge_filter = EdgeFilter(min_score, top)
        shown = draw(source, output, kind, edge_filter, strand=strand, clusters=clusters, overwrite=overwrite)
    common.say(f"shown      {shown}")
    common.say(f"written    {output}")
