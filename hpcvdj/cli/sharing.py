"""`hpcvdj sharing`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.chance.settings import Checks
from hpcvdj.cli import common, options
from hpcvdj.cli.streams import written_with_facts
from hpcvdj.cohorts.settings import Naming, SharingSettings
from hpcvdj.options import Option
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.ranks import log_if_serial
from hpcvdj.runs.settings import Launch, Overwrite

if TYPE_CHECKING:
    from hpcvdj.cohorts.sharing import Sharing

MOST_SHOWN = 10
"""Numbers of individuals that have a line of their own in the summary."""


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[
        Path,
        Option("table of shared sequences to write: .tsv, .tsv.gz or .parquet", flags="--output -o", metavar="OUT"),
    ],
    naming: Naming,
    settings: SharingSettings,
    opening: TableSettings,
    checks: Checks,
    launch: Launch,
    overlap: Annotated[
        Path | None, Option("table to write of the sequences that each two individuals share", metavar="OUT")
    ] = None,
    plot: options.Plot = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the sequences that individuals share, and those that are shared by more of them than chance explains.

    Compares how many sequences are in 2, 3, ... individuals with how many recombination makes there, from their
    generation probabilities and the numbers of distinct junctions. A share q of all sequences survives selection in
    everybody; it is fitted. The p-value of a sequence is the probability that so many individuals have it if one has.
    Also prints how well generation probability and length predict which sequences are shared (AUC).

    Each table is one individual, or each repertoire_id of a table that has several. Takes productive junctions with V
    and J calls, in nucleotides or, of tables that have only these, in amino acids; copies and nucleotide variants are
    then not known. Run hpcvdj contamination first: copies between samples look like sharing. OUT.json has the numbers
    of the summary and the overlap of all pairs.

    Example: hpcvdj sharing donors/ -m human_trb -o shared.tsv --plot shared.png
    """
    run = common.begin(launch)
    log_if_serial(run.world)
    from hpcvdj.cohorts.commands import share_files

    if plot is not None:
        from hpcvdj.reports.plots import draw, require_drawable

        run.on_root(lambda: require_drawable(plot, overwrite=overwrite))
    with run.request:
        opened = run.from_root(opening.opening)
        loaded = run.from_root(lambda: options.used_model(model))
        target = run.to(output, overwrite=overwrite)
        found = share_files(tables, loaded, settings, naming, checks, target, opened, overlap)
    if found is None:
        return
    if plot is not None:
        with told_if_slow(f"drawing {plot}", shown=True):
            draw(output, plot, curves=found.roc_curves(), overwrite=overwrite)
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
