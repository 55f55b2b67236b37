"""Clonotypes: the amino-acid junctions of each V and J gene, and the nucleotide junctions that spell them.

In tables with amino acids only, each clonotype counts as one junction.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.dealing import Part
from hpcvdj.chance.p_values import Counts
from hpcvdj.errors import InputError
from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.neighbours.counted import CountedSequences
from hpcvdj.kernels.neighbours.likely_errors import likely_errors
from hpcvdj.kernels.threads import taken
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import amino_acid_column, amino_acids, has_nucleotides, kinds_of, letter_words

REPEATED, REPEATED_ROWS = "junction that another row of the individual has", "junctions that another row has"
"""The rows of a cohort, and of one table, that count together with another row of the same junction."""


@dataclass(frozen=True)
class Clonotypes:
    """Clonotypes, sorted by class, length and letters.

    classes   the (V genes, J genes) of each class, as alleles of the model
    kind      int64 [clonotypes]: the class
    letters   uint8 [clonotypes, width]: the amino acids as ASCII
    lengths   int64 [clonotypes]: the number of amino acids
    variants  int64 [clonotypes]: the number of distinct nucleotide junctions; 1 for amino acids
    reads     int64 [clonotypes]: the sum of the reads; None if the input has no read counts
    repertoire a nucleotide junction of each clonotype, or its amino acids
    left_out  the number of rows that take no part, by the reason
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

    @property
    def nucleotides(self) -> bool:
        """Whether the junctions are nucleotides, not amino acids."""
        return has_nucleotides(self.repertoire)

    def texts(self, rows: Counts) -> dict[str, pa.StringArray]:
        """Return the column with the amino acids of some clonotypes."""
        columns = amino_acid_column(self.repertoire, self.letters[rows], self.lengths[rows])
        return {name: column.cast(pa.string()) for name, column in columns.items()}


@dataclass(frozen=True)
class DistinctJunctions:
    """The distinct junctions, as they are read, of each V and J gene of an individual.

    repertoire  the junctions of all rows, by their genes
    rows        int64 [junctions]: a row of `repertoire` for each distinct junction, in blocks
    reads       int64 [junctions]: the reads of all rows of a junction; None if the input has no read counts
    errors      bool [junctions]: likely sequencing errors, which take no part; None if they are kept, or not known
    repeated    the number of rows that have the junction and genes of another one
    """

    repertoire: Repertoire
    rows: Counts
    reads: Counts | None
    errors: NDArray[np.bool_] | None
    repeated: int

    def clonotypes(self, min_reads: int = 1) -> Clonotypes:
        """Return the clonotypes of the junctions with at least `min_reads`; raises InputError if none is left."""
        left_out = {REPEATED_ROWS: self.repeated}
        keep = np.ones(len(self.rows), dtype=bool) if self.reads is None else self.reads >= min_reads
        left_out[f"fewer than {min_reads} reads"] = int((~keep).sum())
        if self.errors is not None:
            left_out["likely sequencing errors"] = int((self.errors & keep).sum())
            keep &= ~self.errors
        if not keep.any():
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
            raise InputError(f"no clonotype is left ({reasons or 'no row could be read'})")
        return _translated(self.repertoire, self.rows[keep], None if self.reads is None else self.reads[keep], left_out)

    def read_once(self) -> int:
        """Return the number of junctions with one read if they are the majority, else 0.  Needs read counts."""
        assert self.reads is not None
        reads = self.reads if self.errors is None else self.reads[~self.errors]
        once = int((reads == 1).sum())
        return once if 2 * once > len(reads) else 0


def distinct_junctions(part: Part, *, errors: bool = False) -> DistinctJunctions:
    """Find the distinct junctions of productive rows of one individual.

    errors  keep likely sequencing errors
    """
    repertoire = part.repertoire
    kind = kinds_of(repertoire)
    same, first = equal_runs(repertoire.words, blocks(repertoire.lengths.astype(np.int64), kind)[1])
    rows, repeated = same[first], len(repertoire) - len(first)
    if part.reads is None:
        return DistinctJunctions(repertoire, rows, None, None, repeated)
    summed = np.add.reduceat(part.reads[same].astype(np.int64), first)
    wrong = None
    if not errors and has_nucleotides(repertoire):
        nobody = np.zeros(len(rows), dtype=np.int64)
        every = CountedSequences(*repertoire.packed(rows), summed, nobody)
        wrong = likely_errors(every, kind[rows], np.arange(len(rows)))
    return DistinctJunctions(repertoire, rows, summed, wrong, repeated)


def _translated(repertoire: Repertoire, rows: Counts, reads: Counts | None, left_out: dict[str, int]) -> Clonotypes:
    """Find the clonotypes of the `rows` of a repertoire, which are distinct junctions in blocks."""
    kind = kinds_of(repertoire)[rows]
    letters, codons = amino_acids(repertoire, rows)
    same, first = equal_runs(letter_words(letters), blocks(codons, kind)[1])
    chosen = same[first]
    offsets = np.searchsorted(kind[chosen], np.arange(len(repertoire.pairs) + 1))
    spelled_by = rows[chosen]
    words, lengths = taken(repertoire.words, spelled_by), taken(repertoire.lengths, spelled_by)
    spelled = Repertoire(words, lengths, repertoire.pairs, offsets, repertoire.letters)
    letters, codons = taken(letters, chosen), codons[chosen]
    return Clonotypes(
        repertoire.pairs, kind[chosen], letters, codons, np.diff(np.append(first, len(rows))),
        None if reads is None else np.add.reduceat(reads[same], first), spelled, left_out,
    )  # fmt: skip
