"""Clone sizes: the numbers of reads of the clonotypes of each sample.

The facts of all questions record them, and diversity is computed from them.  A clonotype is here a distinct productive
junction, as it is read, with its V and J genes.  It has the reads of all of its rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.dealing import Dealt
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.repertoires.genes import kinds_of

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class CloneSizes:
    """The number of clonotypes of a sample that have each number of reads.

    reads       int64 [sizes], ascending, at least 1
    clonotypes  int64 [sizes], at least 1: how many have so many reads
    """

    reads: Counts
    clonotypes: Counts

    @staticmethod
    def of(reads: Counts) -> "CloneSizes":
        """Count the sizes of clonotypes with these reads."""
        return CloneSizes(*np.unique(reads, return_counts=True))

    @property
    def total(self) -> int:
        """The number of reads of all clonotypes."""
        return int(self.reads @ self.clonotypes)

    def at_least(self, reads: int) -> int:
        """Count the clonotypes with so many reads or more."""
        return int(self.clonotypes[np.searchsorted(self.reads, reads) :].sum())

    def recorded(self) -> dict[str, list[int]]:
        """Return the sizes as JSON values."""
        return {"reads": self.reads.tolist(), "clonotypes": self.clonotypes.tolist()}

    @staticmethod
    def from_recorded(values: Mapping[str, Any]) -> "CloneSizes":
        """Build the sizes from what `recorded` returns; raises ValueError for anything else."""
        reads, clonotypes = (np.array(values[name], dtype=np.int64) for name in ("reads", "clonotypes"))
        fits = reads.ndim == 1 and reads.shape == clonotypes.shape and (clonotypes > 0).all()
        if not fits or (np.diff(reads, prepend=0) <= 0).any():
            raise ValueError("clones are not sizes and their numbers")
        return CloneSizes(reads, clonotypes)


@dataclass(frozen=True)
class SizesOfSamples:
    """The clone sizes of several samples; each pair of sample and reads is there once, ascending.

    sample, reads, clonotypes  int64 [entries]
    """

    sample: Counts
    reads: Counts
    clonotypes: Counts

    @staticmethod
    def of(sample: NDArray[np.integer[Any]], reads: Counts) -> "SizesOfSamples":
        """Count the sizes of clonotypes of these samples, with these reads."""
        ones = np.ones(len(reads), dtype=np.int64)
        return SizesOfSamples.added([SizesOfSamples(sample.astype(np.int64), reads.astype(np.int64), ones)])

    @staticmethod
    def added(parts: Iterable["SizesOfSamples"]) -> "SizesOfSamples":
        """Add up the sizes of several parts of the clonotypes."""
        columns = zip(*((part.sample, part.reads, part.clonotypes) for part in parts), strict=True)
        sample, reads, clonotypes = map(np.concatenate, columns)
        order = np.lexsort((reads, sample))
        sample, reads, clonotypes = sample[order], reads[order], clonotypes[order]
        first = np.flatnonzero((np.diff(sample, prepend=-1) != 0) | (np.diff(reads, prepend=-1) != 0))
        return SizesOfSamples(sample[first], reads[first], np.add.reduceat(clonotypes, first))

    def by_name(self, names: list[str]) -> dict[str, CloneSizes]:
        """Return the sizes of each sample by its name; a sample is an index in `names`."""
        begins = np.searchsorted(self.sample, np.arange(len(names) + 1)).tolist()
        return {
            name: CloneSizes(self.reads[first:stop], self.clonotypes[first:stop])
            for name, first, stop in zip(names, begins, begins[1:], strict=False)
        }


def sizes_in(dealt: Dealt) -> dict[str, CloneSizes]:
    """Return the clone sizes of each sample; empty without read counts."""
    whole, names = dealt.whole, dealt.samples
    if whole.reads is None:
        return {}
    repertoire, sample = whole.repertoire, whole.sample.astype(np.int64)
    kinds = kinds_of(repertoire).astype(np.int64) * len(names) + sample
    first, clonotype = groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds)
    reads = np.zeros(len(first), dtype=np.int64)
    np.add.at(reads, clonotype, whole.reads)
    return SizesOfSamples.of(sample[first], reads).by_name(names)
