"""Kinds of source: subclasses of `Source`, which detection, the command line and the documentation list."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hpcvdj.errors import InputError, choice, choices, option
from hpcvdj.germline_import.anchors import apply_entry, j_anchor, ungapped, v_anchor
from hpcvdj.germline_import.genes import CODON, CYS, PHE_TRP, Gene, Reason, RefusalKind, named_locus
from hpcvdj.recombination.anchors import AnchorEntry, allele_in, read_anchors
from hpcvdj.recombination.germline import SEGMENT_TYPES
from hpcvdj.recombination.igor import model_files
from hpcvdj.storage.inputs import read_text

AUTO = "auto"
"""The name that stands for the kind that recognises a source."""


class Source:
    """A kind of source.

    summary  for the help and the documentation
    begins   possible beginnings of the text of such a file
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    begins: ClassVar[tuple[str, ...]] = ()

    def recognises(self, path: Path) -> bool:
        """Whether the source is of this kind."""
        return not path.is_dir() and source_text(path).startswith(self.begins)

    def read(self, path: Path) -> list[Gene]:
        """The source's alleles; InputError if it is not of this kind or is damaged."""
        raise NotImplementedError


def summaries() -> str:
    """The kinds of source, for messages and help."""
    return "; ".join(f"{name}: {kind.summary}" for name, kind in choices(Source).items())


def source_kind(path: Path, name: str = AUTO) -> Source:
    """The kind called `name`, or the one that recognises the source."""
    if name != AUTO:
        return choice(Source, name, "source_format")
    for kind in choices(Source).values():
        if kind().recognises(path):
            return kind()
    raise InputError(f"{path}: not a known kind of source; give one of {summaries()}")


def source_text(path: Path) -> str:
    """The text of a source file without leading blanks; InputError if it is empty."""
    text = read_text(path, "source file", f"give one of {summaries()}").lstrip()
    if not text:
        raise InputError(f"{path}: the file is empty; download it again")
    return text


_ACCESSION, _SPECIES, _FUNCTION, _REGION, _CODON_START, _PARTIAL, _FIELDS = 0, 2, 3, 4, 7, 13, 14

_NEEDED_ENDS = {"V": ("3'",), "D": ("5'", "3'"), "J": ("5'",)}
"""The ends of a gene that are ends of its segment."""


class GappedFasta(Source):
    """Files of IMGT/GENE-DB and IMGT/V-QUEST: V-REGIONs gapped by IMGT numbering, D- and J-REGIONs without gaps.

    A header has IMGT's fields (accession|allele|species|functionality|region|…), or the allele's name alone.
    """

    name = "fasta"
    summary = "IMGT-gapped FASTA, plain or gzip"
    begins = (">",)

    def read(self, path: Path) -> list[Gene]:
        before, *records = ("\n" + source_text(path)).replace("\r", "\n").split("\n>")
        if before:
            raise InputError(f"{path}: not a FASTA file, which begins with >; choose another {option('source_format')}")
        return [_fasta_gene(path, number, *record.split("\n", 1)) for number, record in enumerate(records, start=1)]


def _fasta_gene(path: Path, number: int, header: str, lines: str = "") -> Gene:
    fields = [" ".join(field.split()) for field in header.split("|")]
    if len(fields) == 1:
        # The header is a name.  The text after the first blank is a comment.
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


class GermlineSet(Source):
    """One AIRR GermlineSet, or several, as OGRDB publishes them: gapped coding sequences and coordinates.

    Schema: https://docs.airr-community.org/en/stable/datarep/germline.html (AlleleDescription, SequenceDelineationV).
    """

    name = "airr"
    summary = "AIRR GermlineSet JSON (OGRDB), plain or gzip"
    begins = ("{", "[")

    def read(self, path: Path) -> list[Gene]:
        """The allele of each allele description in a set, a list of sets, or an AIRR data file."""
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
                genes.append(_described_gene(entry, f"allele description {number} of {path.name}", source))
        if not genes:
            raise InputError(f"{path}: no allele_descriptions; name a GermlineSet file with alleles in it")
        return genes


def _text(entry: dict[str, Any], key: str) -> str:
    """A field as one line of text.  The text of an ontology term is its label."""
    value = entry.get(key)
    label = value.get("label") if isinstance(value, dict) else value
    return " ".join(str(label).split()) if label is not None else ""


def _number(entry: dict[str, Any], key: str) -> int:
    """A field that is an integer; 0 if it is none."""
    value = entry.get(key)
    return value if type(value) is int else 0


def _described_gene(entry: dict[str, Any], unnamed: str, source: str) -> Gene:
    allele = _text(entry, "label") or unnamed
    locus, named_type = named_locus(allele)
    type_name = _text(entry, "sequence_type") or named_type
    delineations = entry.get("v_gene_delineations")
    objects = [item for item in delineations if isinstance(item, dict)] if isinstance(delineations, list) else []
    by_imgt = [item for item in objects if _text(item, "delineation_scheme").upper() == "IMGT"]
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
    """The coding sequence, gapped if the source has it gapped; else the part of `sequence` between the coordinates."""
    coding = _text(entry, "coding_sequence")
    aligned = [_text(delineation, "aligned_sequence") for delineation in delineations]
    matching = [gapped for gapped in aligned if gapped and (not coding or ungapped(gapped) == ungapped(coding))]
    sequence = _text(entry, "sequence")
    between = sequence[(_number(entry, "gene_start") or 1) - 1 : _number(entry, "gene_end") or len(sequence)]
    return (matching or [coding or between])[0]


