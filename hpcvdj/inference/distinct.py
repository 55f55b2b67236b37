"""Distinct productive junctions with their genes and amino acids: of individuals, or drawn from a model."""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.dealing import Dealt
from hpcvdj.kernels.distinct import distinct
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.recombination.selection import Counts, Floats, Genes, Selection
from hpcvdj.repertoires.genes import amino_acids, kinds_of, merged, without_genes

LEFT_OUT = (
    "with several V or J genes",
    "with genes that the model never chooses",
    "with genes that the model makes wrongly",
    "that another row of the individual repeats",
)
"""Why rows of junctions take no part."""


@dataclass(frozen=True)
class DistinctJunctions:
    """Distinct junctions with one V and one J gene each, sorted by genes, length and bases.

    repertoire  the junctions; its pairs are a V and a J gene
    times       int64 [junctions]: how many individuals have it, or how often it was drawn
    """

    repertoire: Repertoire
    times: Counts

    @staticmethod
    def of(repertoire: Repertoire, holder: Counts, holders: int) -> "tuple[DistinctJunctions, Counts]":
        """The distinct ones of junctions, and how many each holder has, int64 [holders].

        repertoire  junctions with the alleles of their genes, as of `by_gene`
        holder      int64 [junctions]: whose each is, from 0 to holders - 1; for one holder, a junction counts once
        """
        first, group = groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds_of(repertoire))
        junction, has = np.divmod(distinct(group * holders + holder), holders)
        times = np.bincount(junction, minlength=len(first))
        return DistinctJunctions(repertoire.subset(first), times), np.bincount(has, minlength=holders)

    @staticmethod
    def drawn(repertoire: Repertoire, broken: Collection[str] = ()) -> "DistinctJunctions":
        """Those of drawn junctions without some genes, each of which counts as often as it was drawn."""
        kept = repertoire.subset(np.flatnonzero(without_genes(repertoire, broken)))
        return DistinctJunctions.of(kept, np.arange(len(kept)), len(kept))[0]

    def __len__(self) -> int:
        return len(self.repertoire)

    @cached_property
    def genes(self) -> list[Genes]:
        """V and J of each pair."""
        return [(v.allele, j.allele) for v, j in self.repertoire.pairs]

    @cached_property
    def pair(self) -> Counts:
        """Int64 [junctions]: the place of each junction's genes in `genes`."""
        return kinds_of(self.repertoire)

    @cached_property
    def amino_acids(self) -> tuple[NDArray[np.uint8], Counts]:
        """Uint8 [junctions, width], ASCII padded with zeros; int64 [junctions], how many."""
        return amino_acids(self.repertoire, np.arange(len(self)))

    def take(self, rows: Counts) -> "DistinctJunctions":
        """Some of them, ascending."""
        return DistinctJunctions(self.repertoire.subset(rows), self.times[rows])

    def log_factor(self, selection: Selection) -> Floats:
        """ln Q of each."""
        v, j = ([pair[k] for pair in self.genes] for k in (0, 1))
        return selection.log_factor(v, j, self.pair, *self.amino_acids)

    @staticmethod
    def joined(parts: "Sequence[DistinctJunctions]") -> "DistinctJunctions":
        """All of several that have no junction in common."""
        repertoire, order = merged([part.repertoire for part in parts])
        first, _ = groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds_of(repertoire))
        times = np.concatenate([part.times for part in parts])[order]
        return DistinctJunctions(repertoire.subset(first), times[first])

    def lots(self, number: int, seed: int) -> Counts:
        """A number from 0 to number - 1 for each, int64 [junctions]: the same for a junction wherever it comes from."""
        upper = self.scattered(seed, 2) >> np.uint64(32)
        return ((upper * np.uint64(number)) >> np.uint64(32)).astype(np.int64)

    def scattered(self, *seed: int) -> NDArray[np.uint64]:
        """A random number for each, uint64 [junctions]: the same for a junction wherever it comes from."""
        mixed = np.array([zlib.crc32(",".join(pair).encode()) for pair in self.genes], dtype=np.uint64)[self.pair]
        factor = np.random.default_rng(seed).integers(1 << 63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        for part in (self.repertoire.lengths.astype(np.uint64), *self.repertoire.words.T):
            # The upper half of a product depends on all bits of its factors.
            product = (mixed ^ part) * factor
            # There are as many words as the longest sequence beside it needs; those behind its own are 0.
            mixed = np.where(part > 0, product ^ (product >> np.uint64(32)), mixed)
        return mixed


def of_individuals(
    dealt: Dealt, model: Model, broken: Collection[str] = ()
) -> tuple[DistinctJunctions, Counts, dict[str, int]]:
    """The junctions of this rank that take part; of all ranks, how many each individual has, and rows left out.

    An individual is a sample of `dealt`.  Genes that the model can choose, one V and one J, take part.  Rows that are
    left out are counted by the reason.

    broken  genes that do not take part
    """
    individuals = max(1, len(dealt.samples))
    of_individual = np.zeros(individuals, dtype=np.int64)
    left_out = np.zeros(len(LEFT_OUT), dtype=np.int64)
    parts, times = dealt.collected(), list[Counts]()
    for rows in dealt.by_gene():
        repertoire = rows.repertoire
        several = np.array([any(model.names_several(gene.allele) for gene in pair) for pair in repertoire.pairs], bool)
        never = np.array([not (v.places and j.places) for v, j in repertoire.pairs], dtype=bool) & ~several
        sizes = np.diff(repertoire.offsets)
        single = np.repeat(~several & ~never, sizes)
        sound = without_genes(repertoire, broken)
        chosen = np.flatnonzero(single & sound)
        found, numbers = DistinctJunctions.of(
            repertoire.subset(chosen), rows.sample[chosen].astype(np.int64), individuals
        )
        parts.add(found.repertoire)
        times.append(found.times)
        of_individual += numbers
        left_out += sizes[several].sum(), sizes[never].sum(), (single & ~sound).sum(), len(chosen) - numbers.sum()
    return (
        DistinctJunctions(parts.repertoire(), np.concatenate(times)),
        dealt.run.sum(of_individual),
        dict(zip(LEFT_OUT, dealt.run.sum(left_out).tolist(), strict=True)),
    )
