"""`hpcvdj sharing`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hpcvdj.chance import DRAWS
from hpcvdj.cli import common, options
from hpcvdj.cli.streams import written_with_facts
from hpcvdj.cohorts import Unit
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.ranks import log_if_serial

if TYPE_CHECKING:
    from hpcvdj.cohorts.sharing import Sharing

MOST_SHOWN = 10
"""Numbers of individuals that have a line of their own in the summary."""


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[
        Path, options.option("--output -o", "OUT", "Table of shared sequences to write: .tsv, .tsv.gz or .parquet.")
    ],
    unit: Annotated[
        Unit,
        typer.Option(
            "--unit",
            help="What counts as one sequence: nt, nucleotides with V and J genes; vj-aa, amino acids with V and J "
            "genes; aa, amino acids alone.",
        ),
    ] = "vj-aa",
    individual: options.IndividualColumn = None,
    metadata: options.Metadata = None,
    group: options.GroupColumn = None,
    subject: options.SubjectColumn = None,
    overlap: Annotated[
        Path | None,
        options.option("--overlap", "OUT", "Table to write of the sequences that each two individuals share."),
    ] = None,
    plot: Annotated[
        Path | None, options.option("--plot", "FIGURE", "Figure to draw: .png or .svg; needs matplotlib.")
    ] = None,
    min_individuals: Annotated[
        int, typer.Option("--min-individuals", min=1, help="Write sequences of at least so many individuals.")
    ] = 2,
    q: Annotated[
        float | None,
        typer.Option("--q", help="The share of sequences that survive selection.", show_default="fitted"),
    ] = None,
    genes: Annotated[
        Literal["call", "any"],
        typer.Option("--genes", help="any: without V and J calls, as of a list of CDR3s; for --unit aa."),
    ] = "call",
    draws: options.Draws = DRAWS,
    seed: options.Seed = 0,
    table_format: options.TableFormat = None,
    columns: options.Columns = None,
    ties: options.TiesOption = "none",
    keep_misfits: options.KeepMisfits = False,
    force: options.Force = False,
    backend: options.BackendOption = "auto",
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
    patience: options.Patience = options.DEFAULT_PATIENCE,
    overwrite: options.Overwrite = False,
) -> None:
    """Find the sequences that individuals share, and those that are shared by more of them than chance explains.

    Compares how many sequences are in 2, 3, ... individuals with how many recombination makes there, from their
    generation probabilities and the numbers of distinct junctions. A share q of all sequences survives selection in
    everybody; it is fitted. The p-value of a sequence is the probability that so many individuals have it if one has.
    Also prints how well generation probability and length predict which sequences are shared (AUC).

    Each table is one individual, or each repertoire_id of a table that has several. Takes productive junctions with V
    and J calls, in nucleotides or, of tables that have only these, in amino acids; copies and nucleotide variants are
    then not known. Run hpcvdj contamination first: copies between samples look like sharing. OUT.json
    has the numbers of the summary and the overlap of all pairs.

    Example: hpcvdj sharing donors/ -m human_trb -o shared.tsv --plot shared.png
    """
    run = common.begin(threads, patience)
    log_if_serial(run.world)
    from hpcvdj.chance.check import Checks
    from hpcvdj.cohorts.commands import share_files
    from hpcvdj.cohorts.files import Naming
    from hpcvdj.cohorts.shared_table import SharingSettings
    from hpcvdj.storage.plots import require_plottable

    settings = run.from_root(
        lambda: SharingSettings(unit, min_individuals, q, draws, seed, backend, strict_binding, genes)
    )
    naming = run.from_root(lambda: Naming(individual, metadata, group, subject))
    checks = run.from_root(lambda: Checks(ties, keep_misfits=keep_misfits, force=force))
    opening = run.from_root(lambda: options.opening(table_format, columns))
    if plot is not None:
        run.on_root(lambda: require_plottable(plot, overwrite=overwrite))
    with run.request:
        loaded = run.from_root(lambda: options.used_model(model))
        target = run.to(output, overwrite=overwrite)
        found = share_files(tables, loaded, settings, naming, checks, target, opening, overlap)
    if found is None:
        return
    if plot is not None:
        from hpcvdj.cohorts.plot import draw_sharing

        with told_if_slow(f"drawing {plot}", shown=True):
            draw_sharing(found, plot, overwrite=overwrite)
    _report(found, written_with_facts(output, overlap, plot))


def _report(found: "Sharing", written: list[Path]) -> None:
    from hpcvdj.cohorts.commands import left_out_text, overlap_of_groups

    own = found.cohort.individuals
    read = sum(one.rows + sum(one.left_out.values()) for one in own)
    common.say(
        f"individuals {len(own):,}, of {min(one.rows for one in own):,} to {max(one.rows for one in own):,} junctions"
    )
    common.say(f"rows        {read:,} read, {left_out_text(found.cohort)}; {found.tested:,} different sequences")
    factor = ", with the model's factor of selection" if found.factor else ""
    bound = " (the largest: no more is shared than recombination makes)" if found.q_at_bound else ""
    common.say(f"q           {found.q:.4g}{bound}{factor}")
    if found.refuted:
        common.say(
            "            far more is shared than this q explains, so p-values are too small: do not believe the hits"
        )
    common.say("individuals    observed    expected  95 % interval of the draws   if q = 1")
    last = max(2, *(number for number in range(len(found.observed)) if found.observed[number]))
    for number in range(1, min(last, MOST_SHOWN) + 1):
        interval = f"{found.low[number]:,.1f} to {found.high[number]:,.1f}"
        common.say(
            f"{number:>11}  {found.observed[number]:10,}  {found.expected[number]:10,.1f}  {interval:>25}  "
            f"{found.expected_q1[number]:10,.1f}"
        )
    if last > MOST_SHOWN:
        more = slice(MOST_SHOWN + 1, None)
        common.say(f"{'more':>11}  {found.observed[more].sum():10,}  {found.expected[more].sum():10,.1f}")
    for one, other, shared, expected in overlap_of_groups(found):
        common.say(f"overlap     {one} with {other}: {shared:,} shared by pairs, {expected:,.1f} expected")
    for name, area in found.aucs.items():
        low, high = area.interval
        common.say(f"AUC         {name:7} {area.area:.3f}, 95 % interval {low:.3f} to {high:.3f}")
    for reason, number in found.not_tested.items():
        if number:
            common.say(f"not tested  {number:,} shared sequences: {reason}")
    if found.not_available:
        common.say(f"not known   for want of nucleotides: {', '.join(found.not_available)}")
    copies = f"; {found.hits - (found.likely_copies or 0):,} without likely copies" if found.likely_copies else ""
    common.say(f"hits        {found.hits:,} with q_value <= 0.05{copies}")
    common.say(f"written     {', '.join(map(str, written))}")
