"""Method `direct` (ours): no enumeration; a task is one in vivo sequence, all its n-lengths at once.

ALGORITHM: with L = len(S), A the longest common prefix of S and the extended V, B the longest common suffix of
S and the extended J,

    count[S, m] = sum over D forms f and positions q where f occurs in S of
                  #{(a, b): 0 <= a <= min(A, q), 0 <= b <= min(B, L - q - |f|), a + b = L - |f| - m}
"""

from __future__ import annotations

from collections.abc import Iterator

from hpcvdj.methods.base import CPU_UNIT_WORK, Problem, Unit, whole_pairs
from hpcvdj.repertoires.repertoire import LONGEST_CDR3

UNIT_COUNTERS = 1 << 23
"""Counters in one unit at most (64 MiB), unless a single V–J pair has more."""


class Direct:
    """Counts from the closed form; the default."""

    name = "direct"
    summary = "closed form, no enumeration of n-nucleotides; any n-length"
    work_name = "junctions"
    longest_cdr3 = LONGEST_CDR3
    enumerates = False
    disjoint = True

    def units(self, problem: Problem, unit_work: int = CPU_UNIT_WORK) -> Iterator[Unit]:
        """Batches of whole V–J groups, as many as `UNIT_COUNTERS` allows."""
        for pairs, rows in whole_pairs(problem.repertoire.offsets, UNIT_COUNTERS // (problem.max_n + 1)):
            yield Unit(pairs, rows, range(problem.max_n + 1), len(rows))

    def work(self, unit: Unit) -> float:
        """Sequences: each costs about the same whatever its pair."""
        return float(unit.tasks)
