"""Open results, and report them on a page."""

from collections.abc import Sequence
from pathlib import Path

from hpcvdj.api.parameters import documented
from hpcvdj.reports.page import write_report
from hpcvdj.reports.settings import Grouping
from hpcvdj.results.reader import Result


def open_result(path: str | Path) -> Result:
    """Open a result file of `hpcvdj count` for reading: `hpcvdj.open`.

    path  the result file

    Use it as a context manager, or `close` it.  A result in parts opens by its own name, with the parts beside it.
    """
    return Result(path)


@documented(Grouping)
def report(
    files: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    figures: str | Path | None = None,
    multiqc: str | Path | None = None,
    overwrite: bool = False,
    name: Sequence[str] = (),
    metadata: str | Path | None = None,
    group: str | None = None,
) -> int:
    """Write a report: what the data support, and the tables and figures behind it, on one HTML page.

    files      outputs of hpcvdj, of any number of samples: results or tables of count and pgen; tables of sharing,
               contamination, associate, enrich and annotate, each with its .json beside it; folders of these; the
               folder of analyze
    output     the page to write
    figures    the folder to write each figure to, as PNG and SVG
    multiqc    the folder to write the tables of samples to, for MultiQC: `*_mqc.json`
    overwrite  {overwrite}
    {options}

    Returns the number of figures.  Raises InputError for files that a report does not show.
    """
    grouping = Grouping.of(locals())
    paths = [files] if isinstance(files, str | Path) else list(files)
    drawn = write_report(paths, output, figures=figures, multiqc=multiqc, grouping=grouping, overwrite=overwrite)
    assert drawn is not None
    return drawn
