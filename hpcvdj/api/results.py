"""Open results, and report them on a page."""

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from hpcvdj.api.parameters import taking
from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import ReportSettings
from hpcvdj.results.reader import Result


def open(path: str | Path) -> Result:
    """Open a result file of `hpcvdj count` for reading: `hpcvdj.open`.

    path  the result file

    Use it as a context manager, or `close` it.  A result in parts opens by its own name, with the parts beside it.
    """
    return Result(path)


class _Report(ReportSettings):
    """The arguments of `report`."""

    files: str | Path | Sequence[str | Path]
    output: str | Path
    overwrite: bool = field(default=False, kw_only=True)


@taking(_Report)
def report(files: str | Path | Sequence[str | Path], output: str | Path, *, overwrite: bool, **options: Any) -> int:
    """Write a report: what the data support, and the tables and figures behind it, on one HTML page.

    files      outputs of hpcvdj, of any number of samples: results or tables of count and pgen; tables of sharing,
               contamination, associate, enrich and annotate, each with its .json beside it; folders of these; the
               folder of analyze
    output     the page to write
    overwrite  {overwrite}
    {options}

    Returns the number of figures.  Raises InputError for files that a report does not show.
    """
    paths = [files] if isinstance(files, str | Path) else list(files)
    drawn = write_report(paths, output, ReportSettings.of(options), overwrite=overwrite)
    assert drawn is not None
    return drawn
