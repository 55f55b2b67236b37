"""Sources that the tests write themselves: IMGT-gapped FASTA and GermlineSet JSON of the shipped tables."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from hpcvdj.germline_import.anchors import ungapped
from hpcvdj.recombination.germline import Segment, read_germline
from tests.conftest import GERMLINE

FOLDER = GERMLINE.parent
NAMES = [path.stem for path in sorted(FOLDER.glob("*.tsv")) if path.stem not in ("REFUSED", "mouse_trb_paper")]
MODELS = {
    "human_tra": "human_T_alpha",
    "human_trb": "human_T_beta",
    "human_igh": "human_B_heavy",
    "human_igk": "human_B_kappa",
    "human_igl": "human_B_lambda",
    "mouse_tra": "mouse_T_alpha",
    "mouse_trb": "mouse_T_beta",
    "mouse_igh": "mouse_B_heavy",
    "mouse_igk": "mouse_B_kappa",
    "mouse_igl": "mouse_B_lambda",
}
CODON_104 = 309
SPECIES = {"human": "Homo sapiens", "mouse": "Mus musculus_C57BL/6J"}


def shipped(name: str) -> list[Segment]:
    """The segments of a shipped table."""
    return list(read_germline(FOLDER / f"{name}.tsv").segments)


def codon(segment: Segment, number: str, plain: str) -> str:
    """Codon 104 or 118 of an allele: that which its note says, or the usual one."""
    _, said, rest = segment.source.partition(f"codon {number} reads ")
    return rest[:3] if said else plain


def framework(segment: Segment) -> str:
    """A V-REGION up to codon 103, gapped: IMGT's positions 10, 31-34, 60-61 and 73 are left out; no stop codons."""
    seed = sum(map(ord, segment.allele))
    codons = ["acg"[(seed + k) % 3] + "ct" + "" for k in range(103)]
    for position in (10, 31, 32, 33, 34, 60, 61, 73):
        codons[position - 1] = "..."
    return "".join(codons)


def gapped_v(segment: Segment) -> str:
    """A V-REGION as IMGT writes it: lower case, gapped, codon 104 at its place."""
    before = framework(segment)
    assert len(before) == CODON_104
    return before + codon(segment, "104", "tgt").lower() + segment.sequence.lower()


def whole_j(segment: Segment) -> str:
    """A J-REGION: the segment, the motif, and an end that leaves one base over."""
    rest = "ggcaaaggc" if codon(segment, "118", "ttt") != "TTT" else "ggagccggc"
    return segment.sequence.lower() + codon(segment, "118", "ttt").lower() + rest + "acacggctgg"


def imgt_header(segment: Segment, species: str, **fields: str) -> str:
    """A header of IMGT's fifteen fields."""
    start = len(segment.sequence) % 3 + 1 if segment.segment_type == "J" else 1
    region = fields.get("region", f"{segment.segment_type}-REGION")
    function = fields.get("function", segment.functional)
    partial = fields.get("partial", " ")
    return f"X00001|{segment.allele}|{species}|{function}|{region}|1..9|9 nt|{start}| | | | |9+0=9|{partial}| |"


def region(segment: Segment) -> str:
    """The sequence of an allele as IMGT writes it."""
    if segment.segment_type == "V":
        return gapped_v(segment)
    return whole_j(segment) if segment.segment_type == "J" else segment.sequence.lower()


def fasta(segments: list[Segment], species: str = "Homo sapiens") -> str:
    """Segments as IMGT-gapped FASTA, in lines of 60."""
    lines = []
    for segment in segments:
        sequence = region(segment)
        lines.append(">" + imgt_header(segment, species))
        lines += [sequence[k : k + 60] for k in range(0, len(sequence), 60)]
    return "\n".join(lines) + "\n"


def allele_description(segment: Segment, gapped: bool) -> dict:
    """An allele as OGRDB publishes it."""
    coding = region(segment).upper()
    bare = ungapped(coding)
    entry = {
        "allele_description_id": "OGRDB:A00001",
        "label": segment.allele,
        "sequence": "GGTTCC" + bare + "CACAGTG",
        "coding_sequence": coding if gapped else bare,
        "locus": segment.locus,
        "sequence_type": segment.segment_type,
        "functional": segment.functional == "F",
        "inference_type": "genomic_and_rearranged",
        "species": {"id": "NCBITAXON:9606", "label": "Homo sapiens"},
        "gene_start": 7,
        "gene_end": 6 + len(bare),
        "status": "active",
        "curational_tags": None,
    }
    if segment.segment_type == "J":
        entry["j_cdr3_end"] = 6 + len(segment.sequence) + 1
        entry["j_codon_frame"] = {0: 1, 2: 2, 1: 3}[len(segment.sequence) % 3]
    if segment.segment_type == "V":
        cdr3_start = 313 if gapped else len(bare) - len(segment.sequence) + 1
        entry["v_gene_delineations"] = [{"delineation_scheme": "IMGT", "fwr1_start": 1, "cdr3_start": cdr3_start}]
    return entry


def model_folder(name: str) -> Path:
    """OLGA's model folder behind a shipped table; skips where OLGA 1.3.0 is not installed."""
    spec = importlib.util.find_spec("olga")
    if spec is None or not spec.submodule_search_locations or importlib.metadata.version("olga") != "1.3.0":
        pytest.skip("needs the model files of olga 1.3.0")
    return Path(spec.submodule_search_locations[0]) / "default_models" / MODELS[name]
