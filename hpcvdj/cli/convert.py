"""`hpcvdj convert`."""

from hpcvdj.cli import common, options
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.settings import Launch, Overwrite, Resume, Threads


def command(
    junctions: options.Tables,
    output: options.OutputTable,
    opening: TableSettings,
    resume: Resume = False,
    threads: Threads = None,
    overwrite: Overwrite = False,
) -> None:
    """Write tables of other programs as an AIRR table, every row in its place.

    The columns are those that AIRR requires (empty if they are not known), then the other AIRR fields, then the
    table's own columns. Several tables, or a folder, become one table with repertoire_id. Ids that are numbers of rows
    or clones, or that two of the tables have, are then preceded by the table's name, as in donor1.17.

    Ranks read and write slices of the tables side by side.

    Example: hpcvdj convert inputs/mouse_trb/small.tsv -o small.parquet
    """
    run = common.begin(Launch(threads))
    from hpcvdj.repertoires.tally import reason_lines
    from hpcvdj.values.convert import convert

    with run.request:
        done = convert(junctions, opening.opening(), run.to(output, resume=resume, overwrite=overwrite))
    if not run.is_root:
        return
    if done.tables > 1:
        common.say(f"tables     {done.tables:,}")
    without = done.reasons.total()
    common.say(f"rows       {done.rows:,} read, {without:,} without a junction{':' if without else ''}")
    for line in reason_lines(done.reasons.most_common()):
        common.say(line)
    common.say(f"written    {output}")
