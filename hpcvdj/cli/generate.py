"""`hpcvdj generate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcvdj.cli import common, options
from hpcvdj.cli.drawing import write_drawn
from hpcvdj.storage.files import require_distinct

if TYPE_CHECKING:
    from hpcvdj.cohorts.cohort import Cohort
    from hpcvdj.recombination.models import Model
    from hpcvdj.repertoires.inputs import Inputs
    from hpcvdj.runs.run import Run


def command(
    model: options.ModelName,
    output: options.OutputTable,
    number: options.Number = 100_000,
    seed: options.Seed = 0,
    productive: Annotated[
        bool,
        typer.Option(
            "--productive", help="Only junctions in frame, without stop codon, from Cys 104 to Phe, Trp or Val 118."
        ),
    ] = False,
    scenarios: Annotated[
        bool, typer.Option("--scenarios", help="Also write how each junction was made: trims, P- and n-nucleotides.")
    ] = False,
    selection: Annotated[
        bool,
        typer.Option(
            "--selection",
            help="Only productive junctions, in proportion to the model's selection factor (hpcvdj infer-selection).",
        ),
    ] = False,
    like: Annotated[
        list[Path] | None,
        options.option(
            "--like",
            "TABLE",
            "Table, or folder of tables, of a cohort: draw one like it, with as many productive recombinations of each "
            "individual, and its read counts. May be repeated. -n does not matter.",
        ),
    ] = None,
    individual: options.IndividualColumn = None,
    joint: options.Joint = False,
    force: options.Force = False,
    backend: options.BackendOption = "auto",
    threads: options.Threads = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Draw sequences from a recombination model: a repertoire as V(D)J recombination makes it by chance.

    Writes AIRR rows with the alleles, the junction, its amino acids and whether it is productive. How often a junction
    is drawn is its generation probability (`hpcvdj pgen --genes any`), divided by the probability that a recombination
    makes a junction: alleles that are not functional in the model, and segments deleted to nothing, are never drawn.
    With --productive and --selection, rows keep the numbers that they were drawn with.

    --like TABLE shows what chance would make of a cohort: `hpcvdj sharing` and the others find nothing in it.

    Sequence number i depends on the model, the seed and i alone: the same seed gives the same rows for any number of
    rows, ranks and threads, on CPU cores and GPUs.

    Example: hpcvdj generate -m mouse_trb -n 10000 --seed 1 --productive -o mouse.tsv
    """
    run = common.begin(threads)
    from hpcvdj.generation.generate import Generation, generate

    plan = run.from_root(lambda: Generation(number, seed, productive, scenarios, selection))
    loaded = run.from_root(lambda: options.used_model(model))
    if joint:
        loaded = run.from_root(loaded.with_joint_choice)
    if like:
        from hpcvdj.cohorts.like import cohort_like

        with run.request:
            inputs, cohort = _cohort(like, loaded, individual, run, force=force)
            run.on_root(lambda: require_distinct(output, *inputs.files))
        batches = cohort_like(cohort, loaded, plan, run, backend)
    else:
        batches = generate(loaded, plan, run.bind(backend, sharing_pays=True), run)
    write_drawn(run, batches, output, seed, overwrite=overwrite)


def _cohort(
    tables: list[Path], model: "Model", individual: str | None, run: "Run", *, force: bool
) -> "tuple[Inputs, Cohort | None]":
    """The tables, and root's cohort of them."""
    from hpcvdj.chance.check import Checks
    from hpcvdj.cohorts.files import Naming, cohort_of_files

    inputs, cohort, _ = cohort_of_files(tables, model, Naming(individual), Checks(force=force), run)
    return inputs, cohort
