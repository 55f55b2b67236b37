"""What a method is: how it cuts a computation into units, and units into tasks.

A **unit** is what is computed, combined and stored at once.  Its **tasks** are shared by the ranks with the paper's
equation (2).  How a task is done is up to the kernels, which each method names.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.quantities import Quantity

THREADS_PER_BLOCK = 64
"""The default number of threads in a block (the paper, section VIII-A, for n-lengths four to eight)."""

UNIT_VALUES = 1 << 23
"""Values of one unit of a method that computes row by row, at most (64 MiB)."""


def on_each_backend(place: str) -> Mapping[str, str]:
    """Where the kernels of all backends are; `place` has {} where their names differ, in `cpu` and `cuda`.

    >>> on_each_backend("direct_{}.DirectKernel")
    {'cpu': 'direct_cpu.DirectKernel', 'cuda': 'direct_cuda.DirectKernel'}
    """
    return {backend: place.format(backend) for backend in ("cpu", "cuda")}


class Method:
    """A way of computing a quantity.

    name          as users give it
    work_name     what `work` counts, for the progress
    enumerates    whether its cost grows as 4^m
    disjoint      whether task k of a unit computes the unit's row k alone: the ranks' values are then gathered, not
                  added up
    kernels       what makes the kernel of each backend, such as its class, as `module.Class`
    """

    name: ClassVar[str]
    work_name: ClassVar[str] = "junctions"
    enumerates: ClassVar[bool] = False
    disjoint: ClassVar[bool] = True
    kernels: ClassVar[Mapping[str, str]]

    def quantity(self) -> Quantity:
        """What it computes."""
        raise NotImplementedError

    def units(self, problem: Any, unit_work: int, columns: range) -> Iterator[Unit]:
        """The units that compute columns of all values, in the order in which they are done: runs of sequences.

        unit_work  how much an enumerating method puts into one unit: n-nucleotide strings × sequences
        """
        offsets, sequences = problem.repertoire.offsets, len(problem.repertoire)
        step = max(1, UNIT_VALUES // problem.columns)
        for first in range(0, sequences, step):
            rows = range(first, min(sequences, first + step))
            pair, last = np.searchsorted(offsets, (rows.start, rows.stop - 1), side="right").tolist()
            yield Unit(range(pair - 1, last), rows, columns, len(rows))

    def work(self, unit: Unit) -> float:
        """The unit's cost relative to other units of this method: what progress is measured in."""
        return float(unit.tasks)
