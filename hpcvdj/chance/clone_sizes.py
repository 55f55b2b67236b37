"""Clone sizes: the numbers of reads of the clonotypes of each sample.

The facts of all questions record them, and diversity is computed from them.  A clonotype is here a distinct productive
junction, as it is read, with its V and J genes.  It has the reads of all of its rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.dealing import Dealt
from hpcvdj.chance.p_values import Counts
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.repertoires.genes import kinds_of


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


def counted(sample: NDArray[np.integer[Any]], reads: Counts) -> pa.Table:
    """Count the clonotypes of each sample by their reads: a table with the columns sample, reads and clonotypes."""
    return added([pa.table({"sample": sample, "reads": reads, "clonotypes": np.ones(len(reads), dtype=np.int64)})])


def added(parts: Iterable[pa.Table]) -> pa.Table:
    """Add up what `counted` returns of several parts of the clonotypes; rows are in any order."""
    sums = pa.concat_tables(parts).group_by(["sample", "reads"]).aggregate([("clonotypes", "sum")])
    return pa.table([sums["sample"], sums["reads"], sums["clonotypes_sum"]], ["sample", "reads", "clonotypes"])


def by_name(sizes: pa.Table, names: list[str]) -> dict[str, CloneSizes]:
    """Return the sizes that were `counted` of each sample by its name; a sample is an index in `names`."""
    ordered = sizes.sort_by([("sample", "ascending"), ("reads", "ascending")])
    sample, reads, clonotypes = (column.to_numpy() for column in ordered.columns)
    begins = np.searchsorted(sample, np.arange(len(names) + 1)).tolist()
    return {
        name: CloneSizes(reads[first:stop], clonotypes[first:stop])
        for name, first, stop in zip(names, begins, begins[1:], strict=False)
    }


def sizes_in(dealt: Dealt) -> dict[str, CloneSizes]:
    """Return the clone sizes of each sample on all ranks, on root; empty without read counts."""
    whole, names = dealt.whole, dealt.samples
    if whole.reads is None:
        return {}
    repertoire, sample = whole.repertoire, whole.sample.astype(np.int64)
    kinds = kinds_of(repertoire).astype(np.int64) * len(names) + sample
    first, clonotype = groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds)
    reads = np.zeros(len(first), dtype=np.int64)
    np.add.at(reads, clonotype, whole.reads)
    of_ranks = dealt.run.gather(counted(sample[first], reads))
    return {} if of_ranks is None else by_name(added(of_ranks), names)
