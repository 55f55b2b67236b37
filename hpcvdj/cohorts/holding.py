"""Which individuals have which sequences, and how many reads of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Counts

Places = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Holding:
    """The individuals that have each sequence.

    An entry is a pair of a sequence and an individual.  Entries are sorted by sequence, then by individual.

    individual  int32 [entries]
    reads       int64 [entries]; None if the input has no read counts.  Carriers have their sources there
    begins      int64 [sequences + 1]: the entries of sequence k are begins[k]:begins[k + 1]
    individuals the number of individuals
    """

    individual: NDArray[np.int32]
    reads: Counts | None
    begins: Counts
    individuals: int

    @staticmethod
    def of(
        sequence: Places, individual: Places, sequences: int, individuals: int, reads: Counts | None, combine: Any
    ) -> "Holding":
        """Build the entries from pairs of a sequence and an individual, which may repeat.

        combine  how the reads of repeated pairs are combined, such as `numpy.add`
        """
        key = sequence.astype(np.int64) * individuals + individual
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        if reads is not None:
            reads = combine.reduceat(reads.astype(np.int64, copy=False)[order], starts)
        rows, columns = np.divmod(key[starts], individuals)
        begins = begins_of(np.bincount(rows, minlength=sequences))
        return Holding(columns.astype(np.int32), reads, begins, individuals)

    @staticmethod
    def one_after_another(parts: Sequence["Holding"]) -> "Holding":
        """Concatenate the entries of several parts, whose sequences differ."""
        individual = np.concatenate([part.individual for part in parts])
        reads = [part.reads for part in parts if part.reads is not None]
        begins = begins_of(np.concatenate([part.numbers for part in parts]))
        return Holding(individual, np.concatenate(reads) if reads else None, begins, parts[0].individuals)

    @property
    def numbers(self) -> Counts:
        """The number of individuals that have each sequence, int64 [sequences]."""
        return np.diff(self.begins)

    @property
    def sequence(self) -> NDArray[np.int32]:
        """The sequence of each entry, int32 [entries]."""
        return np.repeat(np.arange(len(self.begins) - 1, dtype=np.int32), self.numbers)

    @property
    def sizes(self) -> Counts:
        """The number of sequences of each individual, int64 [individuals]."""
        return np.bincount(self.individual, minlength=self.individuals)

    def only(self, sequences: Counts) -> "Holding":
        """Select the entries of some sequences, which are numbered anew in the given order."""
        counts = self.numbers[sequences]
        begins = begins_of(counts)
        entries = np.repeat(self.begins[sequences] - begins[:-1], counts) + np.arange(begins[-1])
        reads = None if self.reads is None else self.reads[entries]
        return Holding(self.individual[entries], reads, begins, self.individuals)

    def entries(self, chosen: NDArray[np.bool_]) -> "Holding":
        """Select entries, bool [entries]; sequences stay, also without individuals."""
        begins = begins_of(np.bincount(self.sequence[chosen], minlength=len(self.begins) - 1))
        return Holding(
            self.individual[chosen], None if self.reads is None else self.reads[chosen], begins, self.individuals
        )

    def overlap(self) -> Counts:
        """Count the sequences that each two individuals share, int64 [individuals, individuals].

        The diagonal has the number of sequences of each individual.
        """
        matrix = self.matrix()
        return np.asarray((matrix.T @ matrix).todense(), dtype=np.int64)

    def matrix(self) -> Any:
        """Return who has which sequence, a csr_array int64 [sequences, individuals] of ones."""
        from scipy.sparse import csr_array

        shape = (len(self.begins) - 1, self.individuals)
        return csr_array((np.ones(len(self.individual), dtype=np.int64), self.individual, self.begins), shape=shape)

    def by_group(self, group: Counts, groups: int) -> Counts:
        """Count the individuals of each group that have each sequence, int64 [sequences, groups].

        group  int64 [individuals]: the group of each; -1 for one that takes no part
        """
        of_entry = group[self.individual]
        cells = self.sequence[of_entry >= 0].astype(np.int64) * groups + of_entry[of_entry >= 0]
        sequences = len(self.begins) - 1
        return np.bincount(cells, minlength=sequences * groups).reshape(sequences, groups)

    def largest(self) -> Counts:
        """Return the entry with the most reads of each sequence, the first of equal ones, int64 [sequences].

        All sequences must have an entry.
        """
        assert self.reads is not None
        return np.lexsort((-self.reads, self.sequence))[self.begins[:-1]]


def begins_of(counts: Counts) -> Counts:
    """Return where the entries of each sequence begin, int64 [sequences + 1], from the number of entries of each."""
    begins = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=begins[1:])
    return begins
