"""IGoR's and OLGA's model folders: gene sequences of the model's parameters, anchors of two CSV files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import allele_in, read_anchors
from hpcvdj.germline_import.genes import Gene, Given, named_locus
from hpcvdj.germline_import.reading import text_of
from hpcvdj.recombination.germline import SegmentType

_PARAMETERS = ("model_params.txt", "model_parms.txt", "models/model_params.txt", "models/model_parms.txt")
_KINDS: dict[str, SegmentType] = {"V": "V", "D": "D", "J": "J"}


def find_parameters(folder: Path) -> Path | None:
    """The file of a model's parameters: OLGA and IGoR spell and place it differently."""
    return next((folder / name for name in _PARAMETERS if (folder / name).is_file()), None)


def read_model(folder: Path, source: str | None = None) -> list[Gene]:
    """The alleles of a model folder: those with a sequence, and those for which it has an anchor alone."""
    parameters = find_parameters(folder)
    if parameters is None:
        raise InputError(
            f"{folder}: no model_params.txt (OLGA) or model_parms.txt (IGoR) in it; name a model's folder, "
            "or the FASTA or JSON files of a folder one by one"
        )
    sequences = _read_genes(parameters)
    anchors = {kind: _read_anchors(folder, kind) for kind in "VJ"}
    source = source or f"model {folder.name}"
    told = [given.function for by_allele in anchors.values() for given in by_allele.values()]
    genes = []
    for kind, alleles in sequences.items():
        given = anchors.get(kind, {})
        listed = {allele for allele, _, _ in alleles}
        missing = [(allele, "", "") for allele in given if allele not in listed]
        genes += [_gene(_KINDS[kind], entry, given, source) for entry in alleles + missing]
    if all(function == "F" for function in told):
        return [_closing(gene, "the model marks all F") for gene in genes]
    return genes


def _closing(gene: Gene, note: str) -> Gene:
    return gene if gene.kind == "D" else replace(gene, closing=(note,))


def _gene(kind: SegmentType, entry: tuple[str, str, str], anchors: dict[str, Given], source: str) -> Gene:
    allele, sequence, function = entry
    given = anchors.get(allele, Given())
    return Gene(
        kind,
        allele,
        named_locus(allele)[0],
        sequence,
        source,
        anchor=given.anchor,
        no_anchor="the model gives no anchor for it",
        function=given.function or function,
        called="the model's sequence",
        refusal="" if sequence else "the model lists an anchor but no sequence",
    )


def _read_genes(path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """(allele, sequence, functionality or nothing) under #GeneChoice, by segment type."""
    genes: dict[str, list[tuple[str, str, str]]] = {"V": [], "D": [], "J": []}
    kind = ""
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        if line.startswith("@") and line.strip() != "@Event_list":
            break
        if line.startswith("#"):
            kind = _kind_of(line)
        elif line.startswith("%") and kind:
            parts = line[1:].split(";")
            if len(parts) != 3:
                raise InputError(f"{path}, line {number}: not NAME;SEQUENCE;NUMBER; copy the model again")
            fields = parts[0].split("|")
            function = fields[3].strip() if len(fields) > 3 else ""
            genes[kind].append((allele_in(parts[0]), parts[1].strip().upper(), function))
    if not genes["V"] or not genes["J"]:
        raise InputError(f"{path}: no V or no J genes under #GeneChoice; name the folder of a whole model")
    return genes


def _kind_of(line: str) -> str:
    """V, D or J for the head of a list of genes, nothing for that of another event."""
    fields = line.split(";")
    kind = fields[1][:1] if fields[0] == "#GeneChoice" and len(fields) > 1 else ""
    return kind if kind in _KINDS else ""


def _read_anchors(folder: Path, kind: str) -> dict[str, Given]:
    name = f"{kind}_gene_CDR3_anchors.csv"
    for path in (folder / name, folder / "ref_genome" / name):
        if path.is_file():
            return read_anchors(path)
    # Without the file every allele of the kind is listed as refused, unless --anchors has it.
    return {}
