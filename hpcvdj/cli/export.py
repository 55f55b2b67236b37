"""`hpcvdj export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common

NAME = "export"


def command(
    result: Annotated[
        Path, typer.Argument(help="Result file of `hpcvdj count`.", metavar="OUT.h5", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Table to write: .tsv, .tsv.gz or .parquet.", show_default=False
        ),
    ],
    junctions: Annotated[
        Path | None,
        typer.Option("--junctions", help="Where the counted table lies now.", show_default="where it was counted"),
    ] = None,
    airr: Annotated[
        bool,
        typer.Option("--airr", help="Add, empty, the columns that an AIRR file must have and the table lacks."),
    ] = False,
    overwrite: common.Overwrite = False,
) -> None:
    """Write the counted table with the counters beside it, every row in its place.

    Added columns: pathways_n0 ... and pathways_total, empty for a row that could not be counted, and
    pathways_excluded with the reason.

    Example: hpcvdj export out.h5 -o counted.tsv.gz
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.results.export import export

    rows = export(result, output, junctions=junctions, airr=airr, overwrite=overwrite)
    common.say(f"rows       {rows:,}")
    common.say(f"written    {output}")
