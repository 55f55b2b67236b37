"""Alleles of a source, and the segment of a gene that is in the CDR3 (IMGT positions 105 to 117).

    V  from after the codon of Cys 104 to the gene's 3' end
    D  the whole gene
    J  from the gene's 5' end to before the codon of Phe/Trp 118

The cut is at the *position* of the conserved codon, the anchor, because the codon itself may be mutated.  A note names
a mutated codon.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from hpcvdj.errors import told
from hpcvdj.recombination.germline import FUNCTIONS, Segment, SegmentType

CODON = 3
CYS = ("TGT", "TGC")
PHE_TRP = ("TTT", "TTC", "TGG")
STOP = {"TAA", "TAG", "TGA"}

NUCLEOTIDES = set("ACGTURYSWKMBDHVN")
"""IUPAC's symbols of nucleotides."""

FUNCTIONAL = {"": "F"} | {code: plain for plain in FUNCTIONS for code in (plain, f"({plain})", f"[{plain}]")}
"""The table's functionality for each of IMGT's codes, and for a missing code."""

EVIDENCE = {"(": "known from rearranged sequences only", "[": "not known whether germline or rearranged"}
"""The meaning of IMGT's brackets around a functionality code."""


class RefusalKind(Enum):
    """A kind of reason to refuse an allele.

    text     the message about all alleles of the kind
    outside  whether the allele does not belong in the table: its gene is then not reported as lost
    """

    NO_ANCHOR = "no anchor"
    NO_MODEL_ANCHOR = "the model gives no anchor for it"
    NO_MODEL_SEQUENCE = "the model lists an anchor but no sequence"
    ANCHOR_OUTSIDE = "its anchor is outside the sequence"
    ANCHOR_MISMATCH = "the sequence differs from what the anchors file expects"
    TRUNCATED = "truncated"
    LONGER = "reads on beyond the germline end"
    AMBIGUOUS = "ambiguous"
    NOT_NUCLEOTIDES = "not a nucleotide sequence"
    NO_SEQUENCE = "no sequence"
    UNKNOWN_FUNCTION = "its functionality is not IMGT's F, ORF or P, in brackets or not"
    SEVERAL_SEGMENTS = "listed several times with different segments or functionality"
    NOT_ACTIVE = "not active in the set"
    BY_HAND = ""
    REPEATED = "listed again with the same segment; kept once", True
    OTHER_SPECIES = "of another species", True
    OTHER_LOCUS = "of another locus", True
    OTHER_REGION = "not a V, D or J region", True
    NO_LOCUS = "its name does not tell the locus; give {locus}", True
    NOT_IN_SOURCES = "the anchors file lists it, but no source has it", True

    def __init__(self, text: str, outside: bool = False) -> None:
        self.text, self.outside = text, outside


class Reason(NamedTuple):
    """Why an allele is refused: a kind, and the details of this allele."""

    kind: RefusalKind
    detail: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, (told(self.kind.text), self.detail)))


@dataclass
class Gene:
    """An allele of a source; `cut` makes it an allele of the table.

    sequence    upper case, without gaps, 5' to 3': a V-, D- or J-REGION with its surroundings; after `cut`, the segment
    anchor      0-based position in `sequence` of the first base of codon 104 (V) or 118 (J), or why it is unknown;
                without meaning for D
    function    the source's functionality code, of `authority`; empty if it is not stated
    functional  the table's functionality code, set by `cut`
    species     empty if it is not stated
    source      the beginning of the table's column `source`; `notes` follow, then `last_notes`
    called      the words for the sequence in reasons
    refusal     why the allele is not in the table
    lost        whether no allele of its gene is in the table
    note_stops  whether stop codons before Cys 104, in its frame, are noted
    """

    segment_type: SegmentType
    allele: str
    locus: str
    sequence: str
    source: str
    anchor: int | Reason = 0
    function: str = ""
    functional: str = ""
    authority: str = "IMGT"
    species: str = ""
    called: str = "the sequence"
    notes: list[str] = field(default_factory=list)
    last_notes: list[str] = field(default_factory=list)
    refusal: Reason | None = None
    lost: bool = False
    note_stops: bool = True

    @property
    def gene(self) -> str:
        """The name of the gene: that of the allele without `*01`."""
        return self.allele.partition("*")[0]

    @property
    def outside(self) -> bool:
        """Whether the allele does not belong in the table."""
        return self.refusal is not None and self.refusal.kind.outside

    @property
    def reason(self) -> str:
        """Why the allele is not in the table, in words."""
        return f"{self.refusal}; the gene is lost" if self.lost else str(self.refusal)

    @property
    def row(self) -> Segment:
        """The row of the table, after `cut`."""
        source = "; ".join([self.source, *self.notes, *self.last_notes])
        return Segment(self.locus, self.segment_type, self.allele, self.functional, self.sequence, source)

    def require(self, condition: object, kind: RefusalKind, detail: str = "") -> None:
        """Refuse the allele unless the condition holds.  Of several reasons, the first counts."""
        if not condition and self.refusal is None:
            self.refusal = Reason(kind, detail)


