"""`hpcvdj simulate`."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from hpcvdj.cli import common, options


def command(
    germline: options.GermlineFile,
    output: options.OutputTable,
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="Junctions to make.")] = 101_822,
    seed: Annotated[int, typer.Option("--seed", help="Seed; the same seed gives the same junctions.")] = 0,
    n_lengths: Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to draw from.")] = "0-10",
    weighting: Annotated[
        Literal["uniform", "pathways"],
        typer.Option("--weighting", help="Each n-length equally likely, or as likely as it has pathways."),
    ] = "uniform",
    largest_share: Annotated[
        float,
        typer.Option(
            "--largest-share", help="Share of the largest V-J pair.", show_default="3249 of 101822, as in the paper"
        ),
    ] = 3_249 / 101_822,
    max_length: Annotated[int, typer.Option("--max-length", min=0, help="Longest CDR3 in nucleotides.")] = 60,
    productive: Annotated[
        bool, typer.Option("--productive", help="Only junctions in frame without stop codon.")
    ] = False,
    orf: Annotated[bool, typer.Option("--orf", help="Use ORF genes beside the functional ones.")] = False,
    d_alleles: options.DAllelesOption = "first",
    max_p: options.MaxP = 4,
    overwrite: options.Overwrite = False,
) -> None:
    """Make in silico junctions: V, D and J forms and n-nucleotides drawn at random.

    Every pathway of one n-length is equally likely to be drawn. Draws that are too long, that repeat a junction of
    their V-J pair or, with --productive, that are out of frame or have a stop codon, are drawn again. The sizes of the
    V-J pairs decrease as a power of their rank. Functional V and J genes are used, each by its first listed allele.

    Example: hpcvdj simulate -g inputs/germline/mouse_trb.tsv --productive -n 1000 --seed 1 -o mouse.tsv
    """
    if not common.begin().is_root:
        return
    from hpcvdj.generation.simulate import Simulation, simulate
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.repertoires.tables import write_table

    plan = Simulation(
        count=number, seed=seed, n_lengths=options.parse_range("--n-lengths", n_lengths), weighting=weighting,
        largest_share=largest_share, longest=max_length, productive=productive, orf=orf,
    )  # fmt: skip
    table = read_germline(germline, max_p=max_p, d_alleles=d_alleles)
    pairs: Counter[tuple[str, str]] = Counter()

    def batches() -> Iterator[Any]:
        for batch in simulate(table, plan):
            pairs.update(zip(batch["v_call"].to_pylist(), batch["j_call"].to_pylist(), strict=True))
            yield batch

    write_table(output, batches(), overwrite=overwrite)
    common.say(f"junctions  {number:,} over {len(pairs):,} V-J pairs, the largest with {max(pairs.values()):,}")
    common.say(f"seed       {seed}")
    common.say(f"written    {output}")
