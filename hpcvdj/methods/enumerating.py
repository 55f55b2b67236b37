"""Methods `baseline` and `bitwise`: exhaustive enumeration, as the paper describes it.

A unit is one (n-length m, V–J pair); its tasks are the 4^m n-nucleotide strings, one to a thread (section III
and V-B).  Every task builds its nDn' combinations and compares them with every in vivo sequence of the pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpcvdj.methods.base import Problem, Unit
from hpcvdj.repertoire import PAPER_LONGEST_CDR3

LONGEST_N = 15
"""n-length whose 4^m tasks still have 32-bit numbers; hours become years long before it."""


class _Enumerating:
    work_name = "(string, sequence, cut)"
    longest_cdr3 = PAPER_LONGEST_CDR3
    enumerates = True

    def units(self, problem: Problem) -> Iterator[Unit]:
        """(n-length, V–J pair), short n-lengths first."""
        offsets = problem.repertoire.offsets
        for m in range(problem.max_n + 1):
            for pair in range(len(offsets) - 1):
                rows = range(int(offsets[pair]), int(offsets[pair + 1]))
                yield Unit(range(pair, pair + 1), rows, range(m, m + 1), 4**m)

    def work(self, unit: Unit) -> float:
        """Tasks x sequences x cuts."""
        return float(unit.tasks) * len(unit.rows) * (unit.n_lengths.start + 1)


class Bitwise(_Enumerating):
    """Two bits per base: Algorithms 2 and 3."""

    name = "bitwise"
    summary = "the paper's enumeration, two bits per base"


class Baseline(_Enumerating):
    """One byte per base: the state of the art that the paper compares against (its reference 9)."""

    name = "baseline"
    summary = "the enumeration the paper compares against, one byte per base"
