"""Distinct productive junctions with their genes and amino acids: of individuals, or drawn from a model."""

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.distinct import distinct
from hpcvdj.kernels.neighbours.blocks import groups
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import LONGEST_JUNCTION, Repertoire
from hpcvdj.recombination.selection import Counts, Floats, Genes, Selection
from hpcvdj.repertoires.genes import amino_acids, by_gene, has_nucleotides, kinds_of, without_genes
from hpcvdj.repertoires.junctions import Junctions

AMINO_ACID_WORDS = LONGEST_JUNCTION // (3 * 8)
"""Words of eight amino acids of the longest junction."""


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

    def lots(self, number: int, seed: int) -> Counts:
        """A number from 0 to number - 1 for each, int64 [junctions]: the same for a junction wherever it comes from."""
        mixed = np.array([zlib.crc32(",".join(pair).encode()) for pair in self.genes], dtype=np.uint64)[self.pair]
        factor = np.random.default_rng([seed, 2]).integers(1 << 63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        words = self.repertoire.words
        if not has_nucleotides(self.repertoire):
            # The same words, whatever else is in the repertoire.
            words = np.pad(words, ((0, 0), (0, AMINO_ACID_WORDS - words.shape[1])))
        for part in (self.repertoire.lengths.astype(np.uint64), *words.T):
            # The upper half of a product depends on all bits of its factors.
            mixed = (mixed ^ part) * factor
            mixed ^= mixed >> np.uint64(32)
        upper = mixed >> np.uint64(32)
        return ((upper * np.uint64(number)) >> np.uint64(32)).astype(np.int64)


def of_individuals(
    junctions: Junctions, model: Model, broken: Collection[str] = ()
) -> tuple[DistinctJunctions, Counts, dict[str, int]]:
    """The junctions of individuals that take part, how many each has, and rows that are left out, by the reason.

    An individual is a repertoire of `junctions`.  Genes that the model can choose, one V and one J, take part.

    broken  genes that do not take part
    """
    repertoire, order = by_gene(junctions.repertoire, model)
    genes = [(v.allele, j.allele) for v, j in repertoire.pairs]
    several = np.array([any(map(model.names_several, pair)) for pair in genes], dtype=bool)
    never = np.array([not (v.places and j.places) for v, j in repertoire.pairs], dtype=bool) & ~several
    sizes = np.diff(repertoire.offsets)
    single = np.repeat(~several & ~never, sizes)
    sound = without_genes(repertoire, broken)
    rows = np.flatnonzero(single & sound)
    individuals = max(1, len(junctions.repertoire_ids or []))
    holder = junctions.repertoire_of[order][rows].astype(np.int64)
    found, of_individual = DistinctJunctions.of(repertoire.subset(rows), holder, individuals)
    left_out = {
        "with several V or J genes": int(sizes[several].sum()),
        "with genes that the model never chooses": int(sizes[never].sum()),
        "with genes that the model makes wrongly": int((single & ~sound).sum()),
        "that another row of the individual repeats": len(rows) - int(of_individual.sum()),
    }
    return found, of_individual, left_out
