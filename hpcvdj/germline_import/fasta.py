"""IMGT's FASTA files: V-REGIONs gapped by IMGT numbering, D- and J-REGIONs as they are.

A header has IMGT's fields (accession|allele|species|functionality|region|…), or the allele's name alone.
"""

from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import allele_in, j_anchor, ungapped, v_anchor
from hpcvdj.germline_import.genes import SEGMENT_TYPES, Gene, RefusalKind, named_locus
from hpcvdj.germline_import.sources import Source, source_text

_ACCESSION, _SPECIES, _FUNCTION, _REGION, _CODON_START, _PARTIAL, _FIELDS = 0, 2, 3, 4, 7, 13, 14

_NEEDED_ENDS = {"V": ("3'",), "D": ("5'", "3'"), "J": ("5'",)}
"""The ends of a gene at which its segment ends."""


class GappedFasta(Source):
    """The files of IMGT/GENE-DB and IMGT/V-QUEST."""

    name = "fasta"
    summary = "IMGT-gapped FASTA, plain or gzip"

    def recognises(self, path: Path) -> bool:
        """Whether the file begins with `>`."""
        return not path.is_dir() and source_text(path).startswith(">")

    def read(self, path: Path) -> list[Gene]:
        """One allele for each record."""
        before, *records = ("\n" + source_text(path)).replace("\r", "\n").split("\n>")
        if before:
            raise InputError(f"{path}: not a FASTA file, which begins with >; choose another --format")
        return [_gene(path, number, *record.split("\n", 1)) for number, record in enumerate(records, start=1)]


def _gene(path: Path, number: int, header: str, lines: str = "") -> Gene:
    fields = [" ".join(field.split()) for field in header.split("|")]
    if len(fields) == 1:
        # A name alone; what follows the first blank is a comment.
        fields = ["", *header.split(maxsplit=1)[:1]]
    fields += [""] * (_FIELDS - len(fields))
    allele = allele_in("|".join(fields)) or f"record {number} of {path.name}"
    locus, type_name = named_locus(allele)
    region, function, codon_start, partial = (fields[k] for k in (_REGION, _FUNCTION, _CODON_START, _PARTIAL))
    if region:
        type_name = region[:1] if region[1:] == "-REGION" else ""
    segment_type = SEGMENT_TYPES.get(type_name, "V")
    gapped = "".join(lines.split())
    frame = int(codon_start) - 1 if codon_start in ("1", "2", "3") else None
    gene = Gene(
        segment_type,
        allele,
        locus,
        ungapped(gapped),
        f"IMGT {fields[_ACCESSION]}, {path.name}" if fields[_ACCESSION] else path.name,
        anchor=v_anchor(gapped, function) if segment_type == "V" else j_anchor(ungapped(gapped), frame),
        function=function,
        # IMGT adds the strain after an underscore: Mus musculus_C57BL/6J.
        species=fields[_SPECIES].partition("_")[0],
        notes=["partial in 5' in IMGT"] if segment_type == "V" and "5'" in partial else [],
    )
    unnamed = "neither its name nor its header says which it is"
    gene.require(type_name in SEGMENT_TYPES, RefusalKind.OTHER_REGION, region or unnamed)
    missing = " and ".join(end for end in _NEEDED_ENDS[segment_type] if end in partial)
    gene.require(not missing, RefusalKind.TRUNCATED, f"partial in {missing} in IMGT, where its segment ends")
    return gene
