"""IGoR's and OLGA's model folders: gene sequences in the model's parameters, anchors in two CSV files."""

from pathlib import Path

from hpcvdj.errors import InputError
from hpcvdj.germline_import.anchors import AnchorEntry, allele_in, read_anchors
from hpcvdj.germline_import.genes import SEGMENT_TYPES, Gene, Reason, RefusalKind, named_locus
from hpcvdj.germline_import.sources import Source, source_text

_PARAMETERS = ("model_params.txt", "model_parms.txt", "models/model_params.txt", "models/model_parms.txt")
"""The file of a model's parameters: OLGA and IGoR spell and place it differently."""


class ModelFolder(Source):
    """The folder of a model."""

    name = "model"
    summary = "folder of an IGoR or OLGA model"

    def recognises(self, path: Path) -> bool:
        """Whether it is a folder."""
        return path.is_dir()

    def read(self, path: Path) -> list[Gene]:
        """The alleles that have a sequence, and those that have an anchor only."""
        parameters = next((path / name for name in _PARAMETERS if (path / name).is_file()), None)
        if parameters is None:
            raise InputError(
                f"{path}: no model_params.txt (OLGA) or model_parms.txt (IGoR) in it; name a model's folder, "
                "or the FASTA or JSON files of a folder one by one"
            )
        listed = _read_genes(parameters)
        anchors = {name: _read_anchors(path, name) for name in SEGMENT_TYPES}
        functions = {entry.function for entries in anchors.values() for entry in entries.values()}
        last_notes = ["the model marks all F"] if functions <= {"F"} else []
        genes = []
        for name, segment_type in SEGMENT_TYPES.items():
            alleles = {allele for allele, _, _ in listed[name]}
            anchor_only = [(allele, "", "") for allele in anchors[name] if allele not in alleles]
            for allele, sequence, function in listed[name] + anchor_only:
                gene = Gene(segment_type, allele, named_locus(allele)[0], sequence, f"model {path.name}")
                gene.function, gene.called = function, "the model's sequence"
                gene.anchor = Reason(RefusalKind.NO_MODEL_ANCHOR)
                gene.last_notes = [] if name == "D" else [*last_notes]
                gene.require(sequence, RefusalKind.NO_MODEL_SEQUENCE)
                anchors[name].get(allele, AnchorEntry(allele)).apply(gene)
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


def _read_anchors(folder: Path, segment_type: str) -> dict[str, AnchorEntry]:
    """The model's anchors; without their file, the alleles are refused unless --anchors has them."""
    name = f"{segment_type}_gene_CDR3_anchors.csv"
    path = next((path for path in (folder / name, folder / "ref_genome" / name) if path.is_file()), None)
    return read_anchors(path) if path else {}
