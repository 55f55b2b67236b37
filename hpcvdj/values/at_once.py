"""Compute all rows at once: root reads and writes, every rank computes a share, and finished units are saved."""

import time

from hpcvdj.errors import StoppedError
from hpcvdj.recombination.makers import Makers
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.results.outputs import ComputedRows
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.values.compute import compute
from hpcvdj.values.summary import Summary, summary_of
from hpcvdj.values.task import Task, recorded_makers, while_written
from hpcvdj.values.unit_store import UnitStore


def compute_at_once(task: Task) -> Summary:
    run, output, inputs, reference = task.run, task.output, task.sliced.inputs, task.reference
    started = time.perf_counter()
    with told_if_slow(f"reading {inputs.path.name}", shown=run.is_root):
        junctions = run.root_steps(lambda: inputs.read(reference, between=run.raise_if_stopping), NOTHING_YET)
    repertoire: Repertoire = run.broadcast(junctions.repertoire if junctions is not None else None)
    config = run.from_root(lambda: task.config.settled(repertoire.longest))
    problem, method = config.problem(repertoire, reference), config.method_class()
    run.on_root(lambda: output.require_columns(inputs.tables, output.quantity.width(problem)))
    read = time.perf_counter()
    store = UnitStore(problem, method, task.files.folder) if run.is_root else None
    run.request.begin()
    backend = run.bind(config.backend, strict=config.strict_binding)
    timings, prepare = compute(problem, config, backend, run, store)
    counted = time.perf_counter()
    ranks = run.rank_facts(backend)

    def write() -> tuple[SliceFacts, Makers | None]:
        assert junctions is not None
        assert store is not None
        batches = task.sliced.all_rows(run.raise_if_stopping)
        rows = ComputedRows(inputs, junctions, output.quantity, store.values, timings, batches)
        settled = {**task.facts["config"], **config.recorded()}
        attributes = {"config": settled, "checkpoint_seconds": timings.save, **rows.facts.attributes()}
        makers = Makers.of(config.judged, [config.judged_values(problem, store.values)]) if config.judged else None
        output.write(rows, task.facts | attributes | recorded_makers(makers), ranks)
        task.files.folder.remove()
        return rows.facts, makers

    try:
        facts, makers = run.root_works(write, while_written(output.target))
    except StoppedError:
        run.on_root(UnitStore.save, store, None)
        raise
    seconds = (
        read - started, prepare, float(timings.kernel.sum()), float(timings.reduce.sum()), timings.save,
        timings.store + time.perf_counter() - counted,
    )  # fmt: skip
    return summary_of(task, facts, makers, config, backend, seconds)
