"""Distinct productive junctions of individuals, or drawn from a model, with their genes and amino acids."""

import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.dealing import Dealt
from hpcvdj.chance.draws import log_factors
from hpcvdj.kernels.distinct import distinct
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.recombination.selection import Counts, Floats, Genes, SelectionFactor
from hpcvdj.repertoires.genes import amino_acids, kinds_of, merged, without_genes

LEFT_OUT = (
    "with several V or J genes",
    "with genes that the model never chooses",
    "with genes that the model makes wrongly",
    "that another row of the individual repeats",
)
"""The reasons for which rows take no part."""


@dataclass(frozen=True)
class SingleGeneJunctions:
    """Distinct junctions with one V and one J gene each, sorted by genes, length and bases.

    repertoire  the junctions; a pair is a V and a J gene
    times       int64 [junctions]: the number of individuals that have each junction, or of draws
    """

    repertoire: Repertoire
    times: Counts

    @staticmethod
    def of(repertoire: Repertoire, holder: Counts, holders: int) -> "tuple[SingleGeneJunctions, Counts]":
        """Find distinct junctions; also return the number of those of each holder, int64 [holders].

        repertoire  junctions with the alleles of their genes, as `by_gene` returns them
        holder      int64 [junctions]: the holder, from 0 to holders - 1; for one holder, equal junctions count once
        """
        first, group = groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds_of(repertoire))
        junction, has = np.divmod(distinct(group * holders + holder), holders)
        times = np.bincount(junction, minlength=len(first))
        return SingleGeneJunctions(repertoire.subset(first), times), np.bincount(has, minlength=holders)

    @staticmethod
    def drawn(repertoire: Repertoire, broken: Collection[str] = ()) -> "SingleGeneJunctions":
        """Find the distinct ones of drawn junctions without broken genes; each counts as often as it was drawn."""
        kept = repertoire.subset(np.flatnonzero(without_genes(repertoire, broken)))
        return SingleGeneJunctions.of(kept, np.arange(len(kept)), len(kept))[0]

    def __len__(self) -> int:
        return len(self.repertoire)

    @cached_property
    def genes(self) -> list[Genes]:
        """The V and J gene of each pair."""
        return [(v.allele, j.allele) for v, j in self.repertoire.pairs]

    @cached_property
    def pair(self) -> Counts:
        """The index in `genes` of each junction's genes, int64 [junctions]."""
        return kinds_of(self.repertoire)

    @cached_property
    def amino_acids(self) -> tuple[NDArray[np.uint8], Counts]:
        """The letters, uint8 [junctions, width], ASCII padded with zeros, and their number, int64 [junctions]."""
        return amino_acids(self.repertoire, np.arange(len(self)))

    def take(self, rows: Counts) -> "SingleGeneJunctions":
        """Select some junctions; `rows` ascend."""
        return SingleGeneJunctions(self.repertoire.subset(rows), self.times[rows])

    def log_factor(self, selection: SelectionFactor) -> Floats:
        """Return ln Q of each junction."""
        return log_factors(selection, self.repertoire, self.amino_acids)

    @staticmethod
    def joined(parts: "Sequence[SingleGeneJunctions]") -> "SingleGeneJunctions":
        """Merge several parts that have no junction in common."""
        repertoire, order = merged([part.repertoire for part in parts])
        first, _ = groups(repertoire.words, repertoire.lengths.astype(np.int64), kinds_of(repertoire))
        times = np.concatenate([part.times for part in parts])[order]
        return SingleGeneJunctions(repertoire.subset(first), times[first])

    def lots(self, number: int, seed: int) -> Counts:
        """Assign a number from 0 to `number` - 1 to each junction, int64 [junctions]; equal junctions get the same."""
        upper = self.scattered(seed, 2) >> np.uint64(32)
        return ((upper * np.uint64(number)) >> np.uint64(32)).astype(np.int64)

    def scattered(self, *seed: int) -> NDArray[np.uint64]:
        """Assign a random number to each junction, uint64 [junctions]; equal junctions get the same."""
        mixed = np.array([zlib.crc32(",".join(pair).encode()) for pair in self.genes], dtype=np.uint64)[self.pair]
        factor = np.random.default_rng(seed).integers(1 << 63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        for part in (self.repertoire.lengths.astype(np.uint64), *self.repertoire.words.T):
            # The upper half of a product depends on all bits of its factors.
            product = (mixed ^ part) * factor
            # Words of 0 pad a junction to the longest one beside it, and must not change its number.
            mixed = np.where(part > 0, product ^ (product >> np.uint64(32)), mixed)
        return mixed


def of_individuals(
    dealt: Dealt, model: Model, broken: Collection[str] = ()
) -> tuple[SingleGeneJunctions, Counts, dict[str, int]]:
    """Find the distinct junctions that take part: they have one V and one J gene, which the model can choose.

    broken  genes that do not take part

    Returns the junctions of this rank; the number of those of each individual on all ranks, an individual being a
    sample of `dealt`; and the number of rows on all ranks that are left out, by the reason.
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
        holder = rows.sample[chosen].astype(np.int64)
        junctions, numbers = SingleGeneJunctions.of(repertoire.subset(chosen), holder, individuals)
        parts.add(junctions.repertoire)
        times.append(junctions.times)
        of_individual += numbers
        left_out += sizes[several].sum(), sizes[never].sum(), (single & ~sound).sum(), len(chosen) - numbers.sum()
    return (
        SingleGeneJunctions(parts.repertoire(), np.concatenate(times)),
        dealt.run.sum(of_individual),
        dict(zip(LEFT_OUT, dealt.run.sum(left_out).tolist(), strict=True)),
    )
