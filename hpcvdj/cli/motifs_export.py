"""`hpcvdj motifs export`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.cli import common, options
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.options import Option
from hpcvdj.runs.settings import Overwrite


def command(
    result: options.MotifResultFile,
    output: Annotated[
        Path,
        options.output(
            "OUT",
            "File to write: a table (.tsv, .tsv.gz, .parquet), a graph (.graphml), which needs networkx, or the matrix "
            "of scores (.npz), for scipy.sparse.load_npz.",
        ),
    ],
    edge_filter: EdgeFilter,
    strand: options.Strand = "both",
    raw: Annotated[
        bool,
        Option("add columns r0 ... rd: the counters of the thesis's meta-tables, where a match counts several times"),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the edges of the similarity graph for other programs.

    A table has the columns name_1, name_2, strand (+ or -), d0 ... dd (pairs of k-mers at each Hamming distance) and
    score. A result with all pairs needs --min-score or --top; they also apply to a result with edges.

    Example: hpcvdj motifs export genes.h5 --min-score 0.2 -o genes.graphml
    """
    if not common.begin().is_root:
        return
    from hpcvdj.motifs.export import export
    from hpcvdj.motifs.results import MotifResult

    with MotifResult(result) as source:
        edges = export(source, output, edge_filter, strand=strand, raw=raw, overwrite=overwrite)
        common.say(f"sequences  {len(source):,}")
    common.say(f"edges      {edges:,}")
    common.say(f"written    {output}")
