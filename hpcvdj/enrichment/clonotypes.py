"""Clonotypes: the amino-acid junctions of each V and J gene, and the nucleotide junctions that spell them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.edits import hashes, largest_near, sorted_by_hash
from hpcvdj.kernels.neighbours.degrees_cpu import near_a_larger_one
from hpcvdj.kernels.neighbours.equal import grouped
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import amino_acids, by_gene, kinds_of, nucleotide_facts, packed
from hpcvdj.repertoires.junctions import Junctions

Counts = NDArray[np.int64]

TIMES_THE_READS = 20
"""A junction is a likely sequencing error of one with one base exchanged that has so many times its reads, or with two
that has the square of it times: sequencers misread about one base in some hundred at worst, and each class has many."""


@dataclass(frozen=True)
class Clonotypes:
    """Clonotypes, sorted by class, length and letters.

    classes   (V genes, J genes) as alleles of the model, of each class
    kind      int64 [clonotypes]: the class
    letters   uint8 [clonotypes, width]: the amino acids as ASCII
    lengths   int64 [clonotypes]: how many
    variants  int64 [clonotypes]: distinct nucleotide junctions
    reads     int64 [clonotypes]: their reads added up; None if the input does not say
    repertoire one of the nucleotide junctions of each clonotype
    left_out  rows that take no part, by the reason
    """

    classes: list[tuple[Alleles, Alleles]]
    kind: Counts
    letters: NDArray[np.uint8]
    lengths: Counts
    variants: Counts
    reads: Counts | None
    repertoire: Repertoire
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.kind)

    def only(self, rows: Counts) -> "Spelled":
        """One of the nucleotide junctions of each of some clonotypes, in ascending order."""
        return Spelled(self.repertoire.subset(rows))

    def text(self, row: int) -> str:
        """The amino acids of a clonotype."""
        return self.letters[row, : self.lengths[row]].tobytes().decode()


@dataclass(frozen=True)
class Spelled:
    """Junctions of some clonotypes, in their order."""

    repertoire: Repertoire


def clonotypes_of(
    junctions: Junctions, reads: Counts | None, model: Model, *, min_reads: int = 1, errors: bool = False
) -> Clonotypes:
    """The clonotypes of productive junctions.

    reads         int64 [data rows] of the input, at least 1; None if it does not say
    min_reads  that a nucleotide junction must have
    errors        keep likely sequencing errors

    InputError if none is left.
    """
    own, order = by_gene(junctions.repertoire, model)
    of_row = np.ones(len(own), dtype=np.int64) if reads is None else reads[junctions.row[order]]
    kind = kinds_of(own)
    first, group = grouped(nucleotide_facts(own))
    summed = np.zeros(len(first), dtype=np.int64)
    np.add.at(summed, group, of_row)
    left_out = {"junctions that another row has": len(own) - len(first)}
    keep = summed >= min_reads
    left_out[f"fewer than {min_reads} reads"] = int((~keep).sum())
    if reads is not None and not errors:
        wrong = _likely_errors(own, kind, summed, first)
        left_out["likely sequencing errors"] = int((wrong & keep).sum())
        keep &= ~wrong
    if not keep.any():
        said = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
        raise InputError(f"no clonotype is left ({said or 'no row could be read'})")
    return _translated(own, first[keep], kind, summed[keep] if reads is not None else None, left_out)


def _likely_errors(own: Repertoire, kind: Counts, summed: Counts, first: Counts) -> NDArray[np.bool_]:
    """Whether each distinct junction is likely to be misread from one of its class with many more reads."""
    order = np.lexsort((own.lengths[first], kind[first]))
    rows = first[order]
    words, lengths, kinds, reads = own.words[rows], own.lengths[rows], kind[rows], summed[order]
    all_rows = np.arange(len(rows))
    every = np.empty(len(rows), dtype=np.uint64)
    hashes(words, lengths, kinds, every)
    largest = np.zeros(len(rows), dtype=np.int64)
    asked = all_rows[reads * TIMES_THE_READS <= reads.max(initial=0)]
    largest_near(words, lengths, kinds, reads, asked, *sorted_by_hash(every, all_rows), True, largest[: len(asked)])
    wrong = np.zeros(len(rows), dtype=bool)
    wrong[asked] = largest[: len(asked)] >= TIMES_THE_READS * reads[asked]
    times = TIMES_THE_READS**2
    larger = all_rows[reads >= times]
    asked = all_rows[~wrong & (reads * times <= reads.max(initial=0))]
    if len(larger) and len(asked):
        near = np.empty(len(asked), dtype=bool)
        near_a_larger_one(words, lengths, kinds, reads, asked, larger, times, near)
        wrong[asked] |= near
    out = np.empty(len(rows), dtype=bool)
    out[order] = wrong
    return out


def _translated(
    own: Repertoire, rows: Counts, kind: Counts, reads: Counts | None, left_out: dict[str, int]
) -> Clonotypes:
    """The clonotypes of distinct junctions."""
    letters, codons = amino_acids(own, rows)
    facts = packed(letters, codons, kind[rows])
    first, group = grouped(facts)
    variants = np.bincount(group)
    order = np.lexsort((*facts[first, : letters.shape[1] // 8].T[::-1], codons[first], kind[rows[first]]))
    summed = None
    if reads is not None:
        summed = np.zeros(len(first), dtype=np.int64)
        np.add.at(summed, group, reads)
        summed = summed[order]
    chosen = rows[first[order]]
    # Clonotypes are sorted by class as the junctions are, so the offsets of classes are those of the clonotypes.
    offsets = np.searchsorted(kind[chosen], np.arange(len(own.pairs) + 1))
    spelled = Repertoire(own.words[chosen], own.lengths[chosen], own.pairs, offsets, own.letters)
    return Clonotypes(
        own.pairs, kind[chosen], letters[first[order]], codons[first[order]], variants[order], summed, spelled,
        left_out,
    )  # fmt: skip
