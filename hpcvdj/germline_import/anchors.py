"""Anchors: found by IMGT numbering or by motif, or given in a file."""

import csv
import re
from dataclasses import dataclass, fields
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import.genes import CODON, CYS, Gene, Reason, RefusalKind
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.storage.inputs import read_text

CYS_104 = (104 - 1) * CODON
"""0-based position of codon 104 in an IMGT-gapped V-REGION."""

_MOTIF = re.compile(r"(?=(?:TT[TC]|TGG)GG[ACGT][ACGT]{3}GG[ACGT])")


def ungapped(sequence: str) -> str:
    """A sequence without IMGT's gaps, upper case."""
    return sequence.translate(str.maketrans("", "", ".-")).upper()


def no_anchor(why: str) -> Reason:
    """The reason of an allele whose anchor was not found."""
    return Reason(RefusalKind.NO_ANCHOR, f"{why}; give its anchor with --anchors")


def v_anchor(gapped: str, function: str) -> int | Reason:
    """Position of codon 104 in the *ungapped* sequence by IMGT numbering of the gapped one, or why it is not known.

    A functional allele has the Cys: if it reads another codon there, its gaps are wrong.

    >>> v_anchor("." * 300 + "tactactactgtgcc", "F")
    9
    """
    codon = gapped[CYS_104 : CYS_104 + CODON].upper()
    if codon not in CYS and gapped.upper() == ungapped(gapped):
        return no_anchor("the sequence is not gapped by IMGT numbering")
    if len(ungapped(codon)) < len(codon) == CODON:
        return no_anchor("codon 104 is not complete at its IMGT position")
    if codon not in CYS and len(codon) == CODON and function.strip("()[]") in ("", "F"):
        stated = "though the allele is F" if function else "and no functionality is stated"
        return no_anchor(f"codon 104 reads {codon} by IMGT numbering, {stated}")
    return len(ungapped(gapped[:CYS_104]))


def j_anchor(sequence: str, frame: int | None = None) -> int | Reason:
    """Position of the codon of Phe/Trp 118 by the motif F/W-G-X-G, or why it is not known.

    `frame` is the position (0, 1, 2) of the first whole codon, if the source states it.  Otherwise it follows from the
    3' end: splicing leaves a J-REGION with one base over.  Without a frame the motif may be found in the wrong place:
    in mouse TRAJ7, whose codon 118 reads TTG, one base upstream.

    >>> j_anchor("CAAACACAGAAGTCTTCTTTGGTAAAGGAACCAGACTCACAGTTGTAG")
    17
    """
    where = "in its frame" if frame is not None else "in the frame that its 3' end implies"
    first = frame if frame is not None else (len(sequence) - 1) % CODON
    positions = [match.start() for match in _MOTIF.finditer(sequence) if match.start() % CODON == first]
    if len(positions) == 1:
        return positions[0]
    occurs = f"occurs {len(positions)} times" if positions else "does not occur"
    return no_anchor(f"the motif F/W-G-X-G {occurs} {where}")


@dataclass(frozen=True)
class AnchorEntry:
    """A row of an anchors file; every value but the first may be empty.

    allele        the name in the source
    anchor_index  0-based position of the first base of codon 104 or 118 in the source's sequence without gaps
    function      IMGT's functionality code in place of the source's
    strand        `-`: the source has the reverse complement, and anchor_index counts on the other strand
    reads         what the sequence must read from there on; otherwise the allele is refused
    note          goes into the table's column `source`
    refuse        why the allele is left out
    """

    allele: str
    anchor_index: str = ""
    function: str = ""
    strand: str = ""
    reads: str = ""
    note: str = ""
    refuse: str = ""

    def apply(self, gene: Gene) -> None:
        """Change an allele to what this entry says of it."""
        gene.function = self.function or gene.function
        if self.refuse and not gene.outside:
            gene.refusal = Reason(RefusalKind.BY_HAND, self.refuse)
        notes = [self.note] if self.note else []
        if not self.anchor_index or gene.segment_type == "D":
            gene.last_notes[:0] = notes
            return
        gene.notes += notes
        # A note on a moved anchor says more than the stop codons in the frame before it.
        gene.note_stops = not notes
        gene.sequence = reverse_complement(gene.sequence) if self.strand == "-" else gene.sequence
        first, expected = int(self.anchor_index), self.reads.upper()
        actual = gene.sequence[first : first + len(expected)]
        differs = Reason(RefusalKind.ANCHOR_MISMATCH, f"{expected} from base {first} on, not {actual or 'nothing'}")
        gene.anchor = first if actual == expected else differs


_COLUMNS = [field.name for field in fields(AnchorEntry)]

_PATTERNS = {
    "anchor_index": (r"\d{0,9}", "write a number of bases from 0, or leave it empty"),
    "strand": (r"[+-]?", "write + or -"),
}


def read_anchors(path: Path) -> dict[str, AnchorEntry]:
    """An anchors file by allele: CSV with the columns of `AnchorEntry`, separated by commas, semicolons or tabs.

    Only the first column is required; it may be called `gene`, as IGoR and OLGA call it.
    """
    lines = read_text(path, "anchors file", "it is a CSV file of alleles and anchors").splitlines() or [""]
    if "allele" not in lines[0]:
        lines[0] = re.sub(r"\bgene\b", "allele", lines[0])
    reader = csv.DictReader(lines, delimiter=max(",;\t", key=lines[0].count), restval="")
    entries: dict[str, AnchorEntry] = {}
    try:
        names = reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
        unknown = sorted(set(names) - {*_COLUMNS, "gene", ""})
        if "allele" not in names or unknown:
            fault = f"unknown column {unknown[0]!r}" if "allele" in names else "no column allele"
            raise InputError(f"{path}, line 1: {fault}; an anchors file has the columns {', '.join(_COLUMNS)}")
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            entry = _entry(where, {name: " ".join(row.get(name, "").split()) for name in _COLUMNS})
            if entry.allele in entries:
                raise InputError(f"{where}: {entry.allele} is listed twice; keep one row of it")
            entries[entry.allele] = entry
    except csv.Error as error:
        raise InputError(f"{path}: not readable CSV ({error}); save it as CSV again") from None
    return entries


def _entry(where: str, values: dict[str, str]) -> AnchorEntry:
    for name, (pattern, remedy) in _PATTERNS.items():
        if not re.fullmatch(pattern, values[name]):
            raise InputError(f"{where}: {name} is {values[name]!r}; {remedy}")
    if values["strand"] == "-" and not values["anchor_index"]:
        raise InputError(f"{where}: strand - without anchor_index; give the anchor on the other strand too")
    if not allele_in(values["allele"]):
        raise InputError(f"{where}: no allele; every row names one")
    return AnchorEntry(**values | {"allele": allele_in(values["allele"])})


def allele_in(name: str) -> str:
    """The allele's name, also of a whole IMGT header (accession|allele|…).

    >>> allele_in(" K02545|TRBJ1-1*01|Homo sapiens|F|J-REGION|")
    'TRBJ1-1*01'
    """
    parts = name.split("|")
    return " ".join((parts[1] if len(parts) > 1 else name).split())
