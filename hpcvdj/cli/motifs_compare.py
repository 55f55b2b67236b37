"""`hpcvdj motifs compare`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common
from hpcvdj.cli.count import BackendName
from hpcvdj.cli.motifs_options import SequenceField, Strands
from hpcvdj.errors import InputError
from hpcvdj.runs.ranks import PATIENCE_SECONDS

if TYPE_CHECKING:
    from hpcvdj.motifs.run import MotifSummary

NAME = "compare"


class MotifMethod(StrEnum):
    """A way of comparing; all give the same counters."""

    auto = "auto"
    pigeonhole = "pigeonhole"
    index = "index"  # type: ignore[assignment]
    matrix = "matrix"
    bitslice = "bitslice"
    tables = "tables"


class ScoreName(StrEnum):
    """A kind of score."""

    weights = "weights"
    cosine = "cosine"
    background = "background"


def command(
    sequences: Annotated[
        Path,
        typer.Argument(
            help="FASTA file (plain or compressed), or AIRR table (TSV, .gz, Parquet) whose distinct junctions are "
            "compared.",
            metavar="SEQUENCES",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT.h5", show_default=False, help="Result file (HDF5) to write."),
    ],
    k: Annotated[int, typer.Option("-k", min=4, max=32, help="Bases of a k-mer.")] = 12,
    d: Annotated[int, typer.Option("-d", min=0, max=3, help="Largest Hamming distance between k-mers.")] = 2,
    strands: Annotated[
        Strands,
        typer.Option("--strands", help="Compare as given, or each also with the reverse complements of the others."),
    ] = Strands.one,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="Count a k-mer once, however often it occurs in a sequence.")
    ] = False,
    min_score: Annotated[
        float | None,
        typer.Option("--min-score", help="Keep edges of this score or more, not the counters of all pairs."),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Keep the so many best edges of each sequence.")
    ] = None,
    score: Annotated[
        ScoreName,
        typer.Option(
            "--score",
            help="weights: the sum of w_h D_h, D_h the pairs of k-mers at distance h; cosine: that over the "
            "geometric mean of the two sequences' scores with themselves, so that equal ones have 1; background: like "
            "cosine, of what is more than sequences of independent bases would share.",
        ),
    ] = ScoreName.weights,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="W0,W1…", help="Weights of the distances.", show_default="1/(C(k,h) 3^h)"),
    ] = None,
    method: Annotated[
        MotifMethod, typer.Option("--method", help="auto takes what it estimates to be fastest, and says why.")
    ] = MotifMethod.auto,
    blocks: Annotated[
        int, typer.Option("--blocks", min=0, help="pigeonhole: runs that a k-mer is cut into; 0: the best number.")
    ] = 0,
    backend: Annotated[
        BackendName, typer.Option("--backend", help="Where to compare: auto takes a GPU if there is one.")
    ] = BackendName.auto,
    sequence_field: SequenceField = "junction",
    memory: Annotated[
        float,
        typer.Option("--memory", min=0.0, help="Gigabytes for a rank's tables; 0: a quarter of the machine's."),
    ] = 0.0,
    strict_binding: common.StrictBinding = False,
    threads: common.Threads = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the tiles of an earlier run.")] = False,
    patience: Annotated[
        float, typer.Option("--patience", min=1.0, help="Seconds to wait for a rank that hangs before giving up.")
    ] = PATIENCE_SECONDS,
    overwrite: common.Overwrite = False,
) -> None:
    """Compare all sequences of a set with all others by their common k-mers within a Hamming distance.

    For each pair of sequences and each distance h up to d: how many pairs of their k-mers differ in exactly h bases.
    Windows with an ambiguous base are left out. OUT.h5 holds the counters of all pairs or, with --min-score or --top,
    the edges of the similarity graph. Under mpiexec or srun the ranks share the work; the result is the same for any
    number of ranks.

    SIGTERM, SIGINT or SIGUSR1 to any rank stops the run within seconds with exit code 75; the tiles that are done are
    then in OUT.h5.checkpoint, where --resume finds them, with any number of ranks and any method. So they are after a
    crash.

    Example: hpcvdj motifs compare inputs/mouse_trb/small.tsv -k 8 -d 1 -o motifs.h5
    """
    world = common.begin(threads)
    world.patience = patience
    from hpcvdj.motifs.config import MotifConfig
    from hpcvdj.motifs.edges import Selection
    from hpcvdj.motifs.run import compare_file
    from hpcvdj.runs.stopping import StopRequest

    config = MotifConfig(
        k=k,
        d=d,
        strands=2 if strands is Strands.both else 1,
        distinct=distinct,
        method=method.value,
        blocks=blocks,
        backend=backend.value,
        score=score.value,
        weights=_parse_weights(weights),
        selection=Selection(min_score, top) if min_score is not None or top is not None else None,
        memory=int(memory * 1e9),
        strict_binding=strict_binding,
    )
    with StopRequest() as request:
        summary = compare_file(
            sequences, output, config, world,
            sequence_field=sequence_field, overwrite=overwrite, resume=resume, request=request,
        )  # fmt: skip
    if world.is_root:
        report(summary, output)


def _parse_weights(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--weights {text!r}: give numbers such as 1,0.5,0.1") from None


def report(summary: MotifSummary, output: Path) -> None:
    """The summary for people, on stdout."""
    n = summary.sequences
    possible = n * (n - 1) // 2
    common.say(
        f"sequences  {n:,} of {summary.bases:,} bases; {summary.skipped:,} windows with an ambiguous base left out"
    )
    for strand, name in zip(summary.pairs, ("", ", opposite strands"), strict=False):
        for h, pairs in enumerate(strand):
            share = 100 * pairs / possible if possible else 0.0
            common.say(f"pairs      {pairs:,} ({share:.2f} %) share k-mers at distance {h}{name}")
    if summary.edges is not None:
        common.say(f"edges      {summary.edges:,}")
    setting = f", {summary.choice.blocks} blocks" if summary.choice.blocks else ""
    common.say(f"method     {summary.choice.method}{setting} on {summary.hardware}, {summary.ranks} rank(s)")
    common.say("time       " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in summary.seconds.items()))
    common.say(f"result     {output}")
