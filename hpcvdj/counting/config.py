"""What to count and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hpcvdj.checks import whole_number
from hpcvdj.methods import method_named
from hpcvdj.methods.base import require_n_length
from hpcvdj.methods.enumerating import LONGEST_N
from hpcvdj.ranks.partition import THREADS_PER_BLOCK
from hpcvdj.recombination.germline import DForms
from hpcvdj.repertoires.many import Table
from hpcvdj.repertoires.repertoire import CallPolicy, Repertoire, SequenceField

DEFAULT_MAX_N = 10
"""The paper's largest n-length, which regenerates 99.5 % of its in vivo set (section II-A)."""


@dataclass(frozen=True)
class Config:
    """How to count.

    max_n           the largest n-length, or `all`: up to the longest sequence's length
    strict_binding  two ranks on one GPU are an error, not a warning
    """

    max_n: int | Literal["all"] = DEFAULT_MAX_N
    method: str = "direct"
    backend: str = "auto"
    d_forms: DForms = "paper"
    threads_per_block: int = THREADS_PER_BLOCK
    strict_binding: bool = False

    def resolve_max_n(self, repertoire: Repertoire) -> int:
        """The largest n-length as a number; InputError if the method cannot go there."""
        max_n = (
            repertoire.longest if self.max_n == "all" else whole_number("max_n", self.max_n, "give a number, or all")
        )
        require_n_length(method_named(self.method), max_n, LONGEST_N)
        return max_n


@dataclass(frozen=True)
class Inputs:
    """Which junctions to count, and how to read them.

    tables  those that are counted together; `junctions` is then the folder that has them
    """

    junctions: Path
    sequence_field: SequenceField = "junction"
    calls: CallPolicy = field(default_factory=CallPolicy)
    strict: bool = False
    tables: tuple[Table, ...] = ()

    @property
    def files(self) -> list[Path]:
        """What is read."""
        return [table.path for table in self.tables] or [self.junctions]

    @property
    def repertoires(self) -> list[str]:
        """The repertoires of tables that are counted together."""
        return list(dict.fromkeys(name for table in self.tables for name in table.repertoires))
