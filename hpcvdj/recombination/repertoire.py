"""In vivo sequences as the kernels read them: packed, and grouped by V–J pair.

An in vivo sequence is the CDR3 in nucleotides (IMGT positions 105–117).  AIRR's `junction` is the CDR3 between the
codons of Cys 104 and Phe/Trp 118, and `junction_aa` is the junction in amino acids.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, choices, option, require_choice
from hpcvdj.recombination.alphabet import NUCLEOTIDES, Letters, decode, unpack
from hpcvdj.recombination.germline import DFormConvention, DistinctDForms, Germline, PaperDForms
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.symbols import Alphabet

LONGEST_CDR3 = 128
"""The longest CDR3 that a method accepts, in nucleotides: four 64-bit words."""

LONGEST_JUNCTION = 192
"""The longest junction whose probability is computed, in nucleotides."""

PAPER_LONGEST_CDR3 = 60
"""The longest in vivo sequence of the paper, in nucleotides (section V-A)."""

SequenceField = Literal["junction", "cdr3"]

JunctionField = Literal["junction", "junction_aa", "cdr3_aa"]
"""The AIRR fields from which junctions are read, in order of preference: nucleotides; amino acids; amino acids without
the two conserved residues, which are added as `CDR3_ENDS`."""

CDR3_ENDS = ("C", "X")
"""The ends of a junction if only its CDR3 is known, in amino acids: Cys 104, and any residue at 118."""

ANCHOR_LETTERS = {"junction": 3, "cdr3": 0, "junction_aa": 1, "cdr3_aa": 0}
"""How many letters to remove from both ends of an AIRR field to get the CDR3."""


@dataclass(frozen=True)
class Repertoire:
    """Packed in vivo sequences, grouped by V–J pair in the order of the germline table.

    words    uint64 [sequences, W]: packed sequences (see `hpcvdj.recombination.alphabet`), W = 2 up to 64 nt, else 4
    lengths  uint8 [sequences]: their lengths in nucleotides; an amino acid counts as three
    pairs    the V and J of each pair: two `Segment`s of a germline table, or two sets of `Alleles` of a model
    offsets  int64 [pairs + 1]: rows offsets[k]:offsets[k+1] belong to `pairs[k]`
    letters  the letters of the sequences: nucleotides, or the symbols of an `Alphabet`
    """

    words: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    pairs: list[tuple[Any, Any]]
    offsets: NDArray[np.int64]
    letters: Letters = NUCLEOTIDES

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def longest(self) -> int:
        """The longest CDR3 in nucleotides; 0 without sequences."""
        return int(self.lengths.max()) if len(self) else 0

    def cdr3(self, index: int) -> str:
        """Return the in vivo sequence at `index`, which must have nucleotides."""
        return decode(unpack(self.words[index], int(self.lengths[index])))

    def rows_of(self, pair: int) -> range:
        """Return the rows of a V–J pair."""
        return range(int(self.offsets[pair]), int(self.offsets[pair + 1]))

    def subset(self, rows: NDArray[np.integer[Any]]) -> "Repertoire":
        """Return the sequences at `rows`, which are in the order of their pairs, with their pairs."""
        ends = np.searchsorted(rows, self.offsets)
        used = np.flatnonzero(np.diff(ends))
        offsets = np.append(ends[used], len(rows)).astype(np.int64)
        pairs = [self.pairs[p] for p in used]
        return Repertoire(*self.packed(rows), pairs, offsets, self.letters)

    def packed(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """Return the words and the lengths of the sequences at `rows`."""
        # numpy's take copies rows several times as fast as an index does.
        return self.words.take(rows, axis=0), self.lengths[rows]


PGEN_COLUMNS = ("pgen_nt", "pgen_aa", "pgen_aa_1mm")
"""Generation probabilities of nucleotides, of amino acids, and of all amino acids within one mismatch."""

SELECTION_COLUMNS = ("q_factor", "p_post", "q_excluded")
"""The selection factor of a junction, the probability of its amino acids after selection, and why there is none."""


@dataclass(frozen=True)
class PgenProblem:
    """Generation probabilities to compute.

    repertoire  junctions, with the codons of Cys 104 and Phe/Trp 118, grouped by their sets of V and J alleles
    model       the recombination model
    names       the columns to compute: some of `PGEN_COLUMNS` in their order, without `pgen_nt` for amino acids; then
                all `SELECTION_COLUMNS`, or none
    """

    repertoire: Repertoire
    model: Model
    names: tuple[str, ...]

    @property
    def columns(self) -> int:
        """Number of values of a sequence."""
        return len(self.names)

    @property
    def symbols(self) -> Alphabet | None:
        """The alphabet of amino-acid sequences; None for nucleotides."""
        return self.repertoire.letters if isinstance(self.repertoire.letters, Alphabet) else None


@dataclass(frozen=True)
class Problem:
    """Pathways to count: sequences, germline, n-lengths 0 … `max_n`, and how D forms count."""

    repertoire: Repertoire
    germline: Germline
    max_n: int
    d_forms: str = PaperDForms.name

    def __post_init__(self) -> None:
        require_choice("d_forms", self.d_forms, choices(DFormConvention))
        if not 0 <= self.max_n <= LONGEST_CDR3:
            raise InputError(f"{option('max_n', self.max_n)}: give a number from 0 to {LONGEST_CDR3}, or all")

    @property
    def columns(self) -> int:
        """Number of counters of a sequence."""
        return self.max_n + 1

    @cached_property
    def loci(self) -> list[str]:
        """The locus of each V–J pair of the repertoire."""
        return [v.locus for v, _ in self.repertoire.pairs]

    @property
    def distinct_d_forms(self) -> bool:
        """Whether each distinct D form counts once per gene."""
        return self.d_forms == DistinctDForms.name
