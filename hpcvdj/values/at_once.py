"""Compute all rows at once: root reads and writes, every rank computes a share, and finished units are saved."""

import time
from typing import Any

from numpy.typing import NDArray

from hpcvdj.errors import StoppedError
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method
from hpcvdj.recombination.makers import Makers
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.results.outputs import ComputedRows
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.progress import told_if_slow
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.values.compute import ArrayStore, compute
from hpcvdj.values.summary import Summary, summary_of
from hpcvdj.values.task import Task, recorded_makers, while_written

BEGUN = "part-begun"
"""The piece with the unit that was under way when the run was saved.  The other pieces have finished units."""


class UnitStore(ArrayStore):
    """Values in memory, with checkpoints of finished units."""

    def __init__(self, problem: Any, method: Method, folder: RunFolder) -> None:
        super().__init__(problem, method)
        self._folder = folder
        self._unsaved: list[int] = []

    def begin(self, unit_work: int) -> list[Unit]:
        pieces = self._folder.finished
        # The run that began may have had another backend, but its units are those that are saved.
        self._unit_work = self._folder.read(pieces[0])[0]["unit_work"] if pieces else unit_work
        left = super().begin(self._unit_work)
        for name in pieces:
            with self._folder.damage(name):
                facts, arrays = self._folder.read(name)
                for number, values in arrays.items():
                    unit = self.units[int(number)]
                    if (values.shape, values.dtype) != (self.of(unit).shape, self.of(unit).dtype):
                        raise ValueError("its values are not those of a unit of this run")
                    if name != BEGUN:
                        super().put(unit, values)
                        left.remove(unit)
                    elif unit in left:
                        self.begun = Partial(unit, facts["tasks_done"], values.copy())
                        left = [unit, *(other for other in left if other != unit)]
        return left

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        super().put(unit, values)
        self._unsaved.append(self.units.index(unit))

    def save(self, partial: Partial | None) -> None:
        """Save the units that were put since the last time, and the unit that is cut here.

        Raises MachineError if the disk is full.
        """
        facts, unsaved = {"unit_work": self._unit_work}, self._unsaved
        if unsaved:
            self._folder.save(f"part-{unsaved[0]:06}", facts, {str(k): self.of(self.units[k]) for k in unsaved})
            self._unsaved = []
        if partial is not None:
            assert partial.values is not None
            number = str(self.units.index(partial.unit))
            self._folder.save(BEGUN, facts | {"tasks_done": partial.tasks_done}, {number: partial.values})


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
        batches = inputs.all_rows(run.raise_if_stopping)
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
