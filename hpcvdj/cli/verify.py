"""`hpcvdj verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common

if TYPE_CHECKING:
    from hpcvdj.counting.verify import Check

NAME = "verify"


def command(
    junctions: common.Junctions,
    germline: common.GermlineFile,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Junctions to check, drawn at random.")] = 20,
    max_n: Annotated[int, typer.Option("--max-n", min=0, max=10, help="Largest n-length to check.")] = 4,
    literal_max_n: Annotated[
        int,
        typer.Option(
            "--literal-max-n", min=0, max=4, help="Run Algorithm 1 literally, in plain Python, up to this n-length."
        ),
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sample.")] = 0,
    d_forms: common.DFormsOption = common.DForms.paper,
    d_alleles: common.DAllelesOption = common.DAlleles.first,
    max_p: common.MaxP = common.MAX_P_DEFAULT,
    sequence_field: common.FieldOption = common.SequenceField.junction,
    ambiguous_calls: common.AmbiguousOption = common.Policy.exclude,
    unlisted_alleles: common.UnlistedOption = common.Policy.exclude,
    threads: common.Threads = None,
) -> None:
    """Check every method against the reference, sequence by sequence.

    The reference is the definition in plain Python. Exits with 1 if any counter differs. Enumeration grows as 4^n:
    at --max-n 6 expect seconds per junction.

    Example: hpcvdj verify inputs/mouse_trb/small.tsv -g inputs/germline/mouse_trb_paper.tsv --max-n 3
    """
    world = common.begin(threads)
    from hpcvdj.counting.verify import sample as draw
    from hpcvdj.counting.verify import verify
    from hpcvdj.kernels.pathways.methods import Problem
    from hpcvdj.runs.ranks import root_does
    from hpcvdj.repertoires.junctions import PAPER_LONGEST_CDR3, CallPolicy, Repertoire, read_repertoire
    from hpcvdj.repertoires.sharing import share

    def read() -> Repertoire:
        table = common.load_germline(germline, max_p, d_alleles)
        calls = CallPolicy(ambiguous_calls.value, unlisted_alleles.value)
        whole = read_repertoire(junctions, table, sequence_field=sequence_field.value, calls=calls)
        return draw(whole, sample, seed, PAPER_LONGEST_CDR3)

    repertoire = share(world, root_does(world, read))
    problem = Problem(repertoire, common.load_germline(germline, max_p, d_alleles), max_n, d_forms.value)
    checks = verify(problem, world, literal_max_n=literal_max_n)
    if world.is_root:
        _report(checks, len(repertoire))
    if world.broadcast(any(check.differences for check in checks)):
        raise typer.Exit(1)


def _report(checks: list[Check], sequences: int) -> None:
    common.say(f"{sequences:,} junctions; reference: the definition in plain Python")
    for check in checks:
        lengths = f"m = 0-{check.max_n}"
        common.say(f"  {check.name:24} {lengths:10} {check.counters:9,} counters  {check.differences:,} differences")
        if check.first:
            common.say(f"    first: {check.first}")
