"""Results: opened, and shown on a page."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hpcvdj.api.parameters import unfolding
from hpcvdj.api.tables import germline as germline_of
from hpcvdj.api.tables import model_of
from hpcvdj.reports.page import Highlights, write_report
from hpcvdj.results.reader import Result


def open_result(path: str | Path) -> Result:
    """Open a result file of `hpcvdj count` for reading: `hpcvdj.open`.

    path  the result file

    Use it as a context manager, or `close` it.  A result in parts opens by its own name, with the parts beside it.
    """
    return Result(path)


@unfolding(highlights=Highlights)
def report(
    results: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    germline: str | Path | Sequence[str | Path] = (),
    name: str | Sequence[str] = (),
    figures: str | Path | None = None,
    overwrite: bool = False,
    highlights: partial[Highlights],
) -> int:
    """Write a report of one or more results: tables and figures on one HTML page.

    results    {results}; several are shown beside each other
    output     the page to write
    germline   the germline tables that the results were counted with, by name or path, in any order: with them the
               report shows the most direct pathways of the first junction and of a typical one
    name       what to call each result; by default as its file
    figures    the folder to write each figure to, as PNG and SVG
    overwrite  {overwrite}
    {highlights}

    Returns the number of figures.  Raises InputError for results that cannot be shown.
    """
    chosen = highlights()
    model = None if chosen.model is None else model_of(chosen.model)
    return write_report(
        _several(results),
        output,
        germlines=[germline_of(own).name for own in _several(germline)],
        names=_several(name),
        figures=figures,
        highlights=replace(chosen, model=model),
        overwrite=overwrite,
    )


def _several(given: str | Path | Sequence[str | Path]) -> list[Any]:
    return [given] if isinstance(given, str | Path) else list(given)
