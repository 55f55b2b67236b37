"""`hpcvdj enrich`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.computing import make_folder, not_all, one_after_another
from hpcvdj.cli.streams import written_with_facts
from hpcvdj.errors import InputError, naming
from hpcvdj.runs.ranks import log_if_serial

if TYPE_CHECKING:
    from hpcvdj.enrichment.tables import Enriched


FAR_ABOVE = 10
"""How many times the common κ that of a length is when users hear of it."""


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: Annotated[
        Path,
        options.option(
            "--output -o",
            "OUT",
            "Table of tested clonotypes to write: .tsv, .tsv.gz or .parquet. Several tables: a folder, for NAME.tsv of "
            "each.",
        ),
    ],
    control: Annotated[
        Path | None,
        typer.Option(
            "--control",
            metavar="TABLE",
            help="Junctions of other people: take the number of neighbours that they have for chance, not the model's "
            "probabilities.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FIG",
            help="Figure to draw: p-values beside uniform ones, and the hits as a network; .png or .svg. Needs "
            "matplotlib and networkx. Only of a single table.",
            show_default=False,
        ),
    ] = None,
    table_format: options.TableFormat = None,
    columns: options.Columns = None,
    min_reads: Annotated[
        int,
        typer.Option(
            "--min-reads",
            min=1,
            help="Leave out nucleotide junctions with fewer reads. If most have one read, the summary says how many "
            "hits there are with --min-reads 2.",
        ),
    ] = 1,
    likely_errors: Annotated[
        bool,
        typer.Option(
            "--likely-errors",
            help="Keep likely sequencing errors: junctions that differ in one base from another one of any V and J "
            "with 20 times as many reads (duplicate_count), in two bases from one with 400 times, or in three from one "
            "with 8,000 times.",
        ),
    ] = False,
    min_neighbours: Annotated[
        int, typer.Option("--min-neighbours", min=1, help="Test clonotypes with at least so many neighbours.")
    ] = 2,
    kappa: Annotated[
        float | None,
        typer.Option(
            "--kappa",
            help="By how much selection makes neighbourhoods denser than recombination alone: 1 for generated "
            "junctions.",
            show_default="estimated for each length",
        ),
    ] = None,
    max_q: Annotated[
        float, typer.Option("--max-q", help="False discovery rate up to which clonotypes are hits.")
    ] = 0.001,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, help="Seed of the clonotypes drawn to estimate kappa."),
    ] = 0,
    selection: Annotated[
        bool,
        typer.Option(
            "--selection/--no-selection",
            help="Take the model's selection factor (hpcvdj infer-selection), if it has one.",
        ),
    ] = True,
    genes: Annotated[
        Literal["call", "any"],
        typer.Option("--genes", help="any: without V and J calls, as of a list of CDR3s; all junctions are one class."),
    ] = "call",
    ties: options.TiesOption = "none",
    keep_misfits: options.KeepMisfits = False,
    force: options.Force = False,
    backend: options.BackendOption = "auto",
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
    patience: options.Patience = options.DEFAULT_PATIENCE,
    resume: Annotated[
        bool, typer.Option("--resume", help="Of several tables, leave those whose output is complete.")
    ] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Find clonotypes with more neighbours than chance explains, as clonotypes that answer the same antigen have.

    A neighbour of a clonotype (V gene, J gene, amino acids) is a nucleotide junction of the same genes with the same
    amino acids, or with one exchanged. Their number is compared with what recombination makes of so many junctions,
    times the model's selection factor, if it has one, and a factor kappa for the rest of selection, which clonotypes
    without neighbours tell. P-values are Poisson, q-values are those of Benjamini and Hochberg over all clonotypes,
    hits that are neighbours form clusters.

    Takes productive junctions with V and J calls, of one individual in each table, in nucleotides or, of tables that
    have only these, in amino acids; each clonotype then counts as one junction, and likely sequencing errors are not
    known. The numbers are the
    same for any number of ranks and threads. enriched.tsv.json, beside enriched.tsv, says what was read, kappa of each
    length, and how many hits there are.

    Examples: hpcvdj enrich sample.tsv -m human_trb -o enriched.tsv;
    hpcvdj enrich samples/ -m human_trb -o enriched/
    """
    run = common.begin(threads, patience)
    log_if_serial(run.world)
    from hpcvdj.chance.check import Checks
    from hpcvdj.enrichment.enrich import Settings
    from hpcvdj.enrichment.tables import ClonotypeChoice, enrich_file
    from hpcvdj.repertoires.inputs import targets_of
    from hpcvdj.repertoires.tables import table_suffix

    opening = run.from_root(lambda: options.opening(table_format, columns))
    settings = run.from_root(
        lambda: Settings(
            kappa,
            min_neighbours,
            max_q,
            seed,
            backend=backend,
            selection=selection,
            strict_binding=strict_binding,
            genes=genes,
        )
    )
    choice = ClonotypeChoice(min_reads, likely_errors)
    checks = run.from_root(lambda: Checks(ties, keep_misfits=keep_misfits, force=force))
    if plot is not None:
        # Whether an existing one is replaced depends on the table, if the run resumes.
        run.on_root(partial(_require_drawable, plot, overwrite=overwrite or resume))

    def plan() -> list[tuple[Path, Path]]:
        several = "run hpcvdj once for each table"
        work = targets_of(junctions, output, opening, suffix=".tsv", require=table_suffix, alone=several)
        if plot is not None and len(work) > 1:
            raise InputError(f"--plot {plot}: draws one table, and {len(work):,} are given; {several}")
        make_folder(junctions, output)
        return work

    def compute(table: Path, target: Path) -> None:
        to = run.to(target, resume=resume, overwrite=overwrite)
        further = [plot] if plot is not None else []
        given = [table, control] if control is not None else [table]
        with naming(table.name):
            found = enrich_file(given, loaded, settings, choice, to, opening, checks, further)
        if found is None:
            return
        if plot is not None:
            from hpcvdj.enrichment.plot import draw

            draw(found.enrichment, plot, overwrite=overwrite or resume)
        if len(work) > 1:
            _report_line(found, table, target)
        else:
            _report(found, written_with_facts(target, plot), max_q)

    with run.request:
        work = run.from_root(plan)
        loaded = run.from_root(lambda: checks.model(options.used_model(model)))
        _, refused = one_after_another(run, work, compute, lambda table: table.name)
    if refused:
        raise not_all(refused, len(work), "tested")


