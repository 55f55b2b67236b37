"""`hpcvdj count`."""

from __future__ import annotations

import logging
import time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcvdj.cli import common
from hpcvdj.errors import CompleteError, InputError
from hpcvdj.runs.partition import THREADS_PER_BLOCK
from hpcvdj.runs.ranks import PATIENCE_SECONDS, say_if_serial

if TYPE_CHECKING:
    from hpcvdj.counting.whole import Summary

log = logging.getLogger(__name__)

NAME = "count"


class MethodName(StrEnum):
    """A way of counting; all give the same counters."""

    direct = "direct"
    bitwise = "bitwise"
    baseline = "baseline"


class BackendName(StrEnum):
    """Where to count."""

    auto = "auto"
    cuda = "cuda"
    cpu = "cpu"


def command(
    junctions: Annotated[
        list[Path],
        typer.Argument(
            help="AIRR rearrangement tables: TSV (plain or .gz) or Parquet with sequence_id, v_call, j_call, junction; "
            "or a folder, of which all *.tsv, *.tsv.gz and *.parquet are taken.",
            metavar="JUNCTIONS...",
            show_default=False,
        ),
    ],
    germline: common.GermlineFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.h5",
            show_default=False,
            help="Result file (HDF5) to write; for several tables the folder of their results, or with --together "
            "one file.",
        ),
    ],
    together: Annotated[
        bool,
        typer.Option("--together", help="Count all tables into one result, in which each row keeps its repertoire_id."),
    ] = False,
    max_n: Annotated[
        str,
        typer.Option(
            "--max-n", metavar="N|all", help="Largest number of n-nucleotides; all: up to the sequence's length."
        ),
    ] = "10",
    method: Annotated[
        MethodName,
        typer.Option(
            "--method",
            help="direct is what you want; bitwise and baseline enumerate 4^n strings as the paper does, to check it.",
        ),
    ] = MethodName.direct,
    backend: Annotated[
        BackendName, typer.Option("--backend", help="Where to count: auto takes a GPU if there is one.")
    ] = BackendName.auto,
    d_forms: common.DFormsOption = common.DForms.paper,
    d_alleles: common.DAllelesOption = common.DAlleles.first,
    max_p: common.MaxP = common.MAX_P_DEFAULT,
    sequence_field: common.FieldOption = common.SequenceField.junction,
    ambiguous_calls: common.AmbiguousOption = common.Policy.exclude,
    unlisted_alleles: common.UnlistedOption = common.Policy.exclude,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on the first row that cannot be counted.")] = False,
    threads_per_block: Annotated[
        int,
        typer.Option(
            "--threads-per-block",
            min=1,
            max=1024,
            help="Tasks in a block; ranks share work in whole blocks (the paper's equation 2). Tunes bitwise and "
            "baseline on a GPU, seldom direct; never changes a counter.",
        ),
    ] = THREADS_PER_BLOCK,
    strict_binding: common.StrictBinding = False,
    threads: common.Threads = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint of OUT.h5, if it has one."),
    ] = False,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            "--batch-rows",
            min=0,
            show_default="all rows at once; 4,194,304 if a Parquet file or tables --together have over 16,777,216",
            help="Count slices of so many rows, each read, counted and written by one rank, into OUT.h5.parts, for "
            "what memory does not hold; 0: all rows at once, however many. For direct.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", min=0.0, help="Seconds after which what is counted is saved.")
    ] = 20.0,
    patience: Annotated[
        float, typer.Option("--patience", min=1.0, help="Seconds to wait for a rank that hangs before giving up.")
    ] = PATIENCE_SECONDS,
    overwrite: common.Overwrite = False,
) -> None:
    """Count the recombination pathways of every junction of a repertoire.

    Every row of JUNCTIONS is counted, or listed in the result with the reason why it cannot be. Under mpiexec or
    srun the ranks share the work; the counters are the same for any number of ranks.

    SIGTERM, SIGINT or SIGUSR1 to any rank stops the run within seconds with exit code 75; what it has counted is then
    in OUT.h5.checkpoint, where --resume finds it. So it is, up to the last save, after a crash.

    Several tables, or a folder of them, are counted one after another into the folder that -o names; one that cannot
    be read does not keep the others from being counted.

    With --together they are counted into one result. A row's repertoire is what the column repertoire_id of its table
    says, else the table's name; a sequence_id need be unique within its repertoire only. All tables are read through
    first: if one cannot be, nothing is counted. bitwise and baseline then enumerate once for all tables.

    Example: hpcvdj count inputs/mouse_trb/small.tsv -g inputs/germline/mouse_trb_paper.tsv -o out.h5
    """
    world = common.begin(threads)
    say_if_serial(world)
    world.patience = patience
    from hpcvdj.counting.batched import count_in_slices, slice_rows
    from hpcvdj.counting.config import Config, Inputs
    from hpcvdj.counting.doubt import doubt
    from hpcvdj.counting.together import inputs_together
    from hpcvdj.counting.whole import count_file
    from hpcvdj.runs.stopping import StopRequest
    from hpcvdj.runs.ranks import root_does
    from hpcvdj.repertoires.junctions import CallPolicy
    from hpcvdj.storage import require_writable

    def prepare() -> tuple[Any, Any]:
        limit: Any = common.parse_max_n(max_n)
        return common.load_germline(germline, max_p, d_alleles), limit

    table, limit = world.broadcast(root_does(world, prepare))
    config = Config(limit, method.value, backend.value, d_forms.value, threads_per_block, strict_binding)
    calls = CallPolicy(ambiguous_calls.value, unlisted_alleles.value)
    reading: dict[str, Any] = {"sequence_field": sequence_field.value, "calls": calls, "strict": strict}
    refused, surveyed = [], 0.0
    with StopRequest() as request:
        if together:
            root_does(world, lambda: require_writable(output, overwrite=overwrite or resume))
            before = time.perf_counter()
            runs = [(inputs_together(junctions, world, **reading), output)]
            surveyed = time.perf_counter() - before
        else:
            pairs = world.broadcast(root_does(world, lambda: _plan(junctions, output)))
            runs = [(Inputs(path, **reading), target) for path, target in pairs]
        for inputs, target in runs:
            try:
                rows = world.broadcast(root_does(world, partial(slice_rows, inputs, method.value, batch_rows)))
                if rows:
                    summary = count_in_slices(
                        inputs, table, target, config, world, rows,
                        overwrite=overwrite, resume=resume, request=request,
                    )  # fmt: skip
                else:
                    summary = count_file(
                        inputs, table, target, config, world,
                        overwrite=overwrite, resume=resume, checkpoint_every=checkpoint_every, request=request,
                    )  # fmt: skip
            except (InputError, CompleteError) as error:
                if len(runs) == 1 or not error.on_every_rank:
                    raise
                if isinstance(error, InputError):
                    refused.append(inputs.junctions.name)
                if world.is_root:
                    common.complain(error)
                continue
            if world.is_root:
                for stage in ("read", "total"):
                    summary.seconds[stage] += surveyed
                report(summary, target)
                if not summary.counted:
                    log.warning("%s: no row could be counted; the reasons are above", inputs.junctions)
                said = doubt(
                    summary.excluded, summary.rows_read, summary.counted, summary.with_pathway, summary.max_n, table
                )
                if said:
                    log.warning("%s: %s", inputs.junctions, said)
    if refused:
        failure = InputError(f"{len(refused)} of {len(runs)} repertoires were not counted: {', '.join(refused)}")
        failure.on_every_rank = True
        raise failure


