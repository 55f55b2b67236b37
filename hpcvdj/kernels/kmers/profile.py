"""Sequences and how their k-mers are counted, which the methods compare."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import MAX_KMERS, Kmers, require_parameters
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.recombination.alphabet import INVALID


@dataclass(frozen=True)
class Profile:
    """Sequences and how their k-mers are counted.

    distinct  each k-mer counts once, however often it occurs in a sequence
    """

    sequences: SequenceSet
    k: int
    distinct: bool = False

    def __len__(self) -> int:
        return len(self.sequences)

    @cached_property
    def kmers(self) -> Kmers:
        """The k-mers, on the host.  InputError as of `require_countable`."""
        from hpcvdj.kernels.kmers.kmers_cpu import kmers_of  # compiled by numba, which is slow to import

        self.require_countable()
        return kmers_of(self.sequences, self.k, distinct=self.distinct)

    @cached_property
    def windows(self) -> NDArray[np.int64]:
        """Windows of k unambiguous bases of each sequence, int64 [sequences]: occurrences of its k-mers."""
        offsets = self.sequences.offsets
        invalid = np.concatenate([[0], np.cumsum(self.sequences.codes == INVALID)])
        clear = invalid[self.k :] == invalid[: -self.k]
        clear_before = np.concatenate([[0], np.cumsum(clear)])
        first = np.minimum(offsets[:-1], len(clear))
        last = np.clip(offsets[1:] - self.k + 1, first, len(clear))
        return np.asarray(clear_before[last] - clear_before[first])

    @property
    def skipped(self) -> int:
        """Windows of k bases that have an ambiguous base."""
        return int((np.maximum(self.sequences.lengths - self.k + 1, 0) - self.windows).sum())

    def require_countable(self) -> None:
        """Raise InputError for a sequence that may have more than 65,535 k-mers."""
        lengths = self.sequences.lengths
        if len(lengths) and lengths.max() - self.k + 1 > MAX_KMERS:
            i = int(lengths.argmax())
            raise InputError(
                f"sequence {self.sequences.names[i]} has {lengths[i]:,} bases; a sequence may have {MAX_KMERS:,} "
                "k-mers: cut it into parts"
            )

    def part(self, first: int, last: int) -> "Profile":
        """Sequences first … last-1."""
        if (first, last) == (0, len(self)):
            return self
        part = Profile(self.sequences.part(first, last), self.k, self.distinct)
        if "kmers" in self.__dict__:
            part.__dict__["kmers"] = self.kmers.part(first, last)
        return part

    def reverse_complement(self) -> "Profile":
        """The other strands."""
        return Profile(self.sequences.reverse_complement(), self.k, self.distinct)


def profile(sequences: SequenceSet, k: int, d: int, *, distinct: bool = False) -> Profile:
    """The profile of `sequences` for a comparison within distance d; InputError for k or d out of range."""
    require_parameters(k, d)
    return Profile(sequences, k, distinct)
