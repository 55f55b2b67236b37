"""Anchors, the positions of codons 104 and 118: by IMGT numbering, by motif, or from a file."""

import re

from hpcvdj.errors import option
from hpcvdj.germline_import.genes import CODON, CYS, Gene, Reason, RefusalKind
from hpcvdj.recombination.anchors import AnchorEntry

CYS_104 = (104 - 1) * CODON
"""0-based position of codon 104 in an IMGT-gapped V-REGION."""

_MOTIF = re.compile(r"(?=(?:TT[TC]|TGG)GG[ACGT][ACGT]{3}GG[ACGT])")


def ungapped(sequence: str) -> str:
    """A sequence without IMGT's gaps, upper case."""
    return sequence.translate(str.maketrans("", "", ".-")).upper()


def no_anchor(why: str) -> Reason:
    """The reason to refuse an allele without an anchor."""
    return Reason(RefusalKind.NO_ANCHOR, f"{why}; give its anchor with {option('anchors')}")


def v_anchor(gapped: str, function: str) -> int | Reason:
    """The position of codon 104 in the *ungapped* sequence, by IMGT numbering of the gapped one; or why it is unknown.

    A functional allele has a Cys codon there.  If it has another codon, its gaps are wrong.

    >>> v_anchor("." * 300 + "tactactactgtgcc", "F")
    9
    """
    codon = gapped[CYS_104 : CYS_104 + CODON].upper()
    # By chance, one in thirty ungapped sequences has a Cys codon there.
    if gapped.upper() == ungapped(gapped):
        return no_anchor("the sequence is not gapped by IMGT numbering")
    if len(ungapped(codon)) < len(codon) == CODON:
        return no_anchor("codon 104 is not complete at its IMGT position")
    if codon not in CYS and len(codon) == CODON and function.strip("()[]") in ("", "F"):
        stated = "though the allele is F" if function else "and no functionality is stated"
        return no_anchor(f"codon 104 reads {codon} by IMGT numbering, {stated}")
    return len(ungapped(gapped[:CYS_104]))


def j_anchor(sequence: str, frame: int | None = None) -> int | Reason:
    """The position of the codon of Phe/Trp 118, by the motif F/W-G-X-G; or why it is unknown.

    `frame` is the position (0, 1, 2) of the first complete codon, if the source states it.  Otherwise the 3' end
    implies the frame: a J-REGION ends with one base of the codon that splicing completes.  Without a frame, the motif
    may occur at a wrong position: in mouse TRAJ7, whose codon 118 reads TTG, one base upstream.

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


def apply_entry(entry: AnchorEntry, gene: Gene) -> None:
    """Apply an entry of an anchors file to its allele."""
    gene.function = entry.function or gene.function
    moved = entry.anchor_index and gene.segment_type != "D"
    if not moved and not entry.describes(gene.sequence, gene.segment_type):
        return
    if entry.refuse and not gene.outside:
        gene.refusal = Reason(RefusalKind.BY_HAND, entry.refuse)
    notes = [entry.note] if entry.note else []
    if not moved:
        gene.last_notes = notes + gene.last_notes
        return
    gene.notes += notes
    # A note on a moved anchor explains more than a note on stop codons before it.
    gene.note_stops = not notes
    gene.sequence = entry.oriented(gene.sequence)
    first, expected = int(entry.anchor_index), entry.reads.upper()
    actual = gene.sequence[first : first + len(expected)]
    differs = Reason(RefusalKind.ANCHOR_MISMATCH, f"{expected} from base {first} on, not {actual or 'nothing'}")
    gene.anchor = first if actual == expected else differs
