"""`hpcvdj report`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.cli import common, options
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.runs.settings import Overwrite


def command(
    files: Annotated[
        list[Path],
        options.argument(
            "FILE",
            "Outputs of hpcvdj, of any number of samples: results or tables of count and pgen; tables of sharing, "
            "contamination, associate, enrich and annotate, each with its .json beside it; folders of these; the "
            "folder of analyze.",
        ),
    ],
    output: Annotated[Path, options.output("HTML", "Page to write.")],
    settings: ReportSettings,
    overwrite: Overwrite = False,
) -> None:
    """Write a report: what the data support, and the tables and figures behind it, on one HTML page.

    The page needs no network and no other file. Its tables can be sorted, searched, filtered and downloaded. It
    contains names of samples and files, and the command lines of the runs.

    Example: hpcvdj report counts.h5 pgen.h5 enriched/ -o report.html
    """
    run = common.begin()
    from hpcvdj.reports.page import write_report

    drawn = write_report(files, output, settings, overwrite=overwrite, run=run)
    if drawn is None:
        return
    common.say(f"files      {len(files)}")
    common.say(f"figures    {drawn}" + (f", as PNG and SVG in {settings.figures}" if settings.figures else ""))
    common.say(f"written    {output}")
