"""`hpcvdj simulate`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common

NAME = "simulate"


class Weighting(StrEnum):
    """How n-lengths are drawn."""

    uniform = "uniform"
    pathways = "pathways"


def command(
    germline: common.GermlineFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Table to write: .tsv, .tsv.gz or .parquet.", show_default=False
        ),
    ],
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Junctions to make.")] = 101_822,
    seed: Annotated[int, typer.Option("--seed", help="Seed; the same seed gives the same junctions.")] = 0,
    n_lengths: Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to draw from.")] = "0-10",
    weighting: Annotated[
        Weighting,
        typer.Option("--weighting", help="Each n-length equally likely, or as likely as it has pathways."),
    ] = Weighting.uniform,
    largest_share: Annotated[
        float | None,
        typer.Option(
            "--largest-share", help="Share of the largest V-J pair.", show_default="3249 of 101822, as in the paper"
        ),
    ] = None,
    max_length: Annotated[int, typer.Option("--max-length", min=0, help="Longest CDR3 in nucleotides.")] = 60,
    productive: Annotated[
        bool, typer.Option("--productive", help="Only junctions in frame without stop codon.")
    ] = False,
    orf: Annotated[bool, typer.Option("--orf", help="Use ORF genes beside the functional ones.")] = False,
    d_alleles: common.DAllelesOption = common.DAlleles.first,
    max_p: common.MaxP = common.MAX_P_DEFAULT,
    overwrite: common.Overwrite = False,
) -> None:
    """Make in silico junctions: V, D and J forms and n-nucleotides drawn at random.

    Every pathway of one n-length is equally likely to be drawn; draws that are too long, that repeat one of their V-J
    pair or, with --productive, are not in frame or hold a stop codon, are drawn again. The sizes of the V-J pairs fall
    off as a power of their rank. Functional V and J genes are used, each by its first listed allele.

    Example: hpcvdj simulate -g inputs/germline/mouse_trb.tsv --productive -n 1000 --seed 1 -o mouse.tsv
    """
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.generation.simulate import Simulation, simulate
    from hpcvdj.repertoires.tables import TableWriter, table_suffix
    from hpcvdj.storage import atomic_path, require_apart

    suffix = table_suffix(output)
    require_apart(output, germline)
    plan = Simulation(
        count=number, seed=seed, n_lengths=common.parse_range("--n-lengths", n_lengths), weighting=weighting.value,
        longest=max_length,
        productive=productive, orf=orf, **({} if largest_share is None else {"largest_share": largest_share}),
    )  # fmt: skip
    table = common.load_germline(germline, max_p, d_alleles)
    pairs: dict[tuple[str, str], int] = {}
    with atomic_path(output, overwrite=overwrite) as temporary, open(temporary, "wb") as stream:
        writer = TableWriter(stream, suffix)
        for batch in simulate(table, plan):
            writer.write(batch)
            for pair in zip(batch["v_call"].to_pylist(), batch["j_call"].to_pylist(), strict=True):
                pairs[pair] = pairs.get(pair, 0) + 1
        writer.close()
    common.say(f"junctions  {number:,} over {len(pairs):,} V-J pairs, the largest with {max(pairs.values()):,}")
    common.say(f"seed       {seed}")
    common.say(f"written    {output}")
