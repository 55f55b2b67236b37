"""`hpcvdj export`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.cli import common, options
from hpcvdj.options import Option
from hpcvdj.runs.settings import Overwrite


def command(
    result: options.ResultFile,
    output: options.OutputTable,
    junctions: Annotated[Path | None, Option("where the counted table is now", unset="where it was counted")] = None,
    airr: Annotated[
        bool, Option("add the columns, empty, that an AIRR file must have and the table lacks", more=True)
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write the counted table with the counters beside it, every row in its place.

    Added columns: {columns}.

    Example: hpcvdj export out.h5 -o counted.tsv.gz
    """
    if not common.begin().is_root:
        return
    from hpcvdj.results.export import export

    rows = export(result, output, junctions=junctions, airr=airr, overwrite=overwrite)
    common.say(f"rows       {rows:,}")
    common.say(f"written    {output}")
