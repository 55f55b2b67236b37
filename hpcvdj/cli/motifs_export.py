"""`hpcvdj motifs export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common, motifs_options

NAME = "export"


def command(
    result: motifs_options.ResultFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT",
            help="File to write: a table (.tsv, .tsv.gz, .parquet), a graph (.graphml), which needs networkx, or the "
            "matrix of scores (.npz), for scipy.sparse.load_npz.",
            show_default=False,
        ),
    ],
    min_score: motifs_options.MinScore = None,
    top: motifs_options.Top = None,
    strand: motifs_options.StrandOption = motifs_options.Strand.both,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Add r0 ... rd: what the thesis's meta-tables count, near matches counted again."),
    ] = False,
    overwrite: common.Overwrite = False,
) -> None:  # fmt: skip
    """Write the edges of the similarity graph for other programs.

    A table has the columns name_1, name_2, strand (+ or -), d0 ... dd (pairs of k-mers at each Hamming distance) and
    score. A result that holds all pairs needs --min-score or --top, which are also taken of one that holds edges.

    Example: hpcvdj motifs export genes.h5 --min-score 0.2 -o genes.graphml
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.motifs.export import export
    from hpcvdj.motifs.results import MotifResult

    chosen = motifs_options.selection(min_score, top)
    with MotifResult(result) as source:
        edges = export(source, output, chosen, strand=strand.value, raw=raw, overwrite=overwrite)
        common.say(f"sequences  {len(source):,}")
    common.say(f"edges      {edges:,}")
    common.say(f"written    {output}")
