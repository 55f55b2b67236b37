"""From tables to the folder of a model with its selection factor: what `hpcvdj infer-selection` does."""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from hpcvdj.chance.check import ModelFit, check_model, check_tables, sample_of_table
from hpcvdj.chance.settings import CHECKS, Checks
from hpcvdj.errors import few
from hpcvdj.inference.folder import write_with_selection
from hpcvdj.inference.selection import SelectionFit, infer_selection
from hpcvdj.inference.settings import SelectionSettings
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.igor import model_folder
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.junctions import Junctions, read_table
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields, fields_of_table
from hpcvdj.repertoires.tally import log_exclusions, tally_of
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.folders import exclusive_folder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InferredSelection:
    """A factor that was written, and what was read for it."""

    fit: SelectionFit
    rows_read: int
    excluded: int


def infer_selection_of_tables(
    paths: Sequence[Path],
    model: Model,
    plan: SelectionSettings,
    run: Run,
    backend: str = AUTO,
    opening: Opening = BY_HEADER,
    checks: Checks = CHECKS,
) -> InferredSelection | None:
    """Infer the selection factor of a model from tables, and write a copy of the model with it to the target of `run`.

    model   as `load_model` gives it
    checks  how rows that do not fit the model are treated

    The result on root, None on the other ranks.  HpcvdjError for bad input and failures; the target is then what it was
    before.
    """
    target = run.target
    assert target is not None
    with ExitStack() as stack:
        run.on_root(lambda: stack.enter_context(exclusive_folder(target, *paths, overwrite=run.overwrite)))
        inputs, junctions, fits = _read(paths, model, checks, run, log.warning, opening)
        if junctions is not None:
            tables = few([table.path.name for table in inputs.tables])
            log_exclusions(tables, junctions.rows_read, junctions.excluded.counts(), junctions.substituted)
        run.request.begin()
        fit = infer_selection(junctions, model, plan, run, backend, fits)

        def finish() -> InferredSelection:
            assert fit is not None
            assert junctions is not None
            facts = {
                **run.provenance(),
                "tables": inputs.recorded,
                **model.facts(),
                **fits.facts(),
                "options": asdict(plan),
                "sequence_field": inputs.reading.sequence_field,
                "rows_read": junctions.rows_read,
                "rows_excluded": counts_json(junctions.excluded.counts()),
                "rows_left_out": fit.left_out,
            }
            write_with_selection(model_folder(model.name), target, fit.model, facts, overwrite=run.overwrite)
            return InferredSelection(fit, junctions.rows_read, len(junctions.excluded))

        return run.on_root(finish)


def _read(
    paths: Sequence[Path],
    model: Model,
    checks: Checks,
    run: Run,
    warn: Callable[[str], None],
    opening: Opening = BY_HEADER,
) -> tuple[Inputs, Junctions | None, ModelFit]:
    """The tables, root's junctions of them, and how the model fits them."""
    inputs = surveyed(
        run.from_root(lambda: tables_of(paths, productive_reading(common_fields(paths, opening), opening))), run
    )
    fits = run.from_root(lambda: check_tables(checks, [inputs], model, warn))
    return inputs, run.root_steps(lambda: inputs.read(model, between=run.raise_if_stopping), NOTHING_YET), fits


def infer_selection_in_memory(
    tables: Sequence[Path] | pa.Table,
    model: Model,
    plan: SelectionSettings,
    backend: str,
    checks: Checks,
    warn: Callable[[str], None],
) -> SelectionFit:
    """Infer the selection factor of a model on this machine.

    tables  the paths of tables, or one in memory
    checks  how rows that do not fit the model are treated
    warn    is told what was excluded, and what to know of the factor
    """
    if isinstance(tables, pa.Table):
        reading = productive_reading(fields_of_table(tables))
        fits = check_model(checks, sample_of_table(tables, model, reading), model, warn)
        junctions: Junctions | None = read_table(tables, model, reading, together=True)
    else:
        _, junctions, fits = _read(tables, model, checks, Run(), warn)
    assert junctions is not None
    tally = tally_of(junctions)
    for line in filter(None, (tally.substitutions, tally.exclusions)):
        warn(line)
    fit = infer_selection(junctions, model, plan, Run(), backend, fits)
    assert fit is not None
    for line in fit.warnings:
        warn(line)
    return fit
