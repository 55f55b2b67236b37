"""`hpcvdj report`."""

from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common, options


def command(
    results: Annotated[
        list[Path],
        typer.Argument(
            help="Result files of `hpcvdj count`; several are shown beside each other.",
            metavar="OUT.h5...",
            show_default=False,
        ),
    ],
    output: Annotated[Path, options.option("--output -o", "HTML", "Page to write.")],
    germline: Annotated[
        list[Path] | None,
        options.option(
            "--germline -g",
            "TABLE",
            "Germline table that a result was counted with, name or file, to draw the most direct pathways of a "
            "junction; once for each table.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="What to call a result; once for each result.", show_default="its file's name"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures", metavar="DIR", help="Folder to write each figure to, as PNG and SVG.", show_default=False
        ),
    ] = None,
    junction: Annotated[
        str | None,
        typer.Option(
            "--junction",
            metavar="SEQUENCE_ID",
            help="The junction whose most direct pathways are drawn.",
            show_default="the first in the ranking and a typical one",
        ),
    ] = None,
    model: options.OptionalModel = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a report of one or more results: tables and figures on one HTML page.

    Ranks junctions by their weight, in which a pathway with m n-nucleotides counts 4^-m, or, with --model, by their
    generation probability.

    The page needs no network and no other file. It contains the run's user, hosts and paths, as the result does.

    Example: hpcvdj report out.h5 -o report.html -g mouse_trb_paper
    """
    if not common.begin().is_root:
        return
    from hpcvdj.recombination.igor import load_model
    from hpcvdj.reports.page import Highlights, write_report

    drawn = write_report(
        results,
        output,
        germlines=germline or [],
        names=name or [],
        figures=figures,
        highlights=Highlights(junction, None if model is None else load_model(model)),
        overwrite=overwrite,
    )
    common.say(f"results    {len(results)}")
    common.say(f"figures    {drawn}" + (f", as PNG and SVG in {figures}" if figures else ""))
    common.say(f"written    {output}")
