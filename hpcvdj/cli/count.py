"""`hpcvdj count`."""

from typing import Annotated

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.computing import Started, compute_each, planned
from hpcvdj.cli.helping import MORE
from hpcvdj.runs.ranks import log_if_serial


def command(
    junctions: options.Tables,
    germline: options.GermlineTables,
    output: options.Output,
    together: options.Together = False,
    table_format: options.TableFormat = None,
    columns: options.Columns = None,
    max_n: options.MaxN = "10",
    method: options.MethodOption = "direct",
    backend: options.BackendOption = "auto",
    d_forms: options.DForms = "paper",
    d_alleles: options.DAllelesOption = "first",
    max_p: options.MaxP = 4,
    sequence_field: options.Field = "junction",
    ambiguous_calls: options.AmbiguousCalls = "exclude",
    unlisted_alleles: options.UnlistedAlleles = "exclude",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on the first row that cannot be counted.", rich_help_panel=MORE)
    ] = False,
    threads_per_block: options.ThreadsPerBlock = options.DEFAULT_THREADS_PER_BLOCK,
    strict_binding: options.StrictBinding = False,
    threads: options.Threads = None,
    resume: options.Resume = False,
    batch_rows: options.BatchRows = None,
    checkpoint_every: options.CheckpointEvery = options.DEFAULT_CHECKPOINT_SECONDS,
    patience: options.Patience = options.DEFAULT_PATIENCE,
    overwrite: options.Overwrite = False,
) -> None:
    """Count the recombination pathways of every junction of a repertoire.

    Counts every row of JUNCTIONS; the result lists the rows that it cannot count, with the reason. Under mpiexec or
    srun the ranks share the work; the counters are the same for any number of ranks.

    SIGTERM, SIGINT or SIGUSR1 to any rank stops the run within seconds with exit code 75; finished work is then in
    OUT.h5.checkpoint, and --resume continues the run. After a crash, --resume continues from the last checkpoint.

    Several tables, or a folder of tables, give one result each, in the folder -o. If one table cannot be read, the
    others are still counted.

    With --together they give one result. A row's repertoire is its repertoire_id or, if that is empty, the table's
    name; a sequence_id must be unique only within its repertoire. hpcvdj first reads all tables; if it cannot read
    one, it counts nothing. bitwise and baseline enumerate once for all tables.

    Example: hpcvdj count inputs/mouse_trb/small.tsv -g mouse_trb_paper -o out.h5
    """
    run = common.begin(threads, patience)
    log_if_serial(run.world)
    from hpcvdj.counting.config import Config
    from hpcvdj.recombination.calls import CallPolicy
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.repertoires.reading import Reading

    config = run.from_root(
        lambda: Config(options.parse_max_n(max_n), method, backend, d_forms, threads_per_block, strict_binding)
    )
    table = run.from_root(lambda: read_germline(germline, max_p=max_p, d_alleles=d_alleles))
    opening = run.from_root(lambda: options.opening(table_format, columns))
    reading = Reading(sequence_field, CallPolicy(ambiguous_calls, unlisted_alleles), strict, opening=opening)

    started = Started(resume, overwrite, checkpoint_every, batch_rows)
    compute_each(run, lambda: planned(junctions, output, reading, together=together), table, config, started)