def _plan(junctions: list[Path], output: Path) -> list[tuple[Path, Path]]:
    """What is to be counted where; makes the folder of several results."""
    from hpcvdj.repertoires.many import plan

    pairs = plan(junctions, output)
    if len(junctions) > 1 or junctions[0].is_dir():
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{output}: cannot be made ({error.strerror}); write elsewhere") from None
    return pairs


def report(summary: Summary, output: Path) -> None:
    """The summary for people, on stdout."""
    excluded = summary.rows_read - summary.counted
    total = sum(summary.pathways)
    seconds = summary.seconds
    rate = summary.counted / seconds["kernel"] if seconds["kernel"] else 0.0
    if summary.tables:
        common.say(f"tables     {summary.tables:,}, of {summary.repertoires:,} repertoire(s)")
    common.say(f"rows       {summary.rows_read:,} read = {summary.counted:,} counted + {excluded:,} excluded")
    common.say(f"V-J pairs  {summary.pairs:,}")
    common.say(f"pathways   {total:,} in all, n-lengths 0-{summary.max_n}")
    if summary.counted:
        share = 100 * summary.with_pathway / summary.counted
        common.say(f"reached    {summary.with_pathway:,} junctions ({share:.2f} %) have at least one pathway")
    common.say(f"method     {summary.method} on {summary.hardware}, {summary.ranks} rank(s)")
    stages = ", ".join(
        f"{name} {seconds[name]:.2f} s" for name in ("read", "prepare", "kernel", "reduce", "save", "write", "total")
    )
    common.say(f"time       {stages} ({rate:,.0f} junctions/s in the kernel)")
    common.say(f"result     {output}")
