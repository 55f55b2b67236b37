"""The methods of counting pathways."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from hpcvdj.errors import InputError, option
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method, on_each_backend
from hpcvdj.kernels.quantities import Pathways, Quantity
from hpcvdj.recombination.repertoire import LONGEST_CDR3, PAPER_LONGEST_CDR3, Problem

LONGEST_ENUMERATED_N = 15
"""The n-length whose 4^m tasks still have 32-bit numbers; hours become years long before it."""


class PathwayMethod(Method):
    """A way of counting pathways; all methods give the same counters.

    longest_cdr3  nucleotides of the longest CDR3 that it takes
    longest_n     the largest n-length that it takes
    """

    longest_cdr3: ClassVar[int] = LONGEST_CDR3
    longest_n: ClassVar[int] = LONGEST_CDR3

    def quantity(self) -> Quantity:
        """Pathways."""
        return Pathways()

    def require(self, max_n: int) -> None:
        """Raise InputError if this method cannot count n-lengths up to `max_n`."""
        if max_n > self.longest_n:
            raise InputError(
                f"{option('max_n', max_n)} with {option('method', self.name)} enumerates 4^{max_n} n-nucleotide "
                "strings, which takes too "
                f"long; use {option('method', 'direct')}, or at most {option('max_n', self.longest_n)}"
            )


class Direct(PathwayMethod):
    """Counts from the closed form, without enumerating n-nucleotides; a task is one in vivo sequence.

    With L = len(S), A the longest common prefix of S and the extended V, B the longest common suffix of S and the
    extended J,

        count[S, m] = sum over D forms f and positions q where f occurs in S of
                      #{(a, b): 0 <= a <= min(A, q), 0 <= b <= min(B, L - q - |f|), a + b = L - |f| - m}
    """

    name = "direct"
    kernels = on_each_backend("hpcvdj.kernels.pathways.direct_{}.DirectKernel")


class Enumerating(PathwayMethod):
    """Exhaustive enumeration as the paper describes it; a task is one of the 4^m n-nucleotide strings.

    Every task forms its nDn' combinations and compares them with every in vivo sequence of each pair (sections III
    and V-B).
    """

    work_name = "(string, sequence, cut)"
    disjoint = False
    longest_cdr3 = PAPER_LONGEST_CDR3
    longest_n = LONGEST_ENUMERATED_N
    enumerates = True

    def units(self, problem: Problem, unit_work: int, columns: range) -> Iterator[Unit]:
        """(n-length, batch of whole V–J pairs), short n-lengths first.

        One V–J pair at a time, as in the paper, leaves a processor idle between the pairs when 4^m is small.
        """
        offsets = problem.repertoire.offsets
        for m in columns:
            tasks, first = 4**m, 0
            while offsets[first] < offsets[-1]:
                most = min(offsets[first] + unit_work // tasks, offsets[-1])
                last = max(first + 1, int(np.searchsorted(offsets, most, side="right")) - 1)
                yield Unit(range(first, last), range(int(offsets[first]), int(offsets[last])), range(m, m + 1), tasks)
                first = last

    def work(self, unit: Unit) -> float:
        """Tasks × sequences × cuts."""
        return float(unit.tasks) * len(unit.rows) * (unit.n_lengths.start + 1)


class Bitwise(Enumerating):
    """Two bits a base: Algorithms 2 and 3."""

    name = "bitwise"
    kernels = on_each_backend("hpcvdj.kernels.pathways.enumerating_{}.BitwiseKernel")


class Baseline(Enumerating):
    """One byte a base: the state of the art that the paper compares against (its reference 9)."""

    name = "baseline"
    kernels = on_each_backend("hpcvdj.kernels.pathways.enumerating_{}.BaselineKernel")
