"""Options that the subcommands of `hpcvdj motifs` share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Sequences = Annotated[
    Path,
    typer.Argument(
        help="FASTA file (plain or compressed), or AIRR table (TSV, .gz, Parquet) whose distinct junctions are "
        "compared.",
        metavar="SEQUENCES",
        show_default=False,
    ),
]
SequenceField = Annotated[str, typer.Option("--sequence-field", help="Column of an AIRR table that has the sequences.")]
K = Annotated[int, typer.Option("-k", min=4, max=32, help="Bases of a k-mer.")]
D = Annotated[int, typer.Option("-d", min=0, max=3, help="Largest Hamming distance between k-mers.")]
Strands = Annotated[
    Literal["one", "both"],
    typer.Option("--strands", help="Compare sequences as given, or also with reverse complements."),
]
ResultFile = Annotated[
    Path, typer.Argument(help="Result file of `hpcvdj motifs compare`.", metavar="RESULT.h5", show_default=False)
]
MinScore = Annotated[
    float | None,
    typer.Option("--min-score", metavar="X", help="Keep pairs with a score of at least X.", show_default="all"),
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top", min=1, metavar="N",
        help="Keep a pair if it is among the N best of either sequence.", show_default="all",
    ),
]  # fmt: skip
Strand = Annotated[
    Literal["both", "+", "-"],
    typer.Option("--strand", help="Pairs of which strands: + (both as given), - (one reverse-complemented), or both."),
]
