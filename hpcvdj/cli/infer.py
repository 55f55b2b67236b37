"""`hpcvdj infer`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.helping import MORE
from hpcvdj.errors import InputError
from hpcvdj.runs.ranks import log_if_serial

if TYPE_CHECKING:
    from hpcvdj.inference.tables import Inferred


def command(
    junctions: options.Tables,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the model to write.", show_default=False)
    ],
    table_format: options.TableFormat = None,
    columns: options.Columns = None,
    model: options.OptionalModel = None,
    germline: options.OptionalGermline = None,
    rows: Annotated[
        Literal["out-of-frame", "nonproductive", "all"],
        typer.Option("--rows", help="Rows to infer from. nonproductive: out of frame, or in frame and not productive."),
    ] = "out-of-frame",
    genes: Annotated[
        Literal["call", "any"],
        typer.Option("--genes", help="V and J are those that a row's calls name (one or several), or are not known."),
    ] = "call",
    duplicates: Annotated[
        bool,
        typer.Option(
            "--duplicates",
            help="Count equal rows (V, J, junction, repertoire) each; by default once.",
            rich_help_panel=MORE,
        ),
    ] = False,
    likely_errors: Annotated[
        bool,
        typer.Option(
            "--likely-errors",
            help="Keep rows that are likely sequencing errors: one base inserted into or deleted from a row in frame "
            "with the same V and J and more reads (duplicate_count), or one base exchanged in any row with 20 times as "
            "many, two in one with 400 times, or three in one with 8,000 times.",
            rich_help_panel=MORE,
        ),
    ] = False,
    start: Annotated[
        Literal["model", "uniform", "mixed"] | None,
        typer.Option(
            "--start",
            help="Where to start: at the model, where everything is equally likely, or at 95 % of the one and 5 % of "
            "the other.",
            show_default="mixed with -m, uniform with -g",
            rich_help_panel=MORE,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="PARAMETER",
            help="Infer only this parameter; may be repeated: {parameters}.",
            rich_help_panel=MORE,
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix",
            metavar="PARAMETER",
            help="Leave this parameter as it is at the start; may be repeated.",
            rich_help_panel=MORE,
        ),
    ] = None,
    prior: Annotated[
        float,
        typer.Option(
            "--prior",
            min=0.0,
            help="Rows to count in addition for each functional V and J allele.",
            rich_help_panel=MORE,
        ),
    ] = 0.0,
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, help="Iterations at most.", rich_help_panel=MORE)
    ] = 60,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", min=0.0, help="Stop when an iteration gains fewer nats per row.", rich_help_panel=MORE
        ),
    ] = 1e-5,
    hold_out: Annotated[
        float,
        typer.Option(
            "--hold-out",
            metavar="SHARE",
            help="Share of the rows to set aside; the result is the model that makes them most likely. 0: none.",
            rich_help_panel=MORE,
        ),
    ] = 0.1,
    bootstrap: Annotated[
        int,
        typer.Option(
            "--bootstrap",
            min=0,
            metavar="N",
            help="Standard errors, from N draws of the rows; each is searched anew from the result.",
            rich_help_panel=MORE,
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=(1 << 63) - 1, help="Seed of what is drawn: rows held out, bootstrap.")
    ] = 0,
    errors: Annotated[
        bool,
        typer.Option(
            "--errors",
            help="Infer the rate of sequencing errors as well: the probability that a base of V, D or J is misread. On "
            "CPU cores only, and many times slower.",
            rich_help_panel=MORE,
        ),
    ] = False,
    backend: options.BackendOption = "auto",
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
    resume: options.Resume = False,
    patience: options.Patience = options.DEFAULT_PATIENCE,
    overwrite: options.Overwrite = False,
) -> None:
    """Infer a recombination model from junctions: gene usage, deletions and insertions of a cohort or a species.

    Takes the nucleotide junctions of rearrangements that selection has not seen: by default those out of frame, each
    once per repertoire. Each table is a repertoire unless it has a column repertoire_id.

    Starts from a model (-m), or from a germline table alone (-g), for a locus that has no model yet. Alleles that are
    not functional take part. Writes a folder in IGoR's format, which hpcvdj pgen -m, OLGA, IGoR and others read, with
    inference.json (where it comes from), iterations.tsv (each iteration's log-likelihood), standard_errors.tsv (with
    --bootstrap) and, if there are such rows, unexplained.tsv (rows that the model cannot make).

    If fewer than a quarter of the rows are possible at the start, it is of another species or locus: that is an error.

    With fewer than 3,000 rows, only gene usage is inferred unless --only names other parameters.

    The model is the same for any number of ranks and threads. Every iteration is saved: --resume continues a run that
    was stopped.

    Example: hpcvdj infer cohort/ -m human_trb -o my_model
    """
    run = common.begin(threads, patience)
    log_if_serial(run.world)
    from hpcvdj.inference.infer import Plan
    from hpcvdj.inference.rows import RowChoice
    from hpcvdj.inference.tables import infer_tables, reading_for
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.recombination.igor import load_model
    from hpcvdj.repertoires.inputs import tables_of

    plan = run.from_root(
        lambda: Plan(
            RowChoice(rows, duplicates, likely_errors), genes, start, tuple(only or ()), tuple(fix or ()), prior,
            iterations, tolerance, hold_out, bootstrap, seed, errors,
        )
    )  # fmt: skip

    def loaded() -> Any:
        if (model is None) == (germline is None):
            raise InputError("give a model to start from (-m) or a germline table (-g), one of the two")
        return (
            load_model(model, pseudogenes=True) if model is not None else read_germline(germline or [], d_alleles="all")
        )

    with run.request:
        reference = run.from_root(loaded)
        opening = run.from_root(lambda: options.opening(table_format, columns))
        inputs = run.from_root(lambda: tables_of(junctions, replace(reading_for(plan), opening=opening)))
        target = run.to(output, resume=resume, overwrite=overwrite)
        found = infer_tables(inputs, reference, plan, target, backend, strict_binding=strict_binding)
    if found is not None:
        _report(found, output)


def _report(found: "Inferred", output: Path) -> None:
    fit, left_out = found.fit, [f"{number:,} {reason}" for reason, number in found.left_out.items() if number]
    common.say(
        f"rows       {found.rows_read:,} read, {found.excluded:,} excluded" + "".join(f", {own}" for own in left_out)
    )
    common.say(f"inferred   from {fit.counted[0]:,} rows, {fit.counted[1]:,} held out")
    best, first = fit.best, fit.trace[0]
    gain = best.log_likelihood - first.log_likelihood
    held = f"; held out {best.held_out:.5f} ({best.held_out - first.held_out:+.5f})" if fit.counted[1] else ""
    common.say(f"likelihood {best.log_likelihood:.5f} nats per row ({gain:+.5f} from the start){held}")
    common.say(f"iteration  {best.iteration} of {len(fit.trace)}")
    if first.error_rate:
        common.say(f"error rate {fit.model.error_rate:.3g} per base of V, D and J")
    rows = sum(fit.counted)
    if found.unexplained:
        share = 100 * found.unexplained / rows
        common.say(
            f"unexplained {found.unexplained:,} rows ({share:.1f} %) have probability 0: {output}/unexplained.tsv"
        )
    for warning in fit.warnings:
        common.say(f"warning    {warning}")
    common.say(f"model      {output}")
