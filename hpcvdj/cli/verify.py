"""`hpcvdj verify`."""

import math
from typing import Annotated

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.helping import MORE


def command(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Junctions to check, drawn at random.")] = 20,
    max_n: Annotated[int, typer.Option("--max-n", min=0, max=10, help="Largest n-length to check.")] = 4,
    literal_max_n: Annotated[
        int,
        typer.Option(
            "--literal-max-n",
            min=0,
            max=4,
            help="Run Algorithm 1 literally, in plain Python, up to this n-length.",
            rich_help_panel=MORE,
        ),
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sample.", rich_help_panel=MORE)] = 0,
    d_forms: options.DForms = "paper",
    d_alleles: options.DAllelesOption = "first",
    max_p: options.MaxP = 4,
    sequence_field: options.Field = "junction",
    ambiguous_calls: options.AmbiguousCalls = "exclude",
    unlisted_alleles: options.UnlistedAlleles = "exclude",
    threads: options.Threads = None,
) -> None:
    """Check every method against the reference, sequence by sequence.

    The reference is the definition in plain Python. Exits with 1 if any counter differs. Enumeration grows as 4^n:
    at --max-n 6 expect seconds per junction.

    Example: hpcvdj verify inputs/mouse_trb/small.tsv -g mouse_trb_paper --max-n 3
    """
    # Root alone computes the reference, which may take long.
    run = common.begin(threads, patience=math.inf)
    from hpcvdj.counting.verify import sampled_problem, verify
    from hpcvdj.recombination.calls import CallPolicy
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.reading import Reading

    table = run.from_root(lambda: read_germline(germline, max_p=max_p, d_alleles=d_alleles))
    reading = Reading(sequence_field, CallPolicy(ambiguous_calls, unlisted_alleles), longest=PAPER_LONGEST_CDR3)
    inputs = run.from_root(lambda: Inputs.of_file(junctions, reading))
    problem, _ = sampled_problem(run, inputs, table, max_n, sample, seed, d_forms)
    checks = verify(problem, run, literal_max_n=literal_max_n)
    if run.is_root:
        common.answer(f"{len(problem.repertoire):,} junctions; reference: the definition in plain Python")
    for check in checks:
        lengths = f"m = 0-{check.max_n}"
        common.answer(f"  {check.name:24} {lengths:10} {check.counters:9,} counters  {check.differences:,} differences")
        if check.first:
            common.answer(f"    first: {check.first}")
    if run.from_root(lambda: any(check.differences for check in checks)):
        raise typer.Exit(1)
