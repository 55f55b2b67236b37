"""`hpcvdj export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from hpcvdj.cli import common, options

NAME = "export"


def command(
    result: options.ResultFile,
    output: options.OutputTable,
    junctions: Annotated[
        Path | None,
        typer.Option("--junctions", help="Where the counted table is now.", show_default="where it was counted"),
    ] = None,
    airr: Annotated[
        bool,
        typer.Option("--airr", help="Add the columns, empty, that an AIRR file must have and the table lacks."),
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


class Command(TyperCommand):
    """The command, whose help lists the columns from where they are declared."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        from hpcvdj.kernels.quantities import Pathways
        from hpcvdj.results.schema import exported_columns

        names = ", ".join([*exported_columns(), *Pathways().columns(2), "... and pathways_total"])
        columns = f"{names}, empty for a row that could not be counted, and {Pathways.excluded} with the reason"
        self.help = (self.help or "").replace("{columns}", columns)
        super().format_help(ctx, formatter)
