"""`hpcvdj export`."""

from pathlib import Path

from hpcvdj.cli import common, options
from hpcvdj.options import setting
from hpcvdj.runs.settings import Overwrite


def command(
    result: options.ResultFile,
    output: options.OutputTable,
    junctions: Path | None = setting("where the counted table is now", None, unset="where it was counted"),
    airr: bool = setting("add the columns, empty, that an AIRR file must have and the table lacks", False, more=True),
    overwrite: Overwrite = False,
) -> None:  # fmt: skip
    """Write the counted table with the counters beside it, every row in its place.

    Added columns: pathways_n0, pathways_n1, ..., pathways_total and weight, empty for a row that could not be counted,
    and pathways_excluded with the reason.

    Example: hpcvdj export out.h5 -o counted.tsv.gz
    """
    if not common.begin().is_root:
        return
    from hpcvdj.results.export import export

    rows = export(result, output, junctions=junctions, airr=airr, overwrite=overwrite)
    common.say(f"rows       {rows:,}")
    common.say(f"written    {output}")
