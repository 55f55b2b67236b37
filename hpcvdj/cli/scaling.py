"""`hpcvdj scaling`."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from hpcvdj.cli import common
from hpcvdj.cli.count import BackendName, MethodName
from hpcvdj.errors import InputError
from hpcvdj.partition import THREADS_PER_BLOCK

NAME = "scaling"

app = typer.Typer(
    help="Strong-scaling study: measure one number of ranks at a time, then make tables and a plot of all.",
    no_args_is_help=True,
)


@app.command()
def measure(
    junctions: common.Junctions,
    germline: common.GermlineFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the study.", show_default=False)
    ],
    n_lengths: Annotated[str, typer.Option("--n-lengths", metavar="A-B", help="n-lengths to measure.")] = "0-6",
    method: Annotated[MethodName, typer.Option("--method", help="What to measure.")] = MethodName.bitwise,
    backend: Annotated[BackendName, typer.Option("--backend", help="Where to count.")] = BackendName.auto,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Measured passes over each n-length.")] = 3,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="A random sample of so many sequences.", show_default="all")
    ] = None,
    threads_per_block: Annotated[
        int, typer.Option("--threads-per-block", min=1, max=1024, help="Threads in a block.")
    ] = THREADS_PER_BLOCK,
    label: Annotated[str, typer.Option("--label", help="Added to the name of the raw file.")] = "",
    threads: common.Threads = None,
) -> None:
    """Measure with the ranks that this launch has.

    Writes DIR/raw-METHOD-RANKS.csv. Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj scaling measure … ; done
    """
    world = common.begin(threads)
    from hpcvdj.methods import Problem, method_named
    from hpcvdj.repertoire import Repertoire, read_repertoire
    from hpcvdj.run import Config, root_does, share
    from hpcvdj.studies import scaling
    from hpcvdj.verify import sample as draw

    table = common.load_germline(germline)
    lengths = common.parse_range("--n-lengths", n_lengths)
    whole = 0

    def read() -> Repertoire:
        nonlocal whole
        repertoire = read_repertoire(junctions, table, longest=method_named(method.value).longest_cdr3)
        whole = len(repertoire)
        return repertoire if sample is None else draw(repertoire, sample, 0, repertoire.longest)

    repertoire = share(world, root_does(world, read))
    problem = Problem(repertoire, table, max(lengths))
    config = Config(max(lengths), method.value, backend.value, threads_per_block=threads_per_block)
    rows = scaling.measure(problem, config, world, lengths, repeats, world.broadcast(whole))
    if world.is_root:
        name = f"{method.value}-{world.size}" + (f"-{label}" if label else "")
        ranks = f"mpiexec -n {world.size} " if world.size > 1 else ""
        facts = {
            "command": ranks + shlex.join(["hpcvdj", *sys.argv[1:]]),
            "date": datetime.now(UTC).isoformat(timespec="minutes"),
            "mpi": world.library,
        }
        path = scaling.write(rows, output, name, facts)
        for row in rows:
            common.say(f"{row.method} m = {row.m}, {row.ranks} rank(s), repeat {row.repeat}: {row.wall:.4f} s")
        common.say(f"written    {path}")


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(help="Folder of the study.", metavar="DIR", show_default=False)],
) -> None:
    """Make DIR/README.md and DIR/scaling.png from the raw rows; needs no GPU."""
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.studies import scaling

    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; `hpcvdj scaling measure` makes one")
    scaling.render(folder)
    common.say(f"written    {folder / 'README.md'}, {folder / 'scaling.png'}")