def _require_drawable(plot: Path, *, overwrite: bool) -> None:
    from hpcvdj.storage.plots import require_networkx, require_plottable

    require_plottable(plot, overwrite=overwrite)
    require_networkx()


def _report_line(found: "Enriched", table: Path, target: Path) -> None:
    from hpcvdj.enrichment.tables import said_of_read_once

    own = found.enrichment
    kappa = f", kappa {own.kappa:.2f}" if own.kappa is not None else ""
    read_once = f"; {said_of_read_once(own.read_once, found.junctions)}" if own.read_once is not None else ""
    common.say(
        f"{table.name}: {found.rows_read:,} rows, {own.clonotypes:,} clonotypes{kappa}, {own.hits:,} hits in "
        f"{own.clusters:,} cluster(s), {target}{read_once}"
    )


def _report(found: "Enriched", written: list[Path], max_q: float) -> None:
    from hpcvdj.enrichment.tables import said_of_read_once

    own = found.enrichment
    left_out = "".join(f", {number:,} {reason}" for reason, number in found.left_out.items() if number)
    common.say(f"rows       {found.rows_read:,} read, {found.excluded:,} excluded{left_out}")
    common.say(f"clonotypes {own.clonotypes:,}, of which {own.table.num_rows:,} have enough neighbours to be tested")
    for reason, number in own.not_tested.items():
        if number:
            common.say(f"           {number:,} more are not tested: {reason}")
    if own.not_available:
        common.say(f"not known  for want of nucleotides: {', '.join(own.not_available)}")
    if own.kappa is not None:
        lengths = "".join(f", {length}: {kappa:.2f}" for length, kappa in own.by_length.items())
        estimate = own.estimate
        sure = f" (95 % interval {estimate.low:.2f} to {estimate.high:.2f})" if estimate is not None else ""
        if estimate is not None and not estimate.low:
            sure = " at most; too few clonotypes have neighbours to say more"
        common.say(f"kappa      {own.kappa:.2f}{sure}{'; by residues of the junction' if lengths else ''}{lengths[1:]}")
        if far := [str(length) for length, kappa in own.by_length.items() if kappa > FAR_ABOVE * own.kappa]:
            common.say(
                f"           that of {', '.join(far)} residues is more than {FAR_ABOVE} times as large, which "
                "selection hardly explains: it may be of misread sequences (--min-reads 2), or of true clusters, some "
                "of which it hides"
            )
    common.say(f"hits       {own.hits:,} with q <= {max_q:g}, in {own.clusters:,} cluster(s)")
    if own.read_once is not None:
        common.say(f"           {said_of_read_once(own.read_once, found.junctions)}")
    common.say(f"written    {', '.join(map(str, written))}")
