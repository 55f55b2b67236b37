"""What the commands of the studies share: their folder, reading the junctions, writing the raw rows."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcvdj.cli import common
from hpcvdj.runs.ranks import World

if TYPE_CHECKING:
    from hpcvdj.kernels.pathways.methods import Problem

StudyFolder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the study.", show_default=False)
]
Folder = Annotated[Path, typer.Argument(help="Folder of the study.", metavar="DIR", show_default=False)]


def load_problem(
    world: World, junctions: Path, germline: Path, max_n: int, sample: int | None, method: str
) -> tuple[Problem, int]:
    """The junctions that `method` takes, or a random sample of them, on every rank; and how many there are in all."""
    from hpcvdj.counting.verify import sample as draw
    from hpcvdj.kernels.pathways.methods import Problem, method_named
    from hpcvdj.runs.ranks import root_does
    from hpcvdj.repertoires.junctions import Repertoire, read_repertoire
    from hpcvdj.repertoires.sharing import share

    table = common.load_germline(germline)
    whole = 0

    def read() -> Repertoire:
        nonlocal whole
        repertoire = read_repertoire(junctions, table, longest=method_named(method).longest_cdr3)
        whole = len(repertoire)
        return repertoire if sample is None else draw(repertoire, sample, 0, repertoire.longest)

    repertoire = share(world, root_does(world, read))
    return Problem(repertoire, table, max_n), world.broadcast(whole)


def write_study(world: World, rows: Sequence[Any], folder: Path, name: str, study: str) -> None:
    """Write the raw rows with the study they belong to and the command behind them, and say where."""
    from hpcvdj.studies.measuring import write

    ranks = f"mpiexec -n {world.size} " if world.size > 1 else ""
    facts = {
        "study": study,
        "command": ranks + shlex.join(["hpcvdj", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "mpi": world.library,
    }
    common.say(f"written    {write(rows, folder, name, facts)}")
