"""`hpcvdj generate`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.chance.settings import Checks, Force
from hpcvdj.cli import common, options
from hpcvdj.cli.drawing import report_drawn, write_drawn
from hpcvdj.cohorts.settings import IndividualColumn, Naming, require_like
from hpcvdj.errors import InputError, option
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.kernels.backends import AUTO, BackendName
from hpcvdj.repertoires.settings import Joint
from hpcvdj.runs.settings import Launch, Overwrite, Resume, Threads
from hpcvdj.storage.files import require_distinct


def command(
    model: options.ModelName,
    output: options.OutputTable,
    plan: GenerationSettings,
    like: Annotated[
        list[Path] | None,
        options.valued(
            "--like",
            "TABLE",
            "Table, or folder of tables, of a cohort: draw one like it, with as many productive recombinations of each "
            "individual, and its read counts. May be repeated. -n does not matter.",
        ),
    ] = None,
    individual: IndividualColumn = None,
    joint: Joint = False,
    force: Force = False,
    backend: BackendName = AUTO,
    threads: Threads = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
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
    run = common.begin(Launch(threads))
    from hpcvdj.api.tables import used_model
    from hpcvdj.generation.generate import generate_table

    require_like(individual, like)
    if like and resume:
        raise InputError(f"{option('resume', True)}: a cohort like another is drawn at once; leave it out")
    loaded = run.from_root(lambda: used_model(model, joint=joint))
    if like:
        from hpcvdj.chance.question import read_rows
        from hpcvdj.cohorts.like import LikeQuestion, cohort_like
        from hpcvdj.repertoires.folders import tables_in

        with run.request:
            question = LikeQuestion(Naming(individual=individual))
            tables = run.from_root(lambda: tables_in(like, question.opening()))
            rows = read_rows(question, tables, loaded, Checks(force=force, keep_misfits=True), run)
            cohort = question.cohort_on_root(rows, loaded, run)
            run.on_root(lambda: require_distinct(output, *rows.inputs.files))
        write_drawn(run, cohort_like(cohort, loaded, plan, run, backend), output, plan.seed, overwrite=overwrite)
        return
    with run.request:
        target = run.to(output, resume=resume, overwrite=overwrite)
        pairs = generate_table(loaded, plan, run.bind(backend, sharing_pays=True), target)
    if run.is_root:
        report_drawn(pairs, output, plan.seed)
