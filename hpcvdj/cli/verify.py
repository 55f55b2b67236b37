"""`hpcvdj verify`."""

import math

import typer

from hpcvdj.cli import common, options
from hpcvdj.options import setting
from hpcvdj.recombination.germline import PaperDForms
from hpcvdj.repertoires.settings import DForms, GermlineSettings, RowSettings
from hpcvdj.runs.settings import Launch, Threads


def command(
    junctions: options.Junctions,
    germline: options.GermlineTables,
    rows: RowSettings,
    alleles: GermlineSettings,
    sample: int = setting("junctions to check, drawn at random", 20, least=1),
    max_n: int = setting("largest n-length to check", 4, least=0, most=10),
    literal_max_n: int = setting("run Algorithm 1 literally, in plain Python, up to this n-length", 1, least=0, most=4,
                                 more=True),
    seed: int = setting("seed of the sample", 0, more=True),
    d_forms: DForms = PaperDForms.name,
    threads: Threads = None,
) -> None:  # fmt: skip
    """Check every method against the reference, sequence by sequence.

    The reference is the definition in plain Python. Exits with 1 if any counter differs. Enumeration grows as 4^n:
    at --max-n 6 expect seconds per junction.

    Example: hpcvdj verify inputs/mouse_trb/small.tsv -g mouse_trb_paper --max-n 3
    """
    # Root alone computes the reference, which may take long.
    run = common.begin(Launch(threads, math.inf))
    from hpcvdj.counting.verify import sampled_problem, verify
    from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3
    from hpcvdj.repertoires.inputs import Inputs

    table = run.from_root(lambda: alleles.read(germline))
    reading = rows.reading(longest=PAPER_LONGEST_CDR3)
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