def natural_key(allele: str) -> list[list[tuple[int, str]]]:
    """A sort key that orders TRBV2 before TRBV12-1, and *01 before *02.

    >>> sorted(["TRBV12-1*01", "TRBV2*02", "TRBV2*01"], key=natural_key)
    ['TRBV2*01', 'TRBV2*02', 'TRBV12-1*01']
    """
    halves = (re.split(r"(\d+)", half) for half in allele.partition("*")[::2])
    return [[(int(part), "") if part.isdecimal() else (-1, part) for part in parts] for parts in halves]


def named_locus(allele: str) -> tuple[str, str]:
    """Locus and segment type in an allele's name, empty if it has none.

    IGHD*01 is the constant gene of IgD, not a D segment.

    >>> named_locus("TRBV1*01"), named_locus("TRAV14/DV4*01"), named_locus("IGHD*01")
    (('TRB', 'V'), ('TRA', 'V'), ('', ''))
    """
    match = re.match(r"(IG[HKL]|TR[ABDG])([VDJ])(?!\*)", allele)
    return (match[1], match[2]) if match else ("", "")


def cut(gene: Gene) -> None:
    """Replace the sequence of an allele by its segment, and add notes; or refuse the allele."""
    code = gene.function
    gene.require(gene.sequence, RefusalKind.NO_SEQUENCE)
    other = _others(gene.sequence, NUCLEOTIDES)
    gene.require(not other, RefusalKind.NOT_NUCLEOTIDES, f"it contains {other!r}")
    gene.require(code in FUNCTIONAL, RefusalKind.UNKNOWN_FUNCTION, repr(code))
    gene.functional = FUNCTIONAL.get(code, "")
    orphon = re.search(r"/OR(\d+)", gene.allele)
    if orphon and gene.segment_type == "D" and gene.functional == "F":
        gene.functional, where = "ORF", f"orphon on chromosome {orphon[1]}"
        gene.notes.insert(0, f"{where}: cannot take part in {gene.locus} recombination, so ORF")
    elif not code:
        gene.notes.insert(0, "functionality not stated in the source, taken as F")
    if code[:1] in EVIDENCE:
        gene.notes.insert(0, f"{gene.authority} {code}: {EVIDENCE[code[0]]}")
    if gene.segment_type != "D":
        _cut_at_anchor(gene)
    other = _others(gene.sequence, set("ACGT"))
    gene.require(not other, RefusalKind.AMBIGUOUS, f"the segment contains {other!r}, not only A, C, G, T")


def _others(sequence: str, letters: set[str]) -> str:
    """The alphabetically first letter of a sequence that is not among `letters`."""
    return min(set(sequence) - letters, default="")


def _cut_at_anchor(gene: Gene) -> None:
    """Remove the conserved codon and the bases beyond it, and note a mutated codon."""
    if isinstance(gene.anchor, Reason):
        gene.require(False, *gene.anchor)
        return
    is_v = gene.segment_type == "V"
    anchor, end = gene.anchor, gene.anchor + CODON
    codon, segment = gene.sequence[anchor:end], gene.sequence[end:] if is_v else gene.sequence[:anchor]
    complete = len(codon) == CODON
    if is_v:
        gene.require(complete, RefusalKind.TRUNCATED, f"{gene.called} ends before codon 104 is complete")
        gene.require(segment, RefusalKind.TRUNCATED, f"{gene.called} ends with codon 104 and leaves no segment")
        codons = {gene.sequence[start : start + CODON] for start in range(anchor % CODON, anchor, CODON)}
        if gene.note_stops and codons & STOP:
            gene.notes.append("stop codon in frame before Cys 104")
    gene.require(complete and segment, RefusalKind.ANCHOR_OUTSIDE, f"base {anchor} of {len(gene.sequence)} nt")
    if codon not in (CYS if is_v else PHE_TRP):
        gene.notes.append(f"codon {104 if is_v else 118} reads {codon}")
    if not re.fullmatch(r"[^*]+\*\d\d", gene.allele):
        # The text after `*` is not an allele number (01 …), but the name of a variant in data.
        gene.notes.append("not an IMGT allele name")
    gene.sequence = segment
