"""`hpcvdj motifs compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from hpcvdj.cli import common, motifs_options, options
from hpcvdj.cli.helping import MORE
from hpcvdj.errors import InputError, choices
from hpcvdj.kernels.kmers.methods import AUTO, KmerMethod
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.scores import Score

if TYPE_CHECKING:
    from hpcvdj.motifs.comparison import MotifSummary
    from hpcvdj.motifs.sequences import Input

    MethodName: TypeAlias = str
    ScoreName: TypeAlias = str
else:
    MethodName = Literal[(AUTO, *choices(KmerMethod))]
    ScoreName = Literal[tuple(choices(Score))]


def command(
    sequences: motifs_options.Sequences,
    output: Annotated[
        Path,
        options.option("--output -o", "OUT.h5", "Result file (HDF5) to write."),
    ],
    k: motifs_options.K = 12,
    d: motifs_options.D = 2,
    strands: motifs_options.Strands = "one",
    distinct: Annotated[
        bool, typer.Option(
            "--distinct", help="Count a k-mer once, however often it occurs in a sequence.",
            rich_help_panel=MORE,
        )
    ] = False,
    min_score: motifs_options.MinScore = None,
    top: motifs_options.Top = None,
    score: Annotated[
        ScoreName | None,
        typer.Option(
            "--score", help=f"How to score pairs. {options.listed(Score)}.",
            show_default="cosine for tables, weights for FASTA",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="W0,W1…", help="Weights of the distances.", show_default="1/(C(k,h) 3^h)",
            rich_help_panel=MORE,
        ),
    ] = None,
    method: Annotated[
        MethodName,
        typer.Option(
            "--method", help=f"How to compare. {options.listed(KmerMethod)}; auto: the fastest that was measured "
            "for this k, d and backend.", rich_help_panel=MORE),
    ] = AUTO,
    blocks: Annotated[
        int, typer.Option(
            "--blocks", min=0, help="Blocks that pigeonhole cuts a k-mer into; 0 chooses the number.",
            rich_help_panel=MORE,
        )
    ] = 0,
    backend: options.BackendOption = "auto",
    sequence_field: motifs_options.SequenceField = "junction",
    rows: motifs_options.RowsOption = "productive",
    memory: Annotated[
        float,
        typer.Option("--memory", min=0.0, help="Gigabytes of memory for the tables of a rank; 0: a quarter of the "
        "host's memory, divided among the ranks, or half of the GPU's free memory.", rich_help_panel=MORE),
    ] = 0.0,
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
    resume: options.Resume = False,
    patience: options.Patience = options.DEFAULT_PATIENCE,
    overwrite: options.Overwrite = False,
) -> None:  # fmt: skip
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
    run = common.begin(threads, patience)
    from hpcvdj.motifs.comparison import MotifConfig, compare_sequences
    from hpcvdj.motifs.sequences import inputs_of

    config = run.from_root(
        lambda: MotifConfig(
            k=k,
            d=d,
            strands=2 if strands == "both" else 1,
            distinct=distinct,
            method=method,
            blocks=blocks,
            backend=backend,
            score=score,
            weights=_parse_weights(weights),
            edges=None if min_score is None and top is None else EdgeFilter(min_score, top),
            memory=int(memory * 1e9),
            sequence_field=sequence_field,
            rows=rows,
            strict_binding=strict_binding,
        )
    )
    with run.request:
        target = run.to(output, resume=resume, overwrite=overwrite)
        summary = compare_sequences(run.from_root(lambda: inputs_of(sequences)), config, target)
    if run.is_root:
        _report(summary, output)


def _parse_weights(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--weights {text!r}: give numbers such as 1,0.5,0.1") from None


def _rows_of(own: "Input", rows: str) -> str:
    """How many rows a table has, and which of them are left out."""
    left_out = f"{own.not_productive:,} not productive by the column {own.told_by} left out"
    if not own.told_by:
        left_out = "all used" if rows == "all" else "all used, as no column says which are productive"
    return f"{own.rows:,} rows, {left_out}" + (f", {own.without:,} without a sequence" if own.without else "")


def _report(summary: "MotifSummary", output: Path) -> None:
    for own in summary.inputs:
        common.say(f"read       {own}: " + (_rows_of(own, summary.rows) if own.is_table else f"{own.rows:,} sequences"))
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
