"""What every method of comparing has in common: columns loaded once, then rows compared with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import Kmers, kmers_of, require_parameters
from hpcvdj.motifs.sequences import SequenceSet

MAX_OCCURRENCES = (1 << 16) - 1
"""K-mers that a sequence may have: a counter is then below 2^32."""


@dataclass(frozen=True)
class Profile:
    """Sequences and what is compared of them: their k-mers, each once in distinct mode."""

    sequences: SequenceSet
    k: int
    distinct: bool = False

    def __len__(self) -> int:
        return len(self.sequences)

    @cached_property
    def kmers(self) -> Kmers:
        """The k-mers, on the host.  InputError as `require_countable`."""
        self.require_countable()
        return kmers_of(self.sequences, self.k, distinct=self.distinct)

    def require_countable(self) -> None:
        """InputError for a sequence that may have more than 65,535 k-mers."""
        lengths = self.sequences.lengths
        if len(lengths) and lengths.max() - self.k + 1 > MAX_OCCURRENCES:
            i = int(lengths.argmax())
            raise InputError(
                f"sequence {self.sequences.names[i]} has {lengths[i]:,} bases; counters hold the products of "
                f"{MAX_OCCURRENCES:,} k-mers a sequence: cut it into parts"
            )

    def part(self, first: int, last: int) -> Profile:
        """Sequences first … last-1."""
        part = Profile(self.sequences.part(first, last), self.k, self.distinct)
        if "kmers" in self.__dict__:
            part.__dict__["kmers"] = self.kmers.part(first, last)
        return part

    def reverse_complement(self) -> Profile:
        """The other strands."""
        return Profile(self.sequences.reverse_complement(), self.k, self.distinct)


class Comparison(Protocol):
    """A method loaded with columns."""

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> Any:
        """D of `rows` against the columns, uint32 [d + 1, rows, columns], where the method counted it.

        rows   the rows; None for the columns first … last-1 themselves
        first  row r is the partner of column first + r in a symmetric relation: only columns from that one on are
               asked for, what stands before them is undefined
        """
        ...


def array_module(array: Any) -> Any:
    """NumPy, or cupy for an array on the GPU."""
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy


def profile(sequences: SequenceSet, k: int, d: int, *, distinct: bool = False) -> Profile:
    """The profile of `sequences` for a comparison within distance d; InputError for parameters out of range."""
    require_parameters(k, d)
    return Profile(sequences, k, distinct)
