"""The settings of a report."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpcvdj.options import Settings, setting


class ReportSettings(Settings, kw_only=True):
    """The names of samples, their groups, and what is written beside the page."""

    name: Sequence[str] = setting(
        "what the sample of each file is called", (), shell="what to call the sample of a file; once for each file",
        unset="the table it was read from", several=True)  # fmt: skip
    metadata: Any = setting("a table with a row for each sample: of its columns, the one with most of their names "
                            "names the samples", None, metavar="TABLE", parse=Path)  # fmt: skip
    group: str | None = setting("the column of the metadata that has the groups", None, metavar="COLUMN")
    figures: Path | str | None = setting(
        "the folder to write each figure to, as PNG and SVG", None,
        shell="folder to write each figure to, as PNG and SVG", metavar="DIR")  # fmt: skip
    multiqc: Path | str | None = setting(
        "the folder to write the tables of samples to, for MultiQC: `*_mqc.json`", None,
        shell="folder to write the tables of samples to, for MultiQC: *_mqc.json", metavar="DIR")  # fmt: skip
