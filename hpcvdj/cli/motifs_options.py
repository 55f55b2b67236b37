"""Options that the subcommands of `hpcvdj motifs` share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from hpcvdj.recombination.productive import Rows

Sequences = Annotated[
    list[Path],
    typer.Argument(
        help="AIRR tables ({tables}) whose distinct junctions are compared, or FASTA files (plain or compressed); "
        "several are compared as one set.",
        metavar="SEQUENCES...",
        show_default=False,
    ),
]
Moved = Annotated[
    Path | None,
    typer.Option(
        "--sequences",
        help="Where the compared file is now, for its sequences and genes; of several, their folder.",
        show_default="where it was compared",
    ),
]
RowsOption = Annotated[
    Rows,
    typer.Option(
        "--rows",
        help="Of a table: productive rows, by its column productive or, without that, by the junction; or all rows.",
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
