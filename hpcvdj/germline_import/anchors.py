"""Anchors: found by IMGT numbering or by motif, or given in a file."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import.genes import CODON, CYS, Given
from hpcvdj.germline_import.reading import text_of

GAPS = ".-"
"""What stands for a position that an IMGT-gapped sequence leaves out."""

CYS_104 = (104 - 1) * CODON
"""0-based place of codon 104 in an IMGT-gapped V-REGION."""

_MOTIF = re.compile(r"(?=(?:TT[TC]|TGG)GG[ACGT][ACGT]{3}GG[ACGT])")

_COLUMNS = ("allele", "gene", "anchor_index", "function", "strand", "reads", "note", "refuse")


def ungapped(sequence: str) -> str:
    """A sequence without its gaps, upper case."""
    return sequence.translate(str.maketrans("", "", GAPS)).upper()


def v_anchor(gapped: str, function: str) -> tuple[int | None, str]:
    """Place of codon 104 in the *ungapped* sequence by IMGT numbering of the gapped one, or None and the reason.

    An allele called functional has its Cys: where codon 104 is none, the gaps are off, not the gene.

    >>> v_anchor("." * 300 + "tactactactgtgcc", "F")
    (9, '')
    """
    codon = gapped[CYS_104 : CYS_104 + CODON].upper()
    remedy = "give its anchor with --anchors"
    if not any(gap in gapped for gap in GAPS) and codon not in CYS:
        return None, f"no anchor: the sequence is not gapped by IMGT numbering; {remedy}"
    anchor = len(ungapped(gapped[:CYS_104]))
    if len(codon) < CODON:
        return anchor, ""
    if any(gap in codon for gap in GAPS):
        return None, f"no anchor: codon 104 is not complete at its IMGT position; {remedy}"
    if codon not in CYS and function.strip("()[]") in ("", "F"):
        what = "though the allele is F" if function else "and no functionality is stated"
        return None, f"no anchor: codon 104 reads {codon} by IMGT numbering, {what}; {remedy}"
    return anchor, ""


def j_anchor(sequence: str, frame: int | None = None) -> tuple[int | None, str]:
    """Place of the codon of Phe/Trp 118 by the motif F/W-G-X-G, or None and the reason.

    `frame` is the place (0, 1, 2) of the first whole codon, where the source states it.  If not, it follows from the
    3' end: splicing leaves a J-REGION with one base over.  In any frame the motif is found in the wrong place, too:
    in mouse TRAJ7, where codon 118 reads TTG, one base upstream.

    >>> j_anchor("CAAACACAGAAGTCTTCTTTGGTAAAGGAACCAGACTCACAGTTGTAG")
    (17, '')
    """
    if frame is None:
        where, frame = "in the frame that its 3' end tells", len(sequence) - 1
    else:
        where = "in its frame"
    found = [match.start() for match in _MOTIF.finditer(sequence)]
    found = [place for place in found if place % CODON == frame % CODON]
    if len(found) == 1:
        return found[0], ""
    what = f"stands at {len(found)} places" if found else "is not there"
    return None, f"no anchor: the motif F/W-G-X-G {what} {where}; give its anchor with --anchors"


def read_anchors(path: Path) -> dict[str, Given]:
    """An anchors file by allele: CSV with a header line, separated by commas, semicolons or tabs.

    allele (or gene)  the name in the source
    anchor_index      0-based place of the first base of codon 104 or 118 in the source's sequence without gaps
    function          IMGT's functionality code in place of the source's; may be missing, as all that follow
    strand            `-`: the source has the reverse complement, and anchor_index counts on the right strand
    reads             what the sequence must read from there on; the allele is refused if it does not
    note              goes into the table's source column
    refuse            the reason why the allele is left out
    """
    lines = text_of(path).splitlines()
    if not lines:
        raise InputError(f"{path}: the anchors file is empty; it needs a header line: {', '.join(_COLUMNS[:3])} …")
    delimiter = max(",;\t", key=lines[0].count)
    reader = csv.DictReader(lines, delimiter=delimiter)
    names = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = names
    key = next((name for name in ("allele", "gene") if name in names), None)
    if key is None:
        raise InputError(f"{path}, line 1: no column allele; an anchors file has allele,anchor_index and may have more")
    unknown = sorted(set(names) - set(_COLUMNS) - {""})
    if unknown:
        raise InputError(f"{path}, line 1: unknown column {unknown[0]!r}; known are {', '.join(_COLUMNS)}")
    given: dict[str, Given] = {}
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        values = {name: (value or "").strip() for name, value in row.items() if isinstance(value, str | None)}
        allele = allele_in(values.get(key, ""))
        if not allele:
            raise InputError(f"{where}: no allele; every row names one")
        if allele in given:
            raise InputError(f"{where}: {allele} is listed twice; keep one row of it")
        given[allele] = _given(where, values)
    return given


def _given(where: str, values: dict[str, str]) -> Given:
    index, strand = values.get("anchor_index", ""), values.get("strand", "")
    if index and not index.isdecimal():
        raise InputError(f"{where}: anchor_index is {index!r}; write a number of bases from 0, or leave it empty")
    if strand not in ("", "+", "-"):
        raise InputError(f"{where}: strand is {strand!r}; write + or -")
    if strand == "-" and not index:
        raise InputError(f"{where}: strand - without anchor_index; give the anchor on the other strand too")
    return Given(
        int(index) if index else None,
        values.get("function", ""),
        strand == "-",
        values.get("reads", "").upper(),
        values.get("note", ""),
        values.get("refuse", ""),
    )


def allele_in(name: str) -> str:
    """The allele's name, which a whole IMGT header may stand for (accession|allele|…).

    >>> allele_in(" K02545|TRBJ1-1*01|Homo sapiens|F|J-REGION|")
    'TRBJ1-1*01'
    """
    fields = name.split("|")
    return " ".join((fields[1] if len(fields) > 1 else name).split())
