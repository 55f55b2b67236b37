"""`hpcvdj report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common

NAME = "report"


def command(
    results: Annotated[
        list[Path],
        typer.Argument(
            help="Result files of `hpcvdj count`; two or more are compared.", metavar="OUT.h5...", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="HTML", help="Page to write.", show_default=False)],
    germline: Annotated[
        list[Path] | None,
        typer.Option(
            "--germline",
            "-g",
            metavar="TSV",
            help="Germline table that a result was counted with, to draw one junction's most direct pathways; "
            "once for each table.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="What to call a result; once for each.", show_default="its file's name"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Folder for each figure as PNG and SVG.", show_default=False),
    ] = None,
    junction: Annotated[
        str | None,
        typer.Option(
            "--junction",
            metavar="SEQUENCE_ID",
            help="The junction whose most direct pathways are drawn.",
            show_default="the most convergent one and a typical one",
        ),
    ] = None,
    overwrite: common.Overwrite = False,
) -> None:
    """Make a page of a result, or of several beside each other: tables and figures in one HTML file.

    The page needs no network and no other file. It names the run's user, hosts and paths, as the result does.

    Example: hpcvdj report out.h5 -o report.html -g inputs/germline/mouse_trb_paper.tsv
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.report.page import write_report

    drawn = write_report(
        results,
        output,
        germlines=germline or [],
        names=name or [],
        figures=figures,
        junction=junction,
        overwrite=overwrite,
    )
    common.say(f"results    {len(results)}")
    common.say(f"figures    {drawn}" + (f", PNG and SVG in {figures}" if figures else ""))
    common.say(f"written    {output}")
