"""What the enumerating kernels share on CPU cores: pair by pair, tables of forms and sequences."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.pathways import baseline_cpu, bitwise_cpu
from hpcvdj.kernels.pathways.forms import ONE_BYTE, TASK_SLICE, TWO_BITS, Encoding, Forms
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.repertoire import Problem

SLICES_AT_ONCE = 16
"""Slices that a CPU thread takes at a time."""


class EnumeratingKernel(Kernel):
    """`bitwise` or `baseline` loaded with a problem; tasks are the n-nucleotide strings of the unit.

    encoding     how `count_tasks` takes sequences and forms
    count_tasks  a part of the numbers of `out`, sequences, lengths, V forms, lengths, D forms, lengths, has_d, J forms,
                 lengths, m, first, last; it fills `out`, uint64 [slices, sequences]: the pathways of each sequence with
                 each slice of the n-nucleotide strings first … last-1
    """

    encoding: ClassVar[Encoding]
    count_tasks: Callable[..., None]

    def __init__(self, problem: Problem, threads_per_block: int) -> None:
        self.repertoire = problem.repertoire
        self.forms = Forms(problem)
        self._sequences = self.encoding.sequences(problem.repertoire)

    def start(self, unit: Unit, first: int, last: int) -> Pending:
        """Count the pathways with the n-nucleotide strings `first` … `last`-1."""
        count_tasks = type(self).count_tasks
        parts = []
        for pair in unit.pairs:
            *forms, has_d = self.forms.of(pair)
            v, d, j = ((self.encoding.forms(part), part.lengths) for part in forms)
            rows = slice(*self.repertoire.offsets[pair : pair + 2])
            sequences = self._sequences[rows], self.repertoire.lengths[rows]
            counted = np.zeros((-(-(last - first) // TASK_SLICE), len(sequences[0])), dtype=np.uint64)
            arguments = *sequences, *v, *d, has_d, *j, unit.n_lengths.start, first, last, counted
            on_threads(count_tasks, parts_of(counted.size, SLICES_AT_ONCE), *arguments)
            # Not in compiled code: numba takes seconds to compile what a sum over an axis says of a wrong axis.
            parts.append(counted.sum(axis=0))
        values = np.concatenate(parts)[:, np.newaxis]
        return lambda: values


class BitwiseKernel(EnumeratingKernel):
    """Two bits a base."""

    encoding = TWO_BITS
    count_tasks = staticmethod(bitwise_cpu.count_tasks)


class BaselineKernel(EnumeratingKernel):
    """One byte a base."""

    encoding = ONE_BYTE
    count_tasks = staticmethod(baseline_cpu.count_tasks)
