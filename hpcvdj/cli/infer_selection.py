"""`hpcvdj infer-selection`."""

from pathlib import Path
from typing import Annotated

from hpcvdj.chance.settings import Checks, Force, KeepMisfits, MissingAllelesOption
from hpcvdj.cli import asking, common, options
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.kernels.backends import AUTO, BackendName
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.settings import Launch, Overwrite


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: Annotated[Path, options.output("FOLDER", "Folder to write: the model with its factor.")],
    plan: SelectionSettings,
    opening: TableSettings,
    launch: Launch,
    keep_misfits: KeepMisfits = False,
    force: Force = False,
    missing_alleles: MissingAllelesOption = "exclude",
    backend: BackendName = AUTO,
    overwrite: Overwrite = False,
) -> None:
    """Infer the selection factor Q of a model: by how much selection makes junctions more common than recombination.

    Takes the distinct productive junctions of each individual, with V and J calls (in nucleotides, or in amino acids of
    tables that have only these), and compares them with those that individuals of the same sizes would have without
    selection: which genes, lengths and residues are more common? Each table is one individual, or, if it has the column
    repertoire_id, each of these. A tenth of the junctions is held out, to say how much of real repertoires the factor
    explains.

    Writes a copy of the model's folder with the factor in selection.tsv, which other programs ignore. hpcvdj enrich
    takes a model's factor into account, hpcvdj pgen and hpcvdj generate with --selection.

    The factor is the same for any order of the rows, and any number of ranks and threads.

    Example: hpcvdj infer-selection cohort/ -m my_model -o my_model_selected
    """
    run = common.begin(launch, shared=True)
    from hpcvdj.inference.selection_question import ModelOutput, SelectionQuestion

    checks = Checks(keep_misfits=keep_misfits, force=force, missing_alleles=missing_alleles)
    asked = asking.QuestionOptions.of({**vars(opening), **vars(checks), **vars(launch)})
    question = SelectionQuestion(plan, backend)
    asking.answer(run, question, junctions, model, asked, ModelOutput(output, overwrite))
