"""Alleles as a source has them, and their cut into segments: what of a gene lies in the CDR3 (IMGT 105-117).

    V  what follows the codon of Cys 104, up to the gene's 3' end
    D  the whole gene
    J  the gene's 5' end up to, not including, the codon of Phe/Trp 118

The conserved codon itself may be mutated: the cut is made at its *position*, the anchor, and a note says what it reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.germline import SegmentType

CODON = 3
CYS = ("TGT", "TGC")
PHE_TRP = ("TTT", "TTC", "TGG")
STOP = ("TAA", "TAG", "TGA")

FUNCTIONAL = {"F": "F", "ORF": "ORF", "P": "P", "(F)": "F", "[F]": "F", "(ORF)": "ORF", "[ORF]": "ORF", "(P)": "P",
              "[P]": "P"}  # fmt: skip
"""IMGT's functionality codes, and what the table writes for them."""

EVIDENCE = {"(": "known from rearranged sequences only", "[": "not known whether germline or rearranged"}
"""What IMGT's brackets around a functionality code mean."""

NUCLEOTIDES = frozenset("ACGTURYSWKMBDHVN")
"""IUPAC's letters: any other is no nucleotide sequence."""

_NAME = re.compile(r"(IG[HKL]|TR[ABDG])([VDJ])(?!\*)")


class NoSegmentError(Exception):
    """An allele has no segment that can be relied on; the message is the reason."""


@dataclass(frozen=True)
class Gene:
    """One allele as a source has it.

    sequence   upper case, without gaps, 5' to 3'; a whole V-, D- or J-REGION, perhaps with what stands around it
    anchor     0-based place in `sequence` of the first base of codon 104 (V) or 118 (J); None, if not found, with
               the reason in `no_anchor`
    function   the source's own functionality code (`authority` says whose); empty, if not stated
    species    as FASTA headers name it; empty, if not stated
    source     the beginning of the table's column of that name; notes go behind it, `closing` ones last
    called     what reasons call the sequence
    refusal    why the allele cannot be used; `outside`: why it is not of this table at all
    """

    kind: SegmentType
    allele: str
    locus: str
    sequence: str
    source: str
    anchor: int | None = None
    no_anchor: str = ""
    function: str = ""
    authority: str = "IMGT"
    species: str = ""
    called: str = "the sequence"
    notes: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    refusal: str = ""
    outside: str = ""


@dataclass(frozen=True)
class Given:
    """What an anchors file says of an allele (see `anchors.read_anchors`)."""

    anchor: int | None = None
    function: str = ""
    reverse: bool = False
    reads: str = ""
    note: str = ""
    refuse: str = ""


@dataclass(frozen=True)
class Row:
    """One row of a germline table.  `function` is the source's own code, of which `functional` is made."""

    locus: str
    segment_type: SegmentType
    allele: str
    functional: str
    sequence: str
    source: str
    function: str = ""
    authority: str = "IMGT"

    @property
    def gene(self) -> str:
        """The gene's name: the allele's, less `*01`."""
        return gene_of(self.allele)

    def noted(self, *notes: str) -> Row:
        """This row with `notes` appended to its source."""
        return replace(self, source="; ".join([self.source, *notes]))


def gene_of(allele: str) -> str:
    """The gene's name: the allele's, less `*01`."""
    return allele.partition("*")[0]


