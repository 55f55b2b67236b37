"""Methods `baseline` and `bitwise`: exhaustive enumeration, as the paper describes it.

A unit is an n-length m and one V–J pair, or several where they are small; its tasks are the 4^m n-nucleotide
strings, one to a thread (sections III and V-B).  Every task builds its nDn' combinations and compares them with every
in vivo sequence of each pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpcvdj.methods.base import CPU_UNIT_WORK, Problem, Unit, whole_pairs
from hpcvdj.repertoires.repertoire import PAPER_LONGEST_CDR3

LONGEST_N = 15
"""n-length whose 4^m tasks still have 32-bit numbers; hours become years long before it."""


class _Enumerating:
    work_name = "(string, sequence, cut)"
    longest_cdr3 = PAPER_LONGEST_CDR3
    enumerates = True
    disjoint = False

    def units(self, problem: Problem, unit_work: int = CPU_UNIT_WORK) -> Iterator[Unit]:
        """(n-length, batch of whole V–J pairs), short n-lengths first.

        One V–J pair at a time, as in the paper, leaves a processor idle between the pairs when 4^m is small.
        """
        for m in range(problem.max_n + 1):
            for pairs, rows in whole_pairs(problem.repertoire.offsets, unit_work // 4**m):
                yield Unit(pairs, rows, range(m, m + 1), 4**m)

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
