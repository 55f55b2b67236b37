"""The settings of a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from hpcvdj.options import Option, Settings


@dataclass(frozen=True, kw_only=True)
class ReportSettings(Settings):
    """The names of samples, their groups, and what is written beside the page."""

    name: Annotated[
        Sequence[str],
        Option("what the sample of each file is called", shell="what to call the sample of a file; once for each file",
               unset="the table it was read from", several=True),
    ] = ()  # fmt: skip
    metadata: Annotated[
        Any,
        Option("a table with a row for each sample: of its columns, the one with most of their names names the samples",
               metavar="TABLE", parse=Path),
    ] = None  # fmt: skip
    group: Annotated[str | None, Option("the column of the metadata that has the groups", metavar="COLUMN")] = None
    figures: Annotated[
        Path | str | None,
        Option("the folder to write each figure to, as PNG and SVG",
               shell="folder to write each figure to, as PNG and SVG", metavar="DIR"),
    ] = None  # fmt: skip
    multiqc: Annotated[
        Path | str | None,
        Option("the folder to write the tables of samples to, for MultiQC: `*_mqc.json`",
               shell="folder to write the tables of samples to, for MultiQC: *_mqc.json", metavar="DIR"),
    ] = None  # fmt: skip