def _function(entry: dict[str, Any]) -> str:
    """IMGT's functionality code for `functional` and `inference_type`."""
    if not isinstance(entry.get("functional"), bool):
        return ""
    code = "F" if entry["functional"] else "P"
    inferred = _text(entry, "inference_type").lower().replace(" ", "_")
    return f"({code})" if inferred in ("rearranged_only", "rearranged") else code


def _v_anchor(delineations: list[dict[str, Any]], gapped: str, function: str) -> int | Reason:
    """The anchor by the gaps; else by cdr3_start, if that counts bases of this sequence and follows a Cys codon."""
    anchor = v_anchor(gapped, function)
    sequence = ungapped(gapped)
    if isinstance(anchor, int) or sequence != gapped.upper():
        return anchor
    for delineation in delineations:
        position = _number(delineation, "cdr3_start") - 1 - CODON
        numbered = ungapped(_text(delineation, "unaligned_sequence")) or sequence
        # OGRDB counts gapped positions, the schema counts bases: the Cys codon decides.
        if position >= 0 and numbered == sequence and sequence[position : position + CODON] in CYS:
            return position
    return anchor


def _j_anchor(entry: dict[str, Any], gapped: str) -> tuple[int | Reason, list[str]]:
    """The anchor by the motif, else by j_cdr3_end (the first base of codon 118, from 1); and notes."""
    sequence = ungapped(gapped)
    # In frame 2, the first codon lacks one base, so the first complete codon is at position 2; in frame 3, at 1.
    anchor = j_anchor(sequence, {1: 0, 2: 2, 3: 1}.get(_number(entry, "j_codon_frame")))
    if isinstance(anchor, Reason):
        # Some sets number the frame as IMGT does.  The 3' end does not depend on the frame.
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


class ModelFolder(Source):
    """The folder of an IGoR or OLGA model: the parameters have sequences, two CSV files have anchors."""

    name = "model"
    summary = "folder of an IGoR or OLGA model"

    def recognises(self, path: Path) -> bool:
        return path.is_dir()

    def read(self, path: Path) -> list[Gene]:
        """The alleles with a sequence, and those with an anchor only."""
        parameters, _, v_anchors, j_anchors = model_files(path)
        if not parameters.is_file():
            raise InputError(
                f"{path}: no model_params.txt (OLGA) or model_parms.txt (IGoR) in it; name a model's folder, "
                "or the FASTA or JSON files of a folder one by one"
            )
        listed = _read_genes(parameters)
        # Without these files, the alleles are refused unless --anchors has them.
        files = {"V": v_anchors, "J": j_anchors}
        anchors = {name: read_anchors(file) if file.is_file() else {} for name, file in files.items()}
        functions = {entry.function for entries in anchors.values() for entry in entries.values()}
        last_notes = ["the model marks all F"] if functions <= {"F"} else []
        genes = []
        for name, segment_type in SEGMENT_TYPES.items():
            alleles = {allele for allele, _, _ in listed[name]}
            anchors_of_type = anchors.get(name, {})
            anchor_only = [(allele, "", "") for allele in anchors_of_type if allele not in alleles]
            for allele, sequence, function in listed[name] + anchor_only:
                gene = Gene(segment_type, allele, named_locus(allele)[0], sequence, f"model {path.name}")
                gene.function, gene.called = function, "the model's sequence"
                gene.anchor = Reason(RefusalKind.NO_MODEL_ANCHOR)
                gene.last_notes = [] if name == "D" else last_notes
                gene.require(sequence, RefusalKind.NO_MODEL_SEQUENCE)
                entry = anchors_of_type.get(allele, AnchorEntry(allele))
                # A model says by 0 that an anchor is not known.
                apply_entry(replace(entry, anchor_index=entry.anchor_index.strip("0") and entry.anchor_index), gene)
                genes.append(gene)
        return genes


def _read_genes(path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """(allele, sequence, functionality or nothing) of each gene under #GeneChoice, by segment type."""
    genes: dict[str, list[tuple[str, str, str]]] = {name: [] for name in SEGMENT_TYPES}
    segment_type = ""
    for number, line in enumerate(source_text(path).splitlines(), start=1):
        if line.startswith("@") and line.strip() != "@Event_list":
            break
        if line.startswith("#"):
            event, _, choice = line.partition(";")
            segment_type = choice[:1] if event == "#GeneChoice" else ""
        elif line.startswith("%") and segment_type in genes:
            name, *others = line[1:].split(";")
            if len(others) != 2:
                raise InputError(f"{path}, line {number}: not NAME;SEQUENCE;NUMBER; copy the model again")
            function = "".join(name.split("|")[3:4]).strip()
            genes[segment_type].append((allele_in(name), others[0].strip().upper(), function))
    if not genes["V"] or not genes["J"]:
        raise InputError(f"{path}: no V or no J genes under #GeneChoice; name the folder of a whole model")
    return genes
