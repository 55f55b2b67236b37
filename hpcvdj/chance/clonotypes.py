"""Clonotypes: the amino-acid junctions of each V and J gene, and the nucleotide junctions that spell them.

In tables with amino acids only, each clonotype counts as one junction.  The junctions of one V, J and length are on one
rank.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Counts
from hpcvdj.chance.parts import Part
from hpcvdj.errors import TooFewError
from hpcvdj.kernels.neighbours.blocks import blocks, equal_runs
from hpcvdj.kernels.neighbours.counted import CountedSequences
from hpcvdj.kernels.neighbours.likely_errors import TIMES_THE_READS, likely_errors
from hpcvdj.kernels.threads import taken
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import (
    amino_acid_column,
    amino_acids,
    has_nucleotides,
    kinds_of,
    letter_words,
    merged,
    numbers_of_pairs,
    stacked,
)
from hpcvdj.repertoires.read_counts import MOST
from hpcvdj.runs.run import Run

REPEATED, REPEATED_ROWS = "junction that another row of the individual has", "junctions that another row has"
"""The rows of a cohort, and of one table, that count together with another row of the same junction."""


@dataclass(frozen=True)
class Clonotypes:
    """Clonotypes of this rank, sorted by class, length and letters.

    classes   the (V genes, J genes) of each class on all ranks, as alleles of the model
    kind      int64 [clonotypes]: the class
    letters   uint8 [clonotypes, width]: the amino acids as ASCII
    lengths   int64 [clonotypes]: the number of amino acids
    variants  int64 [clonotypes]: the number of distinct nucleotide junctions; 1 for amino acids
    reads     int64 [clonotypes]: the sum of the reads; None if the input has no read counts
    repertoire a nucleotide junction of each clonotype, or its amino acids
    example   a junction of any rank
    left_out  the number of rows of all ranks that take no part, by the reason
    """

    classes: list[tuple[Alleles, Alleles]]
    kind: Counts
    letters: NDArray[np.uint8]
    lengths: Counts
    variants: Counts
    reads: Counts | None
    repertoire: Repertoire
    example: Repertoire
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def nucleotides(self) -> bool:
        """Whether the junctions are nucleotides, not amino acids."""
        return has_nucleotides(self.repertoire)

    def on_root(self, rows: Counts, run: Run) -> "tuple[Clonotypes, Counts, Counts | slice] | None":
        """Gather some clonotypes of each rank on root.

        rows  int64, ascending: those of this rank

        Returns clonotypes; the places of the gathered ones among them, ascending; and an index, which puts values of
        the gathered ones, those of one rank after the other, into this order.  None on the other ranks.
        """
        if run.ranks == 1:
            return self, rows, slice(None)
        parts = run.gather(self.only(rows))
        if parts is None:
            return None
        repertoire, order = merged([part.repertoire for part in parts])
        letters = taken(stacked([part.letters for part in parts]), order)
        kind, lengths, variants = (
            np.concatenate([getattr(part, name) for part in parts])[order] for name in ("kind", "lengths", "variants")
        )
        reads = None if self.reads is None else np.concatenate([part.reads for part in parts])[order]
        joined = replace(
            self, kind=kind, letters=letters, lengths=lengths, variants=variants, reads=reads, repertoire=repertoire
        )
        return joined, np.arange(len(order)), order

    def only(self, rows: Counts) -> "Clonotypes":
        """Select some clonotypes; `rows` ascend."""
        return replace(
            self, kind=self.kind[rows], letters=taken(self.letters, rows), lengths=self.lengths[rows],
            variants=self.variants[rows], reads=None if self.reads is None else self.reads[rows],
            repertoire=self.repertoire.subset(rows),
        )  # fmt: skip

    def texts(self, rows: Counts) -> dict[str, pa.StringArray]:
        """Return the column with the amino acids of some clonotypes."""
        columns = amino_acid_column(self.example, taken(self.letters, rows), self.lengths[rows])
        return {name: column.cast(pa.string()) for name, column in columns.items()}


@dataclass(frozen=True)
class DistinctJunctions:
    """The distinct junctions of this rank, as they are read, of each V and J gene of an individual.

    repertoire  the junctions of all rows, by their genes
    rows        int64 [junctions]: a row of `repertoire` for each distinct junction, in blocks
    reads       int64 [junctions]: the reads of all rows of a junction; None if the input has no read counts
    errors      bool [junctions]: likely sequencing errors, which take no part; None if they are kept, or not known
    repeated    the number of rows that have the junction and genes of another one
    run         the ranks
    """

    repertoire: Repertoire
    rows: Counts
    reads: Counts | None
    errors: NDArray[np.bool_] | None
    repeated: int
    run: Run

    def kept(self, min_reads: int) -> NDArray[np.bool_]:
        """Which junctions have at least `min_reads` and are no likely errors, bool [junctions]."""
        keep = np.ones(len(self.rows), dtype=bool) if self.reads is None else self.reads >= min_reads
        return keep if self.errors is None else keep & ~self.errors

    def clonotypes(self, min_reads: int = 1) -> Clonotypes:
        """Return the clonotypes of the junctions with at least `min_reads`; raises TooFewError if no rank has any."""
        of_rank = {REPEATED_ROWS: self.repeated}
        keep = self.kept(min_reads)
        few = 0 if self.reads is None else int((self.reads < min_reads).sum())
        of_rank[f"fewer than {min_reads} reads"] = few
        if self.errors is not None:
            of_rank["likely sequencing errors"] = len(keep) - int(keep.sum()) - few
        *numbers, kept = self.run.sum(np.array([*of_rank.values(), keep.sum()], dtype=np.int64)).tolist()
        left_out = dict(zip(of_rank, numbers, strict=True))
        if not kept:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
            raise TooFewError(f"no clonotype is left ({reasons or 'no row could be read'})").everywhere()
        reads = None if self.reads is None else self.reads[keep]
        return _translated(self.repertoire, self.rows[keep], reads, left_out, self.run)

    def read_once(self) -> int:
        """Return the number of junctions of all ranks with one read if they are the majority, else 0.

        Needs read counts.
        """
        assert self.reads is not None
        reads = self.reads if self.errors is None else self.reads[~self.errors]
        once, every = self.run.sum(np.array([(reads == 1).sum(), len(reads)])).tolist()
        return once if 2 * once > every else 0


def distinct_junctions(part: Part, *, errors: bool = False, run: Run | None = None) -> DistinctJunctions:
    """Find the distinct junctions of productive rows of one individual.

    errors  keep likely sequencing errors
    run     the ranks, each of which has rows; None for this rank alone
    """
    run = run or Run()
    repertoire = part.repertoire
    kind = kinds_of(repertoire)
    same, first = equal_runs(repertoire.words, blocks(repertoire.lengths.astype(np.int64), kind)[1])
    rows, repeated = same[first], len(repertoire) - len(first)
    if part.reads is None:
        return DistinctJunctions(repertoire, rows, None, None, repeated, run)
    summed = np.add.reduceat(part.reads[same].astype(np.int64), first)
    wrong = None
    if not errors and has_nucleotides(repertoire):
        nobody = np.zeros(len(rows), dtype=np.int64)
        every = CountedSequences(*repertoire.packed(rows), summed, nobody)
        wrong = likely_errors(*_with_originals(every, kind[rows], run), np.arange(len(rows)))
    return DistinctJunctions(repertoire, rows, summed, wrong, repeated, run)


def _with_originals(every: CountedSequences, pairs: Counts, run: Run) -> tuple[CountedSequences, Counts]:
    """Append the sequences of other ranks of which some sequence of this rank may be an error.

    pairs  V and J of each sequence; -1 of an appended one, as inserted and deleted bases matter out of frame only
    """
    if run.ranks == 1:
        return every, pairs
    fewest = min(run.gather_everywhere(int(every.reads.min(initial=MOST))))
    originals = every[every.reads // TIMES_THE_READS >= fewest]
    others = [part for rank, part in enumerate(run.gather_everywhere(originals)) if rank != run.rank]
    parts = every, *others
    every = CountedSequences(
        stacked([part.words for part in parts]), np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.reads for part in parts]), np.concatenate([part.individuals for part in parts]),
    )  # fmt: skip
    return every, np.append(pairs, np.full(len(every) - len(pairs), -1))


def _translated(
    repertoire: Repertoire, rows: Counts, reads: Counts | None, left_out: dict[str, int], run: Run
) -> Clonotypes:
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
    classes = numbers_of_pairs(run.gather_everywhere(repertoire.pairs))
    examples = run.gather_everywhere(spelled.subset(np.arange(min(1, len(spelled)))))
    example = next(example for example in examples if len(example))
    of_all = np.array([classes[pair] for pair in repertoire.pairs], dtype=np.int64)
    return Clonotypes(
        list(classes), of_all[kind[chosen]], letters, codons, np.diff(np.append(first, len(rows))),
        None if reads is None else np.add.reduceat(reads[same], first), spelled, example, left_out,
    )  # fmt: skip
