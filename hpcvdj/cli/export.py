"""`hpcvdj export`."""

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.helping import MORE


def command(
    result: options.ResultFile,
    output: options.OutputTable,
    junctions: Annotated[
        Path | None,
        typer.Option("--junctions", help="Where the counted table is now.", show_default="where it was counted"),
    ] = None,
    airr: Annotated[
        bool,
        typer.Option(
            "--airr",
            help="Add the columns, empty, that an AIRR file must have and the table lacks.",
            rich_help_panel=MORE,
        ),
    ] = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Write the counted table with the counters beside it, every row in its place.

    Added columns: {columns}.

    Example: hpcvdj export out.h5 -o counted.tsv.gz
    """
    run = common.begin()
    if not run.is_root:
        return
    from hpcvdj.results.export import export

    rows = export(result, output, junctions=junctions, airr=airr, overwrite=overwrite)
    common.say(f"rows       {rows:,}")
    common.say(f"written    {output}")
