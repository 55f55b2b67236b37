"""`hpcvdj scaling`."""

from __future__ import annotations

from typing import Annotated

import typer

from hpcvdj.cli import common
from hpcvdj.cli.count import BackendName, MethodName
from hpcvdj.cli.study_files import Folder, StudyFolder, load_problem, write_study
from hpcvdj.runs.partition import THREADS_PER_BLOCK

NAME = "scaling"

app = typer.Typer(
    help="Strong-scaling study: measure one number of ranks at a time, then make tables and a plot of all.",
    no_args_is_help=True,
)


@app.command()
def measure(
    junctions: common.Junctions,
    germline: common.GermlineFile,
    output: StudyFolder,
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
    strict_binding: common.StrictBinding = False,
    threads: common.Threads = None,
) -> None:
    """Measure with the ranks that this launch has.

    Writes DIR/raw-METHOD-RANKS.csv. Example: for n in 1 2 4 8; do mpiexec -n $n hpcvdj scaling measure … ; done
    """
    world = common.begin(threads)
    from hpcvdj.counting.config import Config
    from hpcvdj.studies.measuring import measure as run

    lengths = common.parse_range("--n-lengths", n_lengths)
    problem, whole = load_problem(world, junctions, germline, max(lengths), sample, method.value)
    config = Config(
        max(lengths), method.value, backend.value, threads_per_block=threads_per_block, strict_binding=strict_binding
    )
    rows = run(problem, config, world, lengths, repeats, whole)
    if world.is_root:
        name = f"{method.value}-{world.size}" + (f"-{label}" if label else "")
        write_study(world, rows, output, name, "scaling")
        for row in rows:
            common.say(f"{row.method} m = {row.m}, {row.ranks} rank(s), repeat {row.repeat}: {row.wall:.4f} s")


@app.command()
def render(folder: Folder) -> None:
    """Make DIR/README.md and DIR/scaling.png from the raw rows; needs no GPU."""
    world = common.begin()
    if not world.is_root:
        return
    from hpcvdj.studies import scaling

    scaling.render(folder)
    common.say(f"written    {folder / 'README.md'}, {folder / 'scaling.png'}")
