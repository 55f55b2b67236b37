"""Anchors files: where the conserved codons of alleles are, and which published alleles are wrong."""

import csv
import re
from dataclasses import dataclass, fields
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.recombination.alphabet import reverse_complement
from hpcvdj.recombination.germline import SegmentType
from hpcvdj.storage.inputs import read_text


@dataclass(frozen=True)
class AnchorEntry:
    """A row of an anchors file; every value but the first may be empty.

    allele        the name in the source
    anchor_index  0-based position of the first base of codon 104 or 118 in the source's sequence without gaps
    wrong_anchor  the anchor that published models give; `recombination.corrections` moves no other
    function      IMGT's functionality code, which replaces that of the source
    strand        `-`: the source has the reverse complement, and anchor_index counts on the other strand
    reads         the bases from the anchor on; if the sequence has others, the allele is refused.  Without
                  anchor_index, `note` and `refuse` apply only if a V sequence ends, or a J sequence begins, with it
    note          text for the table's column `source`
    refuse        why the allele is left out
    """

    allele: str
    anchor_index: str = ""
    wrong_anchor: str = ""
    function: str = ""
    strand: str = ""
    reads: str = ""
    note: str = ""
    refuse: str = ""

    def oriented(self, sequence: str) -> str:
        """Return the sequence on the strand on which `anchor_index` counts."""
        return reverse_complement(sequence) if self.strand == "-" else sequence

    def describes(self, sequence: str, segment_type: SegmentType) -> bool:
        """Return whether an entry without `anchor_index` applies to the sequence of an allele."""
        expected = self.reads.upper()
        return sequence.endswith(expected) if segment_type == "V" else sequence.startswith(expected)


_COLUMNS = [field.name for field in fields(AnchorEntry)]

_POSITION = (r"\d{0,9}", "write a number of bases from 0, or leave it empty")

_PATTERNS = {
    "anchor_index": _POSITION,
    "wrong_anchor": _POSITION,
    "strand": (r"[+-]?", "write + or -"),
}


def read_anchors(path: Path) -> dict[str, AnchorEntry]:
    """Read an anchors file: the entry of each allele.

    The file is CSV with the columns of `AnchorEntry`, separated by commas, semicolons or tabs.  Only the first column
    is required.  It may be called `gene`, as in files of IGoR and OLGA.
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
    """Return the name of an allele, which may be given as a complete IMGT header (accession|allele|…).

    >>> allele_in(" K02545|TRBJ1-1*01|Homo sapiens|F|J-REGION|")
    'TRBJ1-1*01'
    """
    parts = name.split("|")
    return " ".join((parts[1] if len(parts) > 1 else name).split())
