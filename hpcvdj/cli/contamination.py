"""`hpcvdj contamination`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.chance.settings import Checks
from hpcvdj.cli import common, options
from hpcvdj.cli.streams import written_with_facts
from hpcvdj.cohorts.settings import ContaminationSettings, Naming
from hpcvdj.options import Option
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.ranks import log_if_serial
from hpcvdj.runs.settings import Launch, Overwrite

if TYPE_CHECKING:
    from hpcvdj.cohorts.contamination import Contamination


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[
        Path, options.valued("--output -o", "OUT", "Table of pairs to write: .tsv, .tsv.gz or .parquet.")
    ],
    naming: Naming,
    settings: ContaminationSettings,
    opening: TableSettings,
    checks: Checks,
    launch: Launch,
    write_clean: Annotated[
        Path | None,
        Option("write the tables to this new folder, without the copies of improbable junctions that are not the "
               "largest; needs duplicate_count", metavar="FOLDER"),
    ] = None,
    junctions_out: Annotated[
        Path | None,
        Option("table to write of the improbable junctions that are shared, and by whom", metavar="OUT"),
    ] = None,
    plot: options.Plot = None,
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Find samples that contaminated each other, by the improbable junctions that they share.

    Two individuals hardly ever make the same junction if its generation probability is small. So junctions below
    --max-pgen that two samples share (nucleotides, V and J genes) came from one to the other. Writes for each pair how
    many there are, how many chance makes, and the rate. With duplicate_count, also how often clones of each size are
    met in other individuals. Give --metadata and --group with the batches: carry-over happens within a batch.

    Each table is one individual, or each repertoire_id of a table that has several. Needs productive nucleotide
    junctions with V and J calls. OUT.json has the numbers, and each row that --write-clean left out.

    Example: hpcvdj contamination donors/ -m human_trb -o pairs.tsv --metadata donors.tsv --group batch
    """
    run = common.begin(launch)
    log_if_serial(run.world)
    from hpcvdj.cohorts.commands import Further, contaminate_files

    if plot is not None:
        from hpcvdj.reports.plots import draw, require_drawable

        run.on_root(lambda: require_drawable(plot, overwrite=overwrite))
    target = run.to(output, overwrite=overwrite)
    further = Further(write_clean, junctions_out)
    with run.request:
        opened = run.from_root(opening.opening)
        loaded = run.from_root(lambda: options.used_model(model))
        found = contaminate_files(tables, loaded, settings, naming, checks, target, opened, further)
    if found is None:
        return
    if plot is not None:
        with told_if_slow(f"drawing {plot}", shown=True):
            draw(output, plot, overwrite=overwrite)
    _report(found, written_with_facts(output, junctions_out, plot, write_clean), clean=write_clean is not None)


def _report(found: "Contamination", written: list[Path], *, clean: bool) -> None:
    from hpcvdj.cohorts.commands import left_out_text, pairs_text, power_text

    own = found.cohort.individuals
    used, read = sum(one.rows for one in own), sum(one.rows + sum(one.left_out.values()) for one in own)
    common.say(f"rows        {read:,} read, {left_out_text(found.cohort)}")
    low, zero = int(found.low.sum()), int(found.zero.sum())
    common.say(
        f"junctions   {used:,}, of which {low:,} improbable (p < {found.max_pgen:g}); the model cannot make {zero:,}"
    )
    pairs = found.pairs.standing_out
    common.say(
        f"pairs       {found.table.num_rows:,}, of which {len(pairs):,} share more than chance and selection explain"
    )
    for line in pairs_text(found.cohort, found.improbable):
        common.say(f"            {line}")
    for i, j in found.pairs.of_one_person:
        common.say(f"{found.pairs.verdicts[i, j]:<11} {found.cohort.names[i]} and {found.cohort.names[j]}")
    if line := power_text(found.cohort, found.pairs):
        common.say(f"power       {line}")
    same = "other individuals of its group" if len(found.cohort.groups) > 1 else "the other individuals"
    for size in found.carry_over:
        if size.clones:
            rates = [
                f"{100 * rate:.3g} % of {name}"
                for rate, name in ((size.same_group, same), (size.other_group, "individuals of other groups"))
                if rate is not None
            ]
            common.say(
                f"carry-over  {size.clones:,} clones of {size.reads} reads: one is found in {' and in '.join(rates)}"
            )
    if clean:
        common.say(f"removed     {len(found.copies or []):,} rows, which OUT.json lists")
    common.say(f"written     {', '.join(map(str, written))}")
