"""AIRR GermlineSet JSON, as OGRDB publishes it: alleles with gapped coding sequences and coordinates.

Schema: https://docs.airr-community.org/en/stable/datarep/germline.html (AlleleDescription, SequenceDelineationV).
"""

import json
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import j_anchor, ungapped, v_anchor
from hpcvdj.germline_import.genes import CODON, CYS, PHE_TRP, SEGMENT_TYPES, Gene, Reason, RefusalKind, named_locus
from hpcvdj.germline_import.sources import Source, source_text


class GermlineSet(Source):
    """One germline set, or several."""

    name = "airr"
    summary = "AIRR GermlineSet JSON (OGRDB), plain or gzip"

    def recognises(self, path: Path) -> bool:
        """Whether the file begins as a JSON object or list."""
        return not path.is_dir() and source_text(path).startswith(("{", "["))

    def read(self, path: Path) -> list[Gene]:
        """One allele for each allele description of a set, a list of sets, or a whole AIRR data file."""
        try:
            content = json.loads(source_text(path))
            # Half a surrogate pair is valid JSON, but cannot be written to a table.
            json.dumps(content, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: not readable JSON ({error}); download it again") from None
        if isinstance(content, dict):
            content = content.get("GermlineSet", content)
        genes = []
        for germline_set in content if isinstance(content, list) else [content]:
            entries = germline_set.get("allele_descriptions") if isinstance(germline_set, dict) else None
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise InputError(f"{path}: no GermlineSet with allele_descriptions; download the set as AIRR JSON")
            names = [_text(germline_set, key) for key in ("germline_set_ref", "germline_set_name")]
            source = f"{' '.join(filter(None, names)) or 'GermlineSet'}, {path.name}"
            for number, entry in enumerate(entries, start=1):
                genes.append(_gene(entry, f"allele description {number} of {path.name}", source))
        if not genes:
            raise InputError(f"{path}: no allele_descriptions; name a GermlineSet file with alleles in it")
        return genes


def _text(entry: dict[str, Any], key: str) -> str:
    """A field as one line of text; an ontology term by its label."""
    value = entry.get(key)
    label = value.get("label") if isinstance(value, dict) else value
    return " ".join(str(label).split()) if label is not None else ""


def _number(entry: dict[str, Any], key: str) -> int:
    """A field that is an integer; 0 if it is not."""
    value = entry.get(key)
    return value if type(value) is int else 0


def _gene(entry: dict[str, Any], unnamed: str, source: str) -> Gene:
    allele = _text(entry, "label") or unnamed
    locus, named_type = named_locus(allele)
    type_name = _text(entry, "sequence_type") or named_type
    delineations = entry.get("v_gene_delineations")
    objects = [each for each in delineations if isinstance(each, dict)] if isinstance(delineations, list) else []
    by_imgt = [each for each in objects if _text(each, "delineation_scheme").upper() == "IMGT"]
    gapped = _coding_sequence(entry, by_imgt)
    function = _function(entry)
    anchor, notes = _j_anchor(entry, gapped) if type_name == "J" else (_v_anchor(by_imgt, gapped, function), [])
    gene = Gene(
        SEGMENT_TYPES.get(type_name, "V"),
        allele,
        _text(entry, "locus") or locus,
        ungapped(gapped),
        source,
        anchor=anchor,
        function=function,
        authority="AIRR rearranged_only" if function.startswith("(") else "AIRR",
        species=_text(entry, "species"),
        notes=notes,
    )
    kind = f"its sequence_type is {type_name or 'missing'}"
    gene.require(type_name in SEGMENT_TYPES, RefusalKind.OTHER_REGION, kind)
    status = _text(entry, "status").lower()
    gene.require(status not in ("retired", "withdrawn"), RefusalKind.NOT_ACTIVE, status)
    truncated = "likely_truncated" in str(entry.get("curational_tags"))
    gene.require(not truncated, RefusalKind.TRUNCATED, "tagged likely_truncated in the set")
    return gene


def _coding_sequence(entry: dict[str, Any], delineations: list[dict[str, Any]]) -> str:
    """The coding sequence, gapped if the source has it so; else the part of `sequence` between the coordinates."""
    coding = _text(entry, "coding_sequence")
    aligned = [_text(each, "aligned_sequence") for each in delineations]
    matching = [each for each in aligned if each and (not coding or ungapped(each) == ungapped(coding))]
    sequence = _text(entry, "sequence")
    between = sequence[(_number(entry, "gene_start") or 1) - 1 : _number(entry, "gene_end") or len(sequence)]
    return (matching or [coding or between])[0]


def _function(entry: dict[str, Any]) -> str:
    """IMGT's code for what `functional` and `inference_type` say."""
    if not isinstance(entry.get("functional"), bool):
        return ""
    code = "F" if entry["functional"] else "P"
    inferred = _text(entry, "inference_type").lower().replace(" ", "_")
    return f"({code})" if inferred in ("rearranged_only", "rearranged") else code


def _v_anchor(delineations: list[dict[str, Any]], gapped: str, function: str) -> int | Reason:
    """By the gaps; without gaps by cdr3_start, if it counts bases of this sequence and follows a Cys codon."""
    anchor = v_anchor(gapped, function)
    sequence = ungapped(gapped)
    if isinstance(anchor, int) or sequence != gapped.upper():
        return anchor
    for delineation in delineations:
        position = _number(delineation, "cdr3_start") - 1 - CODON
        numbered = ungapped(_text(delineation, "unaligned_sequence")) or sequence
        # OGRDB counts gapped positions here, the schema counts bases; the Cys codon decides.
        if position >= 0 and numbered == sequence and sequence[position : position + CODON] in CYS:
            return position
    return anchor


def _j_anchor(entry: dict[str, Any], gapped: str) -> tuple[int | Reason, list[str]]:
    """The position of the motif, else that of j_cdr3_end (the first base of codon 118, from 1); and notes."""
    sequence = ungapped(gapped)
    # The first whole codon is two bases on in frame 2, which lacks one base of its first codon; 3 lacks two.
    anchor = j_anchor(sequence, {1: 0, 2: 2, 3: 1}.get(_number(entry, "j_codon_frame")))
    if isinstance(anchor, Reason):
        # Some sets number the frame as IMGT does; the 3' end does not depend on it.
        anchor = j_anchor(sequence)
    stated = _number(entry, "j_cdr3_end")
    if not stated:
        return anchor, []
    start = _number(entry, "gene_start") or max(1, _text(entry, "sequence").upper().find(sequence) + 1)
    position = stated - start
    if isinstance(anchor, int):
        moved = f"j_cdr3_end is {stated}, the motif F/W-G-X-G begins at {anchor + start}"
        return anchor, [] if anchor == position else [moved]
    if position > 0 and sequence[position : position + CODON] in PHE_TRP:
        return position, ["codon 118 by j_cdr3_end, no motif F/W-G-X-G"]
    return Reason(anchor.kind, f"{anchor.detail}; j_cdr3_end is not at Phe or Trp"), []
