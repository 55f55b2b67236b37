"""`hpcvdj motifs compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.cli import common, options
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.settings import MotifConfig
from hpcvdj.runs.settings import Launch, Overwrite, Resume

if TYPE_CHECKING:
    from hpcvdj.motifs.comparison import MotifSummary
    from hpcvdj.motifs.sequences import Input


def command(
    sequences: options.Sequences,
    output: Annotated[Path, options.output("OUT.h5", "Result file (HDF5) to write.")],
    config: MotifConfig,
    edge_filter: EdgeFilter,
    launch: Launch,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Compare all sequences of a set with all others by their common k-mers within a Hamming distance.

    For each pair of sequences and each distance h up to d, counts the pairs of k-mers that differ in exactly h bases.
    k-mers with an ambiguous base do not count. OUT.h5 has the counters of all pairs or, with --min-score or --top,
    the edges of the similarity graph. Under mpiexec or srun the ranks share the work; the result is the same for any
    number of ranks.

    SIGTERM, SIGINT or SIGUSR1 to any rank stops the run within seconds with exit code 75; the finished tiles are then
    in OUT.h5.checkpoint, and --resume continues with them, on any number of ranks and with any method. After a crash,
    --resume continues with the tiles finished before it.

    Example: hpcvdj motifs compare inputs/mouse_trb/small.tsv -k 8 -d 1 -o motifs.h5
    """
    run = common.begin(launch)
    from hpcvdj.motifs.comparison import compare_sequences
    from hpcvdj.motifs.sequences import inputs_of

    config = config.keeping(edge_filter)
    with run.request:
        target = run.to(output, resume=resume, overwrite=overwrite)
        summary = compare_sequences(run.from_root(lambda: inputs_of(sequences)), config, target)
    if run.is_root:
        _report(summary, output)


def _rows_of(source: "Input", rows: str) -> str:
    """Return how many rows a table has, and which rows are left out."""
    left_out = f"{source.not_productive:,} not productive by the column {source.told_by} left out"
    if not source.told_by:
        left_out = "all used" if rows == "all" else "all used, as no column says which are productive"
    return f"{source.rows:,} rows, {left_out}" + (f", {source.without:,} without a sequence" if source.without else "")


def _report(summary: "MotifSummary", output: Path) -> None:
    for source in summary.inputs:
        count = _rows_of(source, summary.rows) if source.is_table else f"{source.rows:,} sequences"
        common.say(f"read       {source}: {count}")
    n = summary.sequences
    possible = n * (n - 1) // 2
    common.say(
        f"sequences  {n:,} of {summary.bases:,} bases; {summary.skipped:,} windows with an ambiguous base skipped"
    )
    for pairs_of_strand, strand in zip(summary.pairs, ("", ", opposite strands"), strict=False):
        for h, pairs in enumerate(pairs_of_strand):
            share = 100 * pairs / possible if possible else 0.0
            common.say(f"pairs      {pairs:,} ({share:.2f} %) share k-mers at distance {h}{strand}")
    if summary.edges is not None:
        common.say(f"edges      {summary.edges:,}")
    common.say(f"score      {summary.score}")
    common.say(f"method     {summary.method} on {summary.hardware}, {summary.ranks} rank(s)")
    common.say("time       " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in summary.seconds.items()))
    common.say(f"result     {output}")
