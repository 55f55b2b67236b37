"""AIRR GermlineSet JSON, as OGRDB publishes it: alleles with gapped coding sequences and coordinates.

Schema: https://docs.airr-community.org/en/stable/datarep/germline.html (AlleleDescription, SequenceDelineationV).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import GAPS, j_anchor, ungapped, v_anchor
from hpcvdj.germline_import.genes import CODON, CYS, PHE_TRP, Gene, named_locus
from hpcvdj.germline_import.reading import text_of
from hpcvdj.recombination.germline import SegmentType

_KINDS: dict[str, SegmentType] = {"V": "V", "D": "D", "J": "J"}


def read_germline_set(path: Path, source: str | None = None, species: str | None = None) -> list[Gene]:
    """The alleles of a GermlineSet JSON file, of one set or of several."""
    try:
        content = json.loads(text_of(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not readable JSON ({error}); download it again") from None
    genes = []
    for germline_set in _sets(path, content):
        head = source or _head(path, germline_set)
        for number, entry in enumerate(germline_set["allele_descriptions"], start=1):
            if not isinstance(entry, dict):
                raise InputError(f"{path}: allele description {number} is no JSON object; download it again")
            genes.append(_gene(path, number, entry, head, species))
    if not genes:
        raise InputError(f"{path}: no allele_descriptions; name a GermlineSet file with alleles in it")
    return genes


def _sets(path: Path, content: Any) -> list[dict[str, Any]]:
    """The germline sets of a file: a whole AIRR data file, one set, or a list of sets."""
    if isinstance(content, dict) and "GermlineSet" in content:
        content = content["GermlineSet"]
    sets = content if isinstance(content, list) else [content]
    if not all(isinstance(one, dict) and isinstance(one.get("allele_descriptions"), list) for one in sets):
        raise InputError(f"{path}: no GermlineSet with allele_descriptions; download the set as AIRR JSON")
    return sets


def _head(path: Path, germline_set: dict[str, Any]) -> str:
    named = (_text(germline_set.get(key)) for key in ("germline_set_ref", "germline_set_name"))
    return ", ".join([" ".join(filter(None, named)) or "GermlineSet", path.name])


def _text(value: Any) -> str:
    """A field as one line of text; an ontology term by its label."""
    if isinstance(value, dict):
        value = value.get("label")
    return " ".join(str(value).split()) if value is not None else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _gene(path: Path, number: int, entry: dict[str, Any], head: str, species: str | None) -> Gene:
    allele = _text(entry.get("label")) or f"allele description {number} of {path.name}"
    locus, named_kind = named_locus(allele)
    kind_name = _text(entry.get("sequence_type")) or named_kind
    kind = _KINDS.get(kind_name, "V")
    gapped = _coding(entry)
    function = _function(entry)
    anchor, reason, notes = _anchor(kind, entry, gapped, function)
    found = _text(entry.get("species"))
    outside = "" if kind_name in _KINDS else f"its sequence_type is {kind_name or 'missing'}, not V, D or J"
    if species is not None and found and found.lower() != species.lower():
        outside = f"of {found}, not {species}"
    return Gene(
        kind,
        allele,
        _text(entry.get("locus")) or locus,
        ungapped(gapped),
        head,
        anchor=anchor,
        no_anchor=reason,
        function=function,
        authority="AIRR rearranged_only" if function.startswith("(") else "AIRR",
        notes=tuple(notes),
        refusal=_refusal(entry),
        outside=outside,
    )


def _coding(entry: dict[str, Any]) -> str:
    """The coding sequence, gapped if the source has it so; else what of `sequence` the coordinates say."""
    coding = _text(entry.get("coding_sequence"))
    for delineation in _delineations(entry):
        aligned = _text(delineation.get("aligned_sequence"))
        if aligned and (not coding or ungapped(aligned) == ungapped(coding)):
            return aligned
    if coding:
        return coding
    whole = _text(entry.get("sequence"))
    start, end = _number(entry.get("gene_start")), _number(entry.get("gene_end"))
    return whole[(start or 1) - 1 : end or len(whole)]


def _delineations(entry: dict[str, Any]) -> list[dict[str, Any]]:
    listed = entry.get("v_gene_delineations")
    listed = listed if isinstance(listed, list) else []
    return [one for one in listed if isinstance(one, dict) and _text(one.get("delineation_scheme")).upper() == "IMGT"]


def _function(entry: dict[str, Any]) -> str:
    """IMGT's code for what `functional` and `inference_type` say."""
    functional = entry.get("functional")
    if not isinstance(functional, bool):
        return ""
    code = "F" if functional else "P"
    inferred = _text(entry.get("inference_type")).lower().replace(" ", "_")
    return f"({code})" if inferred in ("rearranged_only", "rearranged") else code


def _refusal(entry: dict[str, Any]) -> str:
    status = _text(entry.get("status")).lower()
    if status in ("retired", "withdrawn"):
        return f"its status in the set is {status}"
    tags = entry.get("curational_tags")
    return "truncated: tagged likely_truncated in the set" if "likely_truncated" in (tags or ()) else ""


def _anchor(kind: SegmentType, entry: dict[str, Any], gapped: str, function: str) -> tuple[int | None, str, list[str]]:
    """Anchor in the ungapped coding sequence, or None and the reason; notes."""
    if kind == "D":
        return None, "", []
    if kind == "V":
        return (*_v_anchor(entry, gapped, function), [])
    sequence = ungapped(gapped)
    # Frame 2 lacks one base of its first codon, so that its first whole codon is two bases on; 3 lacks two.
    found, reason = j_anchor(sequence, {1: 0, 2: 2, 3: 1}.get(_number(entry.get("j_codon_frame")) or 0))
    if found is None:
        # Some sets count the frame as IMGT does; the 3' end does not depend on it.
        found, reason = j_anchor(sequence)
    return _reconciled(entry, sequence, found, reason)


def _v_anchor(entry: dict[str, Any], gapped: str, function: str) -> tuple[int | None, str]:
    """By the gaps; without gaps by cdr3_start, if that counts bases of this very sequence and finds the Cys."""
    anchor, reason = v_anchor(gapped, function)
    if anchor is not None or any(gap in gapped for gap in GAPS):
        return anchor, reason
    sequence = ungapped(gapped)
    for delineation in _delineations(entry):
        start = _number(delineation.get("cdr3_start"))
        counted = ungapped(_text(delineation.get("unaligned_sequence"))) or sequence
        # OGRDB counts gapped positions here, the schema bases: only the Cys tells which.
        if start and counted == sequence and sequence[start - 1 - CODON : start - 1] in CYS:
            return start - 1 - CODON, ""
    return None, reason


def _reconciled(
    entry: dict[str, Any], sequence: str, found: int | None, reason: str
) -> tuple[int | None, str, list[str]]:
    """The motif's place and that of j_cdr3_end, the first base of codon 118 counted in `sequence` from 1."""
    stated = _number(entry.get("j_cdr3_end"))
    if stated is None:
        return found, reason, []
    whole = _text(entry.get("sequence")).upper()
    offset = _number(entry.get("gene_start")) or (whole.find(sequence) + 1 if sequence and sequence in whole else 1)
    place = stated - offset
    if found is None:
        if place > 0 and sequence[place : place + CODON] in PHE_TRP:
            return place, "", ["codon 118 by j_cdr3_end, no motif F/W-G-X-G"]
        return None, f"{reason}, for j_cdr3_end is not at Phe or Trp", []
    return (
        found,
        "",
        [] if found == place else [f"j_cdr3_end is {stated}, the motif F/W-G-X-G begins at {found + offset}"],
    )
