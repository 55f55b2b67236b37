"""`hpcvdj enrich`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.chance.settings import Checks
from hpcvdj.cli import common, options
from hpcvdj.cli.computing import make_folder, not_all, one_after_another
from hpcvdj.cli.streams import written_with_facts
from hpcvdj.enrichment.settings import ClonotypeChoice, Settings
from hpcvdj.errors import InputError, naming, option
from hpcvdj.options import Option
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.ranks import log_if_serial
from hpcvdj.runs.settings import Launch, Overwrite

if TYPE_CHECKING:
    from hpcvdj.enrichment.tables import Enriched


FAR_ABOVE = 10
"""How many times the common κ that of a length is when users hear of it."""


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: Annotated[
        Path,
        options.valued(
            "--output -o",
            "OUT",
            "Table of tested clonotypes to write: .tsv, .tsv.gz or .parquet. Several tables: a folder, for NAME.tsv of "
            "each.",
        ),
    ],
    settings: Settings,
    choice: ClonotypeChoice,
    opening: TableSettings,
    checks: Checks,
    launch: Launch,
    control: Annotated[
        Path | None,
        Option("junctions of other people: take the number of neighbours that they have for chance, not the model's "
               "probabilities", metavar="TABLE"),
    ] = None,
    plot: Annotated[
        Path | None,
        Option("figure to draw, of a single table: p-values beside uniform ones, and the hits as a network; .png or "
               ".svg; needs matplotlib and networkx", metavar="FIGURE"),
    ] = None,
    resume: Annotated[bool, Option("of several tables, leave those whose output is complete")] = False,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Find clonotypes with more neighbours than chance explains, as clonotypes that answer the same antigen have.

    A neighbour of a clonotype (V gene, J gene, amino acids) is a nucleotide junction of the same genes with the same
    amino acids, or with one exchanged. Their number is compared with what recombination makes of so many junctions,
    times the model's selection factor, if it has one, and a factor kappa for the rest of selection, which clonotypes
    without neighbours tell. P-values are Poisson, q-values are those of Benjamini and Hochberg over all clonotypes,
    hits that are neighbours form clusters.

    Takes productive junctions with V and J calls, of one individual in each table, in nucleotides or, of tables that
    have only these, in amino acids; each clonotype then counts as one junction, and likely sequencing errors are not
    known. The numbers are the same for any number of ranks and threads. enriched.tsv.json, beside enriched.tsv, says
    what was read, kappa of each length, and how many hits there are.

    Examples: hpcvdj enrich sample.tsv -m human_trb -o enriched.tsv;
    hpcvdj enrich samples/ -m human_trb -o enriched/
    """
    run = common.begin(launch)
    log_if_serial(run.world)
    from hpcvdj.enrichment.tables import enrich_file
    from hpcvdj.repertoires.inputs import targets_of
    from hpcvdj.repertoires.writers import writer_of

    opened = run.from_root(opening.opening)
    if plot is not None:
        # Whether an existing one is replaced depends on the table, if the run resumes.
        run.on_root(partial(_require_drawable, plot, overwrite=overwrite or resume))

    def plan() -> list[tuple[Path, Path]]:
        several = "run hpcvdj once for each table"
        work = targets_of(junctions, output, opened, suffix=".tsv", require=writer_of, alone=several)
        if plot is not None and len(work) > 1:
            raise InputError(f"{option('plot', plot)}: draws one table, and {len(work):,} are given; {several}")
        make_folder(junctions, output)
        return work

    def compute(table: Path, target: Path) -> None:
        to = run.to(target, resume=resume, overwrite=overwrite)
        further = [plot] if plot is not None else []
        given = [table, control] if control is not None else [table]
        with naming(table.name):
            found = enrich_file(given, loaded, settings, choice, to, opened, checks, further)
        if found is None:
            return
        if plot is not None:
            from hpcvdj.enrichment.plot import draw

            draw(found.enrichment, plot, overwrite=overwrite or resume)
        if len(work) > 1:
            _report_line(found, table, target)
        else:
            _report(found, written_with_facts(target, plot), settings.max_q)

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
