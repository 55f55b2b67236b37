"""What the commands of the studies share: their options, measuring junctions, writing raw rows and pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcvdj.cli import common
from hpcvdj.errors import InputError

if TYPE_CHECKING:
    from hpcvdj.recombination.repertoire import Problem
    from hpcvdj.runs.run import Run

StudyFolder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the study.", show_default=False)
]
Folder = Annotated[Path, typer.Argument(help="Folder of the study.", metavar="DIR", show_default=False)]
Lengths = Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to measure.")]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Measured repeats of each.")]
Sample = Annotated[
    int | None, typer.Option("--sample", min=1, help="Measure a random sample of this size.", show_default="all")
]
Label = Annotated[str, typer.Option("--label", help="Added to the name of the raw file.")]


def problem_of(
    run: Run, junctions: Path, germline: Path, max_n: int = 0, sample: int | None = None, longest: int | None = None
) -> tuple[Problem, int]:
    """The junctions of a table, or a random sample of them, on every rank, and how many there are in all.

    longest  nucleotides of the longest CDR3; by default the paper's
    """
    from hpcvdj.counting.verify import sampled_problem
    from hpcvdj.recombination.germline import PaperDForms, read_germline
    from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.repertoires.junctions import Reading

    table = run.from_root(lambda: read_germline(germline))
    inputs = run.from_root(lambda: Inputs.of_file(junctions, Reading(longest=longest or PAPER_LONGEST_CDR3)))
    return sampled_problem(run, inputs, table, max_n, sample, 0, PaperDForms.name)


def begin_alone(name: str, threads: int | None) -> Run:
    """Start a study of one process; InputError, on every rank, if there are more."""
    run = common.begin(threads)

    def require_one() -> None:
        if run.ranks > 1:
            raise InputError(f"study {name} measures one process; start it without mpiexec")

    run.on_root(require_one)
    return run


@contextmanager
def recording(run: Run, study: str, folder: Path, name: str, label: str = "") -> Iterator[list[Any]]:
    """Yields a list for raw rows; when the block ends, root writes them to raw-NAME-LABEL.csv in the study's folder."""
    from hpcvdj.studies.rows import launch_facts, write_rows

    facts = run.on_root(lambda: launch_facts(study, ["hpcvdj", *sys.argv[1:]], run))
    rows: list[Any] = []
    yield rows
    path = folder / f"raw-{'-'.join(filter(None, (name, label)))}.csv"

    def write() -> None:
        write_rows(path, facts or {}, rows)
        common.say(f"written    {path}")

    run.on_root(write)


def render(folder: Folder) -> None:
    """Make DIR/README.md and the plots of a study from its raw rows; needs no GPU."""
    run = common.begin()
    if run.is_root:
        from hpcvdj.studies import pages

        pages.render(folder)
        common.say(f"written    {folder / pages.PAGE}")
