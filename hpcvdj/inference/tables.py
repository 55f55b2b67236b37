"""The work of `hpcvdj infer`: from tables to the folder of an inferred model."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import hpcvdj
from hpcvdj.chance.check import check_calls
from hpcvdj.chance.dealing import OwnTables
from hpcvdj.chance.model_fit import UNCHECKED, ModelFit
from hpcvdj.errors import InputError, TooFewError, log, option
from hpcvdj.inference.folder import fit_facts, named, raise_if_inferred, write_folder
from hpcvdj.inference.infer import Fit, held_out, infer
from hpcvdj.inference.rows import ChosenRows, choose
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.inference.start import from_germline, with_anchors
from hpcvdj.kernels.backends import Backend, import_backend_ahead
from hpcvdj.kernels.inference.layout import LEAST
from hpcvdj.kernels.inference.method import ExpectationWithErrors, InferenceProblem
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.germline import Germline
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import LONGEST_CDR3
from hpcvdj.repertoires.genes import kinds_of
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.reading import Reading
from hpcvdj.repertoires.species import warn_of_rows
from hpcvdj.repertoires.tally import Tally
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.folders import exclusive_folder, require_replaceable
from hpcvdj.values.compute import count_in_memory

SUFFIX = ".inference"
"""The suffix of the folder in which an unfinished run keeps its state."""


@dataclass(frozen=True)
class Inferred:
    """The result of a run, on root.

    fit          the model, and how it was inferred
    rows_read    the number of data rows
    excluded     the number of rows that could not be read
    left_out     the number of rows that do not take part, by the reason
    unexplained  the number of rows with probability 0 under the model
    """

    fit: Fit
    rows_read: int
    excluded: int
    left_out: Mapping[str, int]
    unexplained: int


def reading_for(plan: InferenceSettings) -> Reading:
    """Return how junctions are read: with their anchors, up to the longest that GPUs take."""
    reading = PgenConfig(("pgen_nt",), plan.genes).reads(Reading(reads=not plan.rows.likely_errors))
    return replace(reading, longest=LONGEST_CDR3)


def reference_of(start: Model | Germline, plan: InferenceSettings) -> tuple[Model, InferenceSettings]:
    """Return the model that calls refer to, and the plan with its start."""
    if isinstance(start, Model):
        return start, replace(plan, start=plan.start or "mixed")
    if plan.start not in (None, "uniform"):
        raise InputError(
            f"{option('start', plan.start)} needs a model to start from: give a model, or leave {option('start')} out"
        )
    return from_germline(start), replace(plan, start="uniform")


def infer_tables(
    inputs: Inputs, start: Model | Germline, plan: InferenceSettings, run: Run, backend_name: str, *,
    strict_binding: bool = False, fewest: int = 0,
) -> Inferred | None:  # fmt: skip
    """Infer a model from tables, on root; return None on the other ranks.  Its folder is the target of `run`, if any.

    start   a model, in which alleles that are not functional should have segments (`load_model`), or a germline table
    fewest  the smallest number of rows that a model is inferred from

    Raises HpcvdjError for bad input, too few rows and failures, and leaves the target as it was.
    """
    target = run.target
    import_backend_ahead(backend_name)
    with ExitStack() as stack:
        if target is not None:
            lock = exclusive_folder(target, *inputs.files, overwrite=run.overwrite, resume=run.resume)
            run.on_root(lambda: stack.enter_context(lock))
        model, plan = run.from_root(lambda: reference_of(start, plan))
        inputs = surveyed(inputs, run)
        identity = run.from_root(lambda: _identity(inputs, start, plan))
        folder = RunFolder(target.with_name(target.name + SUFFIX), identity) if target is not None else None
        overwrite = run.from_root(lambda: _may_replace(run, folder))
        chosen, tally = _chosen(inputs, model, plan, run, fewest)
        if isinstance(start, Germline):
            model = run.from_root(lambda rows: with_anchors(model, start, rows.repertoire), chosen)
        if folder is not None:
            stack.enter_context(run.continuing(folder, {}))
        run.request.begin()
        calls = run.root_steps(partial(_checked_calls, start, plan), NOTHING_YET, chosen)
        backend = run.bind(backend_name, strict=strict_binding)

        fit = infer(chosen, model, plan, run, backend, folder)

        def finish(fit: Fit, chosen: ChosenRows, tally: Tally, calls: ModelFit) -> Inferred:
            for line in fit.warnings:
                log.warning("%s", line)
            unexplained = []
            if target is not None and folder is not None:
                unexplained = _unexplained(chosen, fit, plan, backend, run.alone())
                facts = {
                    "identity": identity,
                    **run.provenance(),
                    "tables": inputs.recorded,
                    "start": _start_facts(start),
                    "species": model.species,
                    "options": asdict(plan),
                    "model_sha256": named(fit.model, "").digest,
                    "rows_read": tally.rows_read,
                    "rows_excluded": counts_json(tally.excluded),
                    "rows_left_out": dict(chosen.left_out),
                    "rows_whose_calls_were_compared": calls.calls,
                    "rows_whose_calls_contradict_the_bases": calls.miscalled,
                    **fit_facts(fit),
                }
                write_folder(target, fit, facts, unexplained, overwrite=overwrite)
                stack.pop_all().close()
                folder.remove()
            excluded = sum(number for _, number in tally.excluded)
            return Inferred(fit, tally.rows_read, excluded, chosen.left_out, len(unexplained))

        return run.on_root(finish, fit, chosen, tally, calls)


def _checked_calls(start: Model | Germline, plan: InferenceSettings, chosen: ChosenRows) -> ModelFit:
    """Compare the calls of the rows with their bases, and log a warning of those that contradict them.

    A model would learn such calls as deletions and insertions.  Without a model to start from, or without calls,
    nothing is compared.
    """
    if isinstance(start, Germline) or plan.genes == "any":
        return UNCHECKED
    fit = check_calls(chosen.repertoire, start)
    for line in fit.lines_of_calls():
        log.warning("%s: the model learns these as deletions and insertions; correct the calls", line)
    return fit


def _may_replace(run: Run, folder: RunFolder | None) -> bool:
    """Return whether a model at the target may be replaced.

    Raises CompleteError if the run resumes and is complete, and InputError if an existing target must stay.
    """
    if run.target is None or folder is None or run.overwrite or not run.resume:
        return run.overwrite
    try:
        raise_if_inferred(run.target, folder.identity)
    except InputError:
        if not folder.may_replace(run.target):
            raise
        # A run that was stopped had begun to replace it.
        require_replaceable(run.target, overwrite=True)
        return True
    return False


def _identity(inputs: Inputs, start: Model | Germline, plan: InferenceSettings) -> dict[str, Any]:
    return {
        "hpcvdj": hpcvdj.__version__,
        "tables": [[table.path.name, table.sha256] for table in inputs.tables],
        "opening": inputs.reading.opening.recorded(),
        "start_sha256": _digest(start),
        **{name: value for name, value in asdict(plan).items() if name != "rows"},
        **asdict(plan.rows),
    }


def _start_facts(start: Model | Germline) -> dict[str, Any]:
    corrected = {"corrected": dict(start.corrected)} if isinstance(start, Model) and start.corrected else {}
    return {"name": start.name, "sha256": _digest(start), **corrected}


def _digest(start: Model | Germline) -> str:
    return start.digest if isinstance(start, Model) else start.digest()


def _chosen(
    inputs: Inputs, model: Model, plan: InferenceSettings, run: Run, fewest: int
) -> tuple[ChosenRows | None, Tally | None]:
    """Return the rows that take part, and what became of all rows, on root; every rank reads some of the tables.

    All rows of an individual are read together, as whether a row takes part depends only on these.
    """
    tables = OwnTables(inputs, model, run)
    counted, uncounted = list[ChosenRows](), list[tuple[ChosenRows, int]]()

    def choose_of(unit: Inputs) -> None:
        junctions = tables.read(unit)
        chosen = choose(junctions, plan.rows, plan.seed)
        if junctions.reads is None:
            uncounted.append((chosen, len(junctions)))
        else:
            counted.append(chosen)

    run.each(tables.units, choose_of, NOTHING_YET)
    has_reads = bool(run.sum(np.array([len(counted)]))[0])
    if has_reads:
        for _, rows in uncounted:
            tables.rows.without_counts("", rows)
    tally = tables.rows.tally(run)
    parts = run.gather(counted if has_reads else [chosen for chosen, _ in uncounted])

    def joined(tally: Tally, parts: list[list[ChosenRows]]) -> ChosenRows:
        warn_of_rows(tally, model, inputs.names)
        chosen = ChosenRows.joined([chosen for part in parts for chosen in part], plan.rows, plan.seed)
        if len(chosen.repertoire) < fewest:
            raise TooFewError(
                f"{len(chosen.repertoire):,} rows {plan.rows.rows}, and a model is inferred from {fewest:,} or more; "
                "the model that is given stays"
            )
        if not has_reads and not plan.rows.likely_errors:
            log.warning("%s; likely sequencing errors cannot be told, and take part", inputs.lacking_reads)
        return chosen

    return run.root_steps(joined, NOTHING_YET, tally, parts), tally


def _impossible(problem: InferenceProblem, rows: list[int], backend: Backend) -> list[int]:
    """Select the rows that no scenario makes, even with sequencing errors."""
    method = ExpectationWithErrors()
    kernel = backend.load(method, problem)
    (unit,) = method.units(problem, 0, range(0))
    # The last count is the number of rows without weight that have probability 0.
    return [row for row in rows if kernel(unit, row, row + 1)[0, -1]]


def _unexplained(
    chosen: ChosenRows, fit: Fit, plan: InferenceSettings, backend: Backend, run: Run
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the data row, V, J and junction of each row with probability 0, and why it has none; `run` is root's."""
    repertoire, kinds = chosen.repertoire, kinds_of(chosen.repertoire)
    # The search says how many of the counted rows have probability 0, which are mostly none.
    asked = slice(None) if fit.trace[-1].lost or fit.best.lost else held_out(chosen, plan)
    among = np.arange(len(repertoire))[asked]
    if not len(among):
        return []
    config = PgenConfig(("pgen_nt",))
    values = count_in_memory(config.problem(repertoire.subset(among), fit.model), config, run, backend)
    assert values is not None
    rows = among[values[:, 0] < LEAST].tolist()
    if plan.errors:
        weights = np.zeros(len(repertoire), dtype=np.uint32)
        rows = _impossible(InferenceProblem(repertoire, weights, fit.model, plan.errors), rows, backend)
    out = []
    for row in rows:
        v, j = repertoire.pairs[kinds[row]]
        possible = "no scenario of the model makes it with these alleles"
        reason = possible if v.places and j.places else "the alleles cannot make a junction"
        names = {"v": v.allele, "j": j.allele, "junction": repertoire.cdr3(row), "reason": reason}
        out.append({"data_row": int(chosen.row[row]) + 1, **names})
    return sorted(out, key=lambda row: int(row["data_row"]))