def natural_key(allele: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Sort key by which TRBV2 stands before TRBV12-1, and *01 before *02.

    >>> sorted(["TRBV12-1*01", "TRBV2*02", "TRBV2*01"], key=natural_key)
    ['TRBV2*01', 'TRBV2*02', 'TRBV12-1*01']
    """
    gene, _, number = allele.partition("*")
    return _parts(gene), _parts(number)


def _parts(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def named_locus(allele: str) -> tuple[str, str]:
    """Locus and segment type that an allele's name tells, empty where it does not.

    IGHD*01 is the constant gene of IgD, no D segment.

    >>> named_locus("TRBV1*01"), named_locus("TRAV14/DV4*01"), named_locus("IGHD*01")
    (('TRB', 'V'), ('TRA', 'V'), ('', ''))
    """
    found = _NAME.match(allele)
    return (found[1], found[2]) if found else ("", "")


def cut(gene: Gene, given: Given | None = None) -> Row:
    """The row of one allele, or NoSegmentError."""
    given = given or Given()
    for reason in (given.refuse, gene.refusal):
        if reason:
            raise NoSegmentError(reason)
    _require_nucleotides(gene)
    row = _labelled(gene, given.function or gene.function)
    if gene.kind == "D":
        return _cut_d(gene, row, given)
    sequence, anchor = _placed(gene, given)
    segment, codon_notes = (_cut_v if gene.kind == "V" else _cut_j)(gene, sequence, anchor)
    at_hand = given.anchor is not None and given.note
    # Who moves an anchor says why, and what the frame before it reads is then no news.
    stops = [given.note] if at_hand else _stop_notes(sequence, anchor) if gene.kind == "V" else []
    last = [] if at_hand or not given.note else [given.note]
    notes = [*gene.notes, *stops, *codon_notes, *_name_notes(gene.allele), *last, *gene.closing]
    return replace(row, sequence=segment).noted(*notes)


def _require_nucleotides(gene: Gene) -> None:
    if not gene.sequence:
        raise NoSegmentError("no sequence")
    odd = sorted(set(gene.sequence) - NUCLEOTIDES)
    if odd:
        raise NoSegmentError(f"not a nucleotide sequence: it holds {odd[0]!r}")


def _labelled(gene: Gene, function: str) -> Row:
    """The row without its segment: functionality and what there is to say of it."""
    if function and function not in FUNCTIONAL:
        raise NoSegmentError(f"unknown functionality code {function!r}; IMGT has F, ORF and P, in brackets or not")
    row = Row(gene.locus, gene.kind, gene.allele, FUNCTIONAL.get(function, "F"), "", gene.source, function)
    row = replace(row, authority=gene.authority)
    if function[:1] in EVIDENCE:
        return row.noted(f"{gene.authority} {function}: {EVIDENCE[function[0]]}")
    if not function and gene.kind != "D":
        return row.noted("functionality not stated in the source, taken as F")
    return row


def _placed(gene: Gene, given: Given) -> tuple[str, int]:
    """Sequence and anchor, after what the anchors file says."""
    if given.anchor is None:
        if gene.anchor is None:
            raise NoSegmentError(gene.no_anchor)
        return gene.sequence, gene.anchor
    sequence = reverse_complement(gene.sequence) if given.reverse else gene.sequence
    found = sequence[given.anchor : given.anchor + len(given.reads)]
    if found != given.reads:
        raise NoSegmentError(
            f"the anchors file expects {given.reads} from base {given.anchor} on, there stands {found or 'nothing'}"
        )
    return sequence, given.anchor


def _cut_v(gene: Gene, sequence: str, anchor: int) -> tuple[str, list[str]]:
    """What follows the codon of Cys 104, and notes."""
    codon, segment = sequence[anchor : anchor + CODON], sequence[anchor + CODON :]
    if len(codon) < CODON:
        raise NoSegmentError(f"truncated: {gene.called} ends before codon 104 is complete")
    if not segment:
        raise NoSegmentError(f"truncated: {gene.called} ends with codon 104 and leaves no segment")
    _require_plain(segment)
    return segment, [] if codon in CYS else [f"codon 104 reads {codon}"]


def _cut_j(gene: Gene, sequence: str, anchor: int) -> tuple[str, list[str]]:
    """What precedes the codon of Phe/Trp 118, and notes."""
    codon = sequence[anchor : anchor + CODON]
    if anchor <= 0 or len(codon) < CODON:
        raise NoSegmentError(f"its anchor, {anchor}, lies outside the sequence of {len(sequence)} nt")
    _require_plain(sequence[:anchor])
    return sequence[:anchor], [] if codon in PHE_TRP else [f"codon 118 reads {codon}"]


def _cut_d(gene: Gene, row: Row, given: Given) -> Row:
    """The whole gene, and notes."""
    _require_plain(gene.sequence)
    row = replace(row, sequence=gene.sequence)
    orphon = re.search(r"/OR(\d+)", gene.allele)
    notes = [*gene.notes, *filter(None, [given.note])]
    if orphon and row.functional == "F":
        where = f"orphon on chromosome {orphon[1]}: cannot take part in {gene.locus} recombination, so ORF"
        return replace(row, functional="ORF").noted(where, *notes)
    if not row.function:
        notes.insert(0, "functionality not stated in the source, taken as F")
    return row.noted(*notes)


def _require_plain(segment: str) -> None:
    odd = sorted(set(segment) - set("ACGT"))
    if odd:
        raise NoSegmentError(f"ambiguous: the segment holds {odd[0]!r}, not only A, C, G, T")


def _stop_notes(sequence: str, anchor: int) -> list[str]:
    """A note if a stop codon stands upstream of Cys 104 in its frame: no such gene can be functional."""
    codons = (sequence[start : start + CODON] for start in range(anchor % CODON, anchor, CODON))
    return ["stop codon in frame before Cys 104"] if any(codon in STOP for codon in codons) else []


def _name_notes(allele: str) -> list[str]:
    """A note if the part behind `*` is not an allele number (01 ...) but names a variant found in data."""
    return [] if re.fullmatch(r"[^*]+\*\d\d", allele) else ["not an IMGT allele name"]
