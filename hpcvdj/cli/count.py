"""`hpcvdj count`."""

from hpcvdj.cli import common, options
from hpcvdj.cli.computing import compute_each, planned
from hpcvdj.counting.config import Config
from hpcvdj.repertoires.settings import GermlineSettings, RowSettings, Strict, TableSettings
from hpcvdj.runs.settings import Launch, Started


def command(
    junctions: options.Tables,
    germline: options.GermlineTables,
    output: options.Output,
    config: Config,
    rows: RowSettings,
    alleles: GermlineSettings,
    opening: TableSettings,
    started: Started,
    launch: Launch,
    strict: Strict = False,
    together: options.Together = False,
) -> None:
    """Count the recombination pathways of every junction of a repertoire.

    Counts every row of JUNCTIONS; the result lists the rows that it cannot count, with the reason. Under mpiexec or
    srun the ranks share the work; the counters are the same for any number of ranks.

    SIGTERM, SIGINT or SIGUSR1 to any rank stops the run within seconds with exit code 75; finished work is then in
    the folder OUT.parts, and --resume continues the run, also after a crash.

    Several tables, or a folder of tables, give one result each, in the folder -o. If one table cannot be read, the
    others are still counted.

    With --together they give one result. A row's repertoire is its repertoire_id or, if that is empty, the table's
    name; a sequence_id must be unique only within its repertoire. hpcvdj first reads all tables; if it cannot read
    one, it counts nothing. bitwise and baseline enumerate once for all tables.

    Example: hpcvdj count inputs/mouse_trb/small.tsv -g mouse_trb_paper -o out.h5
    """
    run = common.begin(launch, shared=True)
    from hpcvdj.repertoires.folders import tables_in

    table = run.from_root(lambda: alleles.read(germline))
    reading = rows.reading(strict=strict, opening=run.from_root(opening.opening))
    compute_each(
        run, lambda: planned(junctions, tables_in(junctions, reading.opening), output, reading, together=together),
        table, config, started,
    )  # fmt: skip
