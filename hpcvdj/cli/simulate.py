"""`hpcvdj simulate`."""

from typing import Annotated, Literal

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.drawing import write_drawn
from hpcvdj.cli.helping import MORE


def command(
    germline: options.GermlineTables,
    output: options.OutputTable,
    number: options.Number = 101_822,
    seed: options.Seed = 0,
    n_lengths: Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to draw from.")] = "0-10",
    weighting: Annotated[
        Literal["uniform", "pathways"],
        typer.Option(
            "--weighting", help="Each n-length equally likely, or as likely as it has pathways.", rich_help_panel=MORE
        ),
    ] = "uniform",
    largest_share: Annotated[
        float,
        typer.Option(
            "--largest-share",
            help="Share of the largest V-J pair.",
            show_default="3249 of 101822, as in the paper",
            rich_help_panel=MORE,
        ),
    ] = 3_249 / 101_822,
    max_length: Annotated[
        int, typer.Option("--max-length", min=0, help="Longest CDR3 in nucleotides.", rich_help_panel=MORE)
    ] = 60,
    productive: Annotated[
        bool, typer.Option("--productive", help="Only junctions in frame without stop codon.")
    ] = False,
    orf: Annotated[
        bool, typer.Option("--orf", help="Use ORF genes beside the functional ones.", rich_help_panel=MORE)
    ] = False,
    d_alleles: options.DAllelesOption = "first",
    max_p: options.MaxP = 4,
    overwrite: options.Overwrite = False,
) -> None:
    """Make in silico junctions: V, D and J forms and n-nucleotides drawn at random.

    Every pathway of one n-length is equally likely to be drawn. Draws that are too long, that repeat a junction of
    their V-J pair or, with --productive, that are out of frame or have a stop codon, are drawn again. The sizes of the
    V-J pairs decrease as a power of their rank. Functional V and J genes are used, each by its first listed allele.
    `hpcvdj generate` draws from a recombination model instead, in which pathways are not equally likely.

    Example: hpcvdj simulate -g mouse_trb --productive -n 1000 --seed 1 -o mouse.tsv
    """
    run = common.begin()
    if not run.is_root:
        return
    from hpcvdj.generation.simulate import Simulation, simulate
    from hpcvdj.recombination.germline import read_germline

    plan = Simulation(
        count=number, seed=seed, n_lengths=options.parse_range("--n-lengths", n_lengths), weighting=weighting,
        largest_share=largest_share, max_length=max_length, productive=productive, orf=orf,
    )  # fmt: skip
    table = read_germline(germline, max_p=max_p, d_alleles=d_alleles)
    write_drawn(run, simulate(table, plan), output, seed, overwrite=overwrite)
