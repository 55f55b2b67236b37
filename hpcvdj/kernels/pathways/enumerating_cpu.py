"""What the enumerating kernels share on CPU cores: pair by pair, tables of forms and sequences."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kernel import SynchronousKernel, Unit
from hpcvdj.kernels.pathways.forms import Forms, FormTable
from hpcvdj.recombination.repertoire import Problem, Repertoire

TASK_SLICE = 1024
"""n-nucleotide strings that a CPU thread takes at a time."""


class EnumeratingKernel(SynchronousKernel):
    """`bitwise` or `baseline` loaded with a problem; tasks are the n-nucleotide strings of the unit.

    sequences    the in vivo sequences as `count_tasks` reads them, a row for each
    table        forms as it reads them
    count_tasks  (sequences, lengths, V forms, lengths, D forms, lengths, has_d, J forms, lengths, m, first, last) to
                 the pathways of each sequence with the n-nucleotide strings first … last-1, uint64 [sequences]
    """

    sequences: Callable[[Repertoire], NDArray[Any]]
    table: Callable[[FormTable], NDArray[Any]]
    count_tasks: Callable[..., NDArray[np.uint64]]

    def __init__(self, problem: Problem) -> None:
        self.repertoire = problem.repertoire
        self.forms = Forms(problem)
        self._sequences = type(self).sequences(problem.repertoire)

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """Pathways with the n-nucleotide strings `first` … `last`-1."""
        table, count_tasks = type(self).table, type(self).count_tasks
        parts = []
        for pair in unit.pairs:
            *forms, has_d = self.forms.of(pair)
            v, d, j = ((table(part), part.lengths) for part in forms)
            rows = slice(*self.repertoire.offsets[pair : pair + 2])
            sequences = self._sequences[rows], self.repertoire.lengths[rows]
            parts.append(count_tasks(*sequences, *v, *d, has_d, *j, unit.n_lengths.start, first, last))
        return np.concatenate(parts)[:, np.newaxis]
