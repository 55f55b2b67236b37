"""IMGT's FASTA files: V-REGIONs gapped by IMGT numbering, D- and J-REGIONs as they are.

A header has IMGT's fields (accession|allele|species|functionality|region|…), or the allele's name alone.
"""

from __future__ import annotations

import io
from pathlib import Path

import dnaio

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import allele_in, j_anchor, ungapped, v_anchor
from hpcvdj.germline_import.genes import Gene, named_locus
from hpcvdj.germline_import.reading import bytes_of
from hpcvdj.recombination.germline import SegmentType

_REGIONS: dict[str, SegmentType] = {"V-REGION": "V", "D-REGION": "D", "J-REGION": "J"}
_KINDS: dict[str, SegmentType] = {"V": "V", "D": "D", "J": "J"}
_ACCESSION, _SPECIES, _FUNCTION, _REGION, _CODON_START, _PARTIAL = 0, 2, 3, 4, 7, 13


def read_fasta(path: Path, source: str | None = None, species: str | None = None) -> list[Gene]:
    """The alleles of a FASTA file; those that are not of `species` are marked as outside, and so are other regions."""
    records = _records(path)
    return [_gene(path, k, header, sequence, source, species) for k, (header, sequence) in enumerate(records, start=1)]


def _records(path: Path) -> list[tuple[str, str]]:
    data = bytes_of(path)
    try:
        with dnaio.open(io.BytesIO(data), fileformat="fasta") as reader:
            records = [(record.name.strip(), "".join(record.sequence.split())) for record in reader]
    except (dnaio.FileFormatError, UnicodeDecodeError) as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{path}: not a readable FASTA file ({first}); download it again") from None
    if not records:
        raise InputError(f"{path}: no FASTA records; download it again")
    return records


def _fields(header: str) -> list[str]:
    """A header's fields, padded to those that are asked for."""
    fields = [field.strip() for field in header.split("|")]
    if len(fields) == 1:
        # A name alone: whatever stands behind the first blank is a comment.
        fields = ["", *header.split(maxsplit=1)[:1]]
    return fields + [""] * (_PARTIAL + 1 - len(fields))


def _species(fields: list[str]) -> str:
    """The species, less the strain that IMGT puts behind an underscore (Mus musculus_C57BL/6J)."""
    return fields[_SPECIES].partition("_")[0]


def _gene(path: Path, number: int, header: str, raw: str, source: str | None, species: str | None) -> Gene:
    fields = _fields(header)
    allele = allele_in("|".join(fields)) or f"record {number} of {path.name}"
    locus, kind_name = named_locus(allele)
    region = fields[_REGION]
    kind = _REGIONS.get(region) or _KINDS.get("" if region else kind_name)
    origin = source or (f"IMGT {fields[_ACCESSION]}, {path.name}" if fields[_ACCESSION] else path.name)
    outside = ""
    if species is not None and _species(fields) and _species(fields).lower() != species.lower():
        outside = f"of {_species(fields)}, not {species}"
    elif kind is None and region:
        outside = f"its region is {region}, not V-REGION, D-REGION or J-REGION"
    elif kind is None:
        outside = "neither its name nor its header says whether it is V, D or J"
    kind = kind or "V"
    function, partial = fields[_FUNCTION], fields[_PARTIAL].lower()
    anchor, reason = _anchor(kind, raw, function, fields[_CODON_START])
    return Gene(
        kind,
        allele,
        locus,
        ungapped(raw),
        origin,
        anchor=anchor,
        no_anchor=reason,
        function=function,
        species=_species(fields),
        notes=("partial in 5' in IMGT",) if kind == "V" and "5'" in partial else (),
        refusal=_partial(kind, partial),
        outside=outside,
    )


def _anchor(kind: SegmentType, raw: str, function: str, codon_start: str) -> tuple[int | None, str]:
    if kind == "V":
        return v_anchor(raw, function)
    if kind == "J":
        return j_anchor(ungapped(raw), int(codon_start) - 1 if codon_start in ("1", "2", "3") else None)
    return None, ""


def _partial(kind: SegmentType, partial: str) -> str:
    """Why an allele that IMGT marks as partial has no whole segment: V needs its 3' end, J its 5' end, D both."""
    needed = {"V": ("3'",), "D": ("5'", "3'"), "J": ("5'",)}[kind]
    missing = [end for end in needed if end in partial]
    return f"truncated: partial in {' and '.join(missing)} in IMGT, where its segment ends" if missing else ""
