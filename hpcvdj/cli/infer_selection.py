"""`hpcvdj infer-selection`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hpcvdj.chance.settings import Checks, Force, KeepMisfits
from hpcvdj.cli import common, options
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.kernels.backends import AUTO, BackendName
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.ranks import log_if_serial
from hpcvdj.runs.settings import Launch, Overwrite

if TYPE_CHECKING:
    from hpcvdj.inference.selection_tables import InferredSelection


def command(
    junctions: options.Tables,
    model: options.ModelName,
    output: Annotated[Path, options.valued("--output -o", "FOLDER", "Folder to write: the model with its factor.")],
    plan: SelectionSettings,
    opening: TableSettings,
    launch: Launch,
    keep_misfits: KeepMisfits = False,
    force: Force = False,
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
    run = common.begin(launch)
    log_if_serial(run.world)
    from hpcvdj.inference.selection_tables import infer_selection_of_tables

    checks = Checks(keep_misfits=keep_misfits, force=force)
    with run.request:
        opened = run.from_root(opening.opening)
        target = run.to(output, overwrite=overwrite)
        loaded = run.from_root(lambda: options.used_model(model))
        found = infer_selection_of_tables(junctions, loaded, plan, target, backend, opened, checks)
    if found is not None:
        _report(found, output)


def _report(found: "InferredSelection", output: Path) -> None:
    fit = found.fit
    left_out = "".join(f", {number:,} {reason}" for reason, number in fit.left_out.items() if number)
    common.say(f"rows       {found.rows_read:,} read, {found.excluded:,} excluded{left_out}")
    common.say(
        f"inferred   {len(fit.selection.weights):,} weights from {fit.rows[0]:,} distinct junctions of "
        f"{fit.individuals:,} individual(s), {fit.rows[1]:,} held out"
    )
    common.say(f"held out   gain {fit.gain:.4f} ± {fit.error:.4f} nats per junction; AUC {fit.auc:.4f}")
    for warning in fit.warnings:
        common.say(f"warning    {warning}")
    common.say(f"model      {output}")
