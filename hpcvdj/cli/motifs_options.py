"""Options that the subcommands of `hpcvdj motifs` on a result share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hpcvdj.motifs.edges import Selection


class Strands(StrEnum):
    """Which strands are compared."""

    one = "one"
    both = "both"


class Strand(StrEnum):
    """Which relation of a pair: as given, or one of them reverse-complemented."""

    both = "both"
    same = "+"
    opposite = "-"


SequenceField = Annotated[
    str, typer.Option("--sequence-field", help="Column of an AIRR table that holds the sequences.")
]
ResultFile = Annotated[
    Path, typer.Argument(help="Result file of `hpcvdj motifs compare`.", metavar="RESULT.h5", show_default=False)
]
MinScore = Annotated[
    float | None,
    typer.Option("--min-score", metavar="X", help="Take pairs of this score or a higher one.", show_default="all"),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top", min=1, metavar="N",
        help="Take pairs that are among the N best of one of their two sequences.", show_default="all",
    ),
]  # fmt: skip
StrandOption = Annotated[
    Strand,
    typer.Option("--strand", help="Take pairs as given (+), with one reverse-complemented (-), or both relations."),
]


def selection(min_score: float | None, top: int | None) -> Selection:
    """What --min-score and --top say."""
    from hpcvdj.motifs.edges import Selection

    return Selection(min_score, top)
