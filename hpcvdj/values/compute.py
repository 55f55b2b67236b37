"""Compute a problem over the ranks, one unit after another, into a store; and tables in memory."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.errors import StoppedError
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method
from hpcvdj.recombination.makers import Makers
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.repertoires.tally import Tally
from hpcvdj.results.lookup import Lookup
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.driver import Driver, Partial, Store, Timings
from hpcvdj.runs.progress import COMPILING, Progress, told_if_slow
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.values.plan import Plan


class ArrayStore(Store):
    """Values in memory.

    values  [sequences, columns]
    units   the units of all values
    begun   the unit that an earlier run began
    """

    units: list[Unit]
    begun: Partial | None = None

    def __init__(self, problem: Any, method: Method, progress: Progress | None = None) -> None:
        """Prepare the values of a problem, and show on `progress` which share of them is computed."""
        quantity = method.quantity()
        self._problem, self._method, self._progress = problem, method, progress
        self.values = np.zeros((len(problem.repertoire), quantity.width(problem)), dtype=quantity.dtype)

    def begin(self, unit_work: int) -> list[Unit]:
        """Return the units that are left to compute, the one that an earlier run began first."""
        self.units = list(self._method.units(self._problem, unit_work, range(self._problem.columns)))
        return list(self.units)

    def of(self, unit: Unit) -> NDArray[Any]:
        """Return the values of a unit, [rows, n-lengths]."""
        n_lengths = unit.n_lengths
        return self.values[unit.rows.start : unit.rows.stop, n_lengths.start : n_lengths.stop]

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        self.of(unit)[...] = values
        if self._progress is not None:
            self._progress.advance(len(unit.rows) * len(unit.n_lengths) / self.values.shape[1])


def compute(problem: Any, config: Plan, backend: Backend, run: Run, store: ArrayStore | None) -> tuple[Timings, float]:
    """Compute what root's `store` lacks.  Return the seconds that it took, and those to load the kernel."""
    method, threads = config.method_class(), config.threads_per_block
    started = time.perf_counter()
    with told_if_slow(COMPILING, shown=run.is_root):
        kernel = backend.load(method, problem, threads)
    (prepare,) = run.slowest(time.perf_counter() - started)

    def begin() -> tuple[list[Unit], Partial | None, float]:
        assert store is not None
        units = store.begin(backend.unit_work)
        done = sum(map(method.work, store.units)) - sum(map(method.work, units))
        # Only root needs the values.
        return units, store.begun and replace(store.begun, values=None), done

    units, begun, done = run.from_root(begin)
    driver = Driver(kernel, method, threads, run)
    return driver.compute(units, store, begun if store is None else store.begun, done), prepare


def count_in_memory(problem: Any, config: Plan, run: Run, backend: Backend | None = None) -> NDArray[Any] | None:
    """Compute the values of a problem: an array [sequences, columns] on root, None on the other ranks.

    backend  the backend of this rank, if it is open already

    Raises StoppedError on every rank after a signal, if the run has a target.  Nothing is saved then.
    """
    store = ArrayStore(problem, config.method_class()) if run.is_root else None
    try:
        compute(problem, config, backend or run.bind(config.backend, strict=config.strict_binding), run, store)
    except StoppedError:
        raise run.stopped(NOTHING_YET) from None
    return store.values if store is not None else None


def values_of(inputs: Inputs, reference: Reference, config: Plan) -> tuple[pa.Table, Tally, Makers | None]:
    """Compute the values of each row of a table, on this machine, as columns of a pyarrow Table.

    Returns also what became of the rows and, if probabilities are computed, who makes the junctions.  Raises InputError
    for bad input.
    """
    read = inputs.read(reference)
    config = config.settled(read.repertoire.longest)
    method = config.method_class()
    problem = config.problem(read.repertoire, reference)
    values = count_in_memory(problem, config, Run())
    assert values is not None
    quantity = method.quantity()
    tally = replace(SliceFacts.of(read, quantity, values), max_n=getattr(config, "max_n", 0))
    columns = Lookup(quantity, values, read.row, read.excluded).columns(0, read.rows_read)
    makers = Makers.of(config.judged, [config.judged_values(problem, values)]) if config.judged else None
    return pa.table(columns), tally, makers
