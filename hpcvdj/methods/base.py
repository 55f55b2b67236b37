"""What every method has in common: the problem, its units of work, and the protocol of a method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hpcvdj.checks import require_choice
from hpcvdj.errors import InputError
from hpcvdj.recombination.germline import D_FORMS, DForms, Germline
from hpcvdj.repertoires.repertoire import LONGEST_CDR3, Repertoire

CPU_UNIT_WORK = 1 << 20
"""Strings x sequences in a unit for CPU cores: seconds to minutes of work."""


@dataclass(frozen=True)
class Unit:
    """A piece of the count that is done, combined and stored at once.

    pairs       the V–J pairs it covers, a range of indices into `Repertoire.pairs`
    rows        their sequences, a range of rows
    n_lengths   the n-lengths it covers
    tasks       how many tasks it has; a rank does a block range of them
    """

    pairs: range
    rows: range
    n_lengths: range
    tasks: int


@dataclass(frozen=True)
class Problem:
    """What is to be counted: sequences, germline, n-lengths 0 … `max_n`, and how D forms count."""

    repertoire: Repertoire
    germline: Germline
    max_n: int
    d_forms: DForms = "paper"

    def __post_init__(self) -> None:
        require_choice("d_forms", self.d_forms, D_FORMS)

    @cached_property
    def loci(self) -> list[str]:
        """The loci of the repertoire's pairs, one per pair."""
        return [v.locus for v, _ in self.repertoire.pairs]


class Method(Protocol):
    """A way of counting.

    enumerates  whether its cost grows as 4^m
    disjoint    whether task k of a unit counts the unit's row k alone: ranks' counters are gathered, not added up
    """

    name: str
    summary: str
    work_name: str
    longest_cdr3: int
    enumerates: bool
    disjoint: bool

    def units(self, problem: Problem, unit_work: int = CPU_UNIT_WORK) -> Iterator[Unit]:
        """The units of `problem`, in the order they are done; each counter is in exactly one.

        `unit_work` is how much an enumerating method puts into one: n-nucleotide strings x sequences.
        """
        ...

    def work(self, unit: Unit) -> float:
        """The unit's cost relative to others of this method: what progress is measured in."""
        ...


def whole_pairs(offsets: NDArray[np.int64], most_rows: int) -> Iterator[tuple[range, range]]:
    """V–J pairs in batches of at most `most_rows` sequences, or of one pair: (pairs, their rows)."""
    first, pairs = 0, len(offsets) - 1
    while first < pairs:
        last = first + 1
        while last < pairs and offsets[last + 1] - offsets[first] <= most_rows:
            last += 1
        yield range(first, last), range(int(offsets[first]), int(offsets[last]))
        first = last


def require_n_length(method: Method, max_n: int, longest: int) -> None:
    """InputError if `max_n` is below 0, above any sequence's length, or above what can be enumerated."""
    if not 0 <= max_n <= LONGEST_CDR3:
        raise InputError(f"--max-n {max_n}: n-lengths lie in 0 … {LONGEST_CDR3}; all takes them up to the longest CDR3")
    if method.enumerates and max_n > longest:
        raise InputError(
            f"--max-n {max_n} with --method {method.name} enumerates 4^{max_n} n-nucleotide strings; it stops at "
            f"{longest}: use --method direct"
        )
