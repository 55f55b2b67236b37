"""`hpcvdj analyze`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.analysis.settings import AnalysisSettings, CohortSettings
from hpcvdj.annotation.settings import DatabaseSettings
from hpcvdj.cli import asking, common, options
from hpcvdj.errors import InputError
from hpcvdj.runs.settings import Overwrite, Resume

if TYPE_CHECKING:
    from hpcvdj.analysis.steps import Outcome


def command(
    tables: options.Tables,
    model: options.ModelName,
    output: Annotated[Path, options.output("FOLDER", "Folder to write to, which is made.")],
    cohort: CohortSettings,
    settings: AnalysisSettings,
    of: DatabaseSettings,
    asked: asking.QuestionOptions,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Do all that hpcvdj can do with a cohort, one step after another, and write the page about it.

    Each step is a command of its own, with its defaults, and writes where this table says; a step that the tables do
    not allow is left out, with the reason. Later steps take the model that infer and infer-selection made.

    contamination.tsv (samples that contaminated each other), model/ (infer), model_selected/ (infer-selection),
    pgen/ (a table of each individual), shared.tsv (sharing), associated.tsv (associate, with --case, --hla or --trend),
    enriched/, annotated/ (with --database), report.html; analysis.json says what was done.

    --resume goes on after a stop, and does what was not asked for before. A step that is refused does not keep the
    others from being done; the exit code is 2 then.

    Example: hpcvdj analyze donors/ -m human_trb --metadata donors.tsv --case disease=MS -o analysis
    """
    run = common.begin(asked, shared=True)
    from hpcvdj.analysis.analyze import analyze
    from hpcvdj.analysis.steps import Job
    from hpcvdj.api.tables import used_model
    from hpcvdj.repertoires.folders import tables_in
    from hpcvdj.repertoires.inputs import Inputs

    # Several steps read the same tables.
    with run.request, common.saying_once():
        opened = cohort.opening(run.from_root(asked.opening))
        loaded = run.from_root(lambda: used_model(model))
        inputs = Inputs(tuple(run.from_root(lambda: tables_in(tables, opened))))
        job = Job(inputs, loaded, cohort, of, settings, asked.checks, output, run.to(output, resume=resume,
                  overwrite=overwrite))  # fmt: skip
        done = analyze(job, _tell)
        refused = run.from_root(lambda: [] if done is None else [
            outcome.step if outcome.state == "refused" else f"{outcome.step} (some tables)" for outcome in done.refused
        ])  # fmt: skip
    if done is not None:
        common.say(f"written         {output}")
    if refused:
        text = f"{len(refused)} step(s) were refused: {', '.join(refused)}; {output} has the others"
        raise InputError(text).everywhere()


def _tell(outcome: "Outcome") -> None:
    not_done = [("", f"{outcome.state}: {outcome.reason}")] if outcome.reason and not outcome.said else []
    first, *others = not_done or outcome.said or [("", "done")]
    common.say(f"{outcome.step:<15} {' '.join(filter(None, first))}")
    for word, text in others:
        common.say(f"{'':<15} {word:<10} {text}" if word else f"{'':<26} {text}")
