"""From tables to the folder of a model with its selection factor: what `hpcvdj infer-selection` does."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpcvdj.counting.slices import NOTHING_YET, surveyed
from hpcvdj.counting.summary import Tally, log_exclusions
from hpcvdj.counting.tables import productive_reading
from hpcvdj.errors import few
from hpcvdj.inference.folder import require_replaceable, write_with_selection
from hpcvdj.inference.selection import SelectionFit, SelectionPlan, infer_selection
from hpcvdj.inference.tables import locked
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.exclusions import counts_json
from hpcvdj.recombination.igor import model_folder
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import tables_of
from hpcvdj.repertoires.junctions import read_table
from hpcvdj.runs.run import Run


@dataclass(frozen=True)
class InferredSelection:
    """A factor that was written, and what was read for it."""

    fit: SelectionFit
    rows_read: int
    excluded: int


def infer_selection_of_tables(
    paths: Sequence[Path],
    model: Model,
    plan: SelectionPlan,
    run: Run,
    backend: str = AUTO,
    opening: Opening = BY_HEADER,
) -> InferredSelection | None:
    """Infer the selection factor of a model from tables, and write a copy of the model with it to the target of `run`.

    model  as `load_model` gives it

    The result on root, None on the other ranks.  HpcvdjError for bad input and failures; the target is then what it was
    before.
    """
    target = run.target
    assert target is not None
    with ExitStack() as stack:
        run.on_root(lambda: stack.enter_context(locked(target)))
        run.on_root(lambda: require_replaceable(target, overwrite=run.overwrite))
        inputs = surveyed(run.from_root(lambda: tables_of(paths, productive_reading(opening))), run)
        junctions = run.root_steps(lambda: inputs.read(model, between=run.raise_if_stopping), NOTHING_YET)
        if junctions is not None:
            tables = few([table.path.name for table in inputs.tables])
            log_exclusions(tables, junctions.rows_read, junctions.excluded.counts(), junctions.substituted)
        run.request.begin()
        fit = infer_selection(junctions, model, plan, run, backend)

        def finish() -> InferredSelection:
            assert fit is not None
            assert junctions is not None
            facts = {
                **run.provenance(),
                "tables": [[str(table.path), table.sha256, table.rows] for table in inputs.tables],
                **model.facts(),
                "options": asdict(plan),
                "rows_read": junctions.rows_read,
                "rows_excluded": counts_json(junctions.excluded.counts()),
                "rows_left_out": fit.left_out,
            }
            write_with_selection(model_folder(model.name), target, fit.model, facts, overwrite=run.overwrite)
            return InferredSelection(fit, junctions.rows_read, len(junctions.excluded))

        return run.on_root(finish)


def infer_selection_of_table(
    table: Any, model: Model, plan: SelectionPlan, backend: str, warn: Callable[[str], None]
) -> SelectionFit:
    """Infer the selection factor of a model from a table in memory, on this machine.

    warn  is told what was excluded, and what to know of the factor
    """
    junctions = read_table(table, model, productive_reading(), together=True)
    tally = Tally(
        rows_read=junctions.rows_read,
        counted=len(junctions),
        excluded=junctions.excluded.counts(),
        substituted=junctions.substituted,
    )
    for line in filter(None, (tally.substitutions, tally.exclusions)):
        warn(line)
    fit = infer_selection(junctions, model, plan, Run(), backend)
    assert fit is not None
    for line in fit.warnings:
        warn(line)
    return fit
