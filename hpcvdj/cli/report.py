"""`hpcvdj report`."""

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common, options


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Outputs of hpcvdj, of any number of samples: results or tables of count and pgen; tables of sharing, "
            "contamination and enrich, each with its .json beside it; folders of these.",
            metavar="FILE...",
            show_default=False,
        ),
    ],
    output: Annotated[Path, options.option("--output -o", "HTML", "Page to write.")],
    metadata: Annotated[
        Path | None,
        typer.Option(
            "--metadata",
            metavar="TABLE",
            help="Table with a row for each sample; the column with most of their names names the samples.",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="COLUMN", help="Column of --metadata with the groups.", show_default=False),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="What to call the sample of a file; once for each file.",
            show_default="the table it was read from",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures", metavar="DIR", help="Folder to write each figure to, as PNG and SVG.", show_default=False
        ),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a report: what the data support, and the tables and figures behind it, on one HTML page.

    The page needs no network and no other file. Its tables can be sorted, searched, filtered and downloaded. It
    contains names of samples and files, and the command lines of the runs.

    Example: hpcvdj report counts.h5 pgen.h5 enriched/ -o report.html
    """
    if not common.begin().is_root:
        return
    from hpcvdj.reports.page import Grouping, write_report

    drawn = write_report(
        files, output, figures=figures, grouping=Grouping(name or (), metadata, group), overwrite=overwrite
    )
    common.say(f"files      {len(files)}")
    common.say(f"figures    {drawn}" + (f", as PNG and SVG in {figures}" if figures else ""))
    common.say(f"written    {output}")
