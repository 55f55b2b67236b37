"""The settings of a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from hpcvdj.options import Option, Settings


@dataclass(frozen=True)
class Grouping(Settings):
    """The names of samples, and their groups."""

    name: Annotated[
        tuple[str, ...],
        Option("what the sample of each file is called", shell="what to call the sample of a file; once for each file",
               unset="the table it was read from", several=True),
    ] = ()  # fmt: skip
    metadata: Annotated[
        Any,
        Option("a table with a row for each sample: of its columns, the one with most of their names names the samples",
               metavar="TABLE", parse=Path),
    ] = None  # fmt: skip
    group: Annotated[str | None, Option("the column of the metadata that has the groups", metavar="COLUMN")] = None
