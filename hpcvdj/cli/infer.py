"""`hpcvdj infer`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hpcvdj.cli import common, options
from hpcvdj.errors import InputError
from hpcvdj.inference.settings import InferenceSettings, RowChoice
from hpcvdj.kernels.backends import AUTO, BackendName, StrictBinding
from hpcvdj.repertoires.settings import TableSettings
from hpcvdj.runs.settings import Launch, Overwrite, Resume

if TYPE_CHECKING:
    from hpcvdj.inference.tables import Inferred


def command(
    junctions: options.Tables,
    output: Annotated[Path, options.output("FOLDER", "Folder of the model to write.")],
    choice: RowChoice,
    plan: InferenceSettings,
    opening: TableSettings,
    launch: Launch,
    model: options.OptionalModel = None,
    germline: options.OptionalGermline = None,
    backend: BackendName = AUTO,
    strict_binding: StrictBinding = False,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Infer a recombination model from junctions: gene usage, deletions and insertions of a cohort or a species.

    Takes the nucleotide junctions of rearrangements that selection has not seen: by default those out of frame, each
    once per repertoire. Each table is a repertoire unless it has a column repertoire_id.

    Starts from a model (-m), or from a germline table alone (-g), for a locus that has no model yet. Alleles that are
    not functional take part. Writes a folder in IGoR's format, which hpcvdj pgen -m, OLGA, IGoR and others read, with
    inference.json (where it comes from), iterations.tsv (each iteration's log-likelihood), standard_errors.tsv (with
    --bootstrap) and, if there are such rows, unexplained.tsv (rows that the model cannot make).

    If fewer than a quarter of the rows are possible at the start, it is of another species or locus: that is an error.

    With fewer than 3,000 rows, only gene usage is inferred, unless --only names other parameters or the start is
    uniform.

    The model is the same for any number of ranks and threads. Every iteration is saved: --resume continues a run that
    was stopped.

    Example: hpcvdj infer cohort/ -m human_trb -o my_model
    """
    run = common.begin(launch, shared=True, files=junctions)
    from hpcvdj.inference.tables import infer_tables, reading_for
    from hpcvdj.recombination.germline import read_germline
    from hpcvdj.recombination.igor import load_model
    from hpcvdj.repertoires.inputs import tables_of

    plan = replace(plan, rows=choice)

    def loaded() -> Any:
        if (model is None) == (germline is None):
            raise InputError("give a model to start from (-m) or a germline table (-g), one of the two")
        return (
            load_model(model, pseudogenes=True) if model is not None else read_germline(germline or [], d_alleles="all")
        )

    with run.request:
        reference = run.from_root(loaded)
        opened = run.from_root(opening.opening)
        inputs = run.from_root(lambda: tables_of(junctions, replace(reading_for(plan), opening=opened)))
        target = run.to(output, resume=resume, overwrite=overwrite)
        inferred = infer_tables(inputs, reference, plan, target, backend, strict_binding=strict_binding)
    if inferred is not None:
        _report(inferred, output, reference.name)


def _report(inferred: "Inferred", output: Path, start: str) -> None:
    fit, left_out = inferred.fit, [f"{number:,} {reason}" for reason, number in inferred.left_out.items() if number]
    common.say(
        f"rows       {inferred.rows_read:,} read, {inferred.excluded:,} excluded"
        + "".join(f", {text}" for text in left_out)
    )
    common.say(f"inferred   from {fit.counted[0]:,} rows, {fit.counted[1]:,} held out")
    best, first = fit.best, fit.trace[0]
    gain = best.log_likelihood - first.log_likelihood
    held = f"; held out {best.held_out:.5f} ({best.held_out - first.held_out:+.5f})" if fit.counted[1] else ""
    common.say(f"likelihood {best.log_likelihood:.5f} nats per row ({gain:+.5f} since iteration 1){held}")
    if fit.gain is not None:
        nats, lost, gained = f"{fit.gain.nats:.3f} ± {fit.gain.error:.3f} nats", fit.gain.lost, fit.gain.gained
        only = f"; {lost:,} only {start} makes, {gained:,} only the result" if lost or gained else ""
        common.say(f"gain       {nats} a held-out junction that both make, over {start}{only}")
    common.say(f"iteration  {best.iteration} of {len(fit.trace)}")
    if first.error_rate:
        common.say(f"error rate {fit.model.error_rate:.3g} per base of V, D and J")
    rows = sum(fit.counted)
    if inferred.unexplained:
        share = 100 * inferred.unexplained / rows
        common.say(
            f"unexplained {inferred.unexplained:,} rows ({share:.1f} %) have probability 0: {output}/unexplained.tsv"
        )
    for warning in fit.warnings:
        common.say(f"warning    {warning}")
    common.say(f"model      {output}")
