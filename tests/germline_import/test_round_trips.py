"""What was derived once comes back from every kind of source, segment by segment."""

from __future__ import annotations

import gzip
import json

import pytest

from hpcvdj.germline_import import import_germline
from hpcvdj.germline_import.anchors import ungapped
from hpcvdj.germline_import.sources import ModelFolder
from hpcvdj.recombination.germline import read_germline
from tests.germline_import.conftest import (
    CODON_104,
    FOLDER,
    MODELS,
    NAMES,
    SPECIES,
    allele_description,
    codon,
    fasta,
    gapped_v,
    model_folder,
    shipped,
)

WITHOUT_ANCHORS = {
    "human_trb": {"TRBV4-3*02": None},
    "human_igh": {"IGHV4-4*07": "CGAGAGA"},
    "human_igl": {"IGLV3-2*03": "CGGAACAGCACTGCTTCTCATCT"},
    "mouse_trb": {"TRBV10*01": "AGCAGTGAACAAA", "TRBV31*01": "ATAGTCTGAGC"},
    "mouse_igh": {"IGHV0-OSZZ*00": "GAGGACTCTGCGGTCTATTACTGTGCATGA"},
    "mouse_tra": {"TRAJ24*01": "TGCCAGTTTGGGGAAACTGCAG"},
}
"""What the models give where the shipped tables put them right: docs/germline_import.md lists the same."""


def pairs(segments) -> dict[str, tuple[str, str, str]]:
    """(locus, functionality, segment) by allele."""
    found = {s.allele: (s.locus, s.functional, s.sequence) for s in segments}
    assert len(found) == len(segments)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_model_folder_gives_the_shipped_table_byte_by_byte(name, tmp_path):
    anchors = FOLDER / "anchors" / f"{name}.csv"
    folder = model_folder(name)
    origin = "OGRDB" if name.startswith("mouse_ig") else "IMGT"
    imported = import_germline(
        folder,
        anchors=anchors if anchors.exists() else None,
        source_note=f"{origin}, from OLGA 1.3.0 {folder.name}",
    )
    beside = imported.write(tmp_path / f"{name}.tsv")
    assert (tmp_path / f"{name}.tsv").read_bytes() == (FOLDER / f"{name}.tsv").read_bytes()
    listed = (FOLDER / "REFUSED.tsv").read_text().splitlines()
    assert beside.read_text().splitlines() == [listed[0], *(row for row in listed if row.startswith(f"{name}.tsv\t"))]


@pytest.mark.parametrize("name", NAMES)
def test_without_anchors_these_alleles_differ_and_no_others(name):
    found = pairs(import_germline(model_folder(name)).germline().segments)
    expected = pairs(shipped(name))
    differing = {allele for allele in found.keys() | expected.keys() if found.get(allele) != expected.get(allele)}
    assert {allele: found[allele][2] if allele in found else None for allele in differing} == WITHOUT_ANCHORS.get(
        name, {}
    )


def anchors_for(segments, path):
    """An anchors file for the alleles whose conserved codon is mutated; its path, and their names."""
    odd = []
    for s in segments:
        if s.segment_type == "V" and codon(s, "104", "") and s.functional == "F":
            odd.append((s.allele, len(ungapped(gapped_v(s)[:CODON_104]))))
        if s.segment_type == "J" and codon(s, "118", ""):
            odd.append((s.allele, len(s.sequence)))
    path.write_text("allele,anchor_index\n" + "".join(f"{allele},{place}\n" for allele, place in odd))
    return path, {allele for allele, _ in odd}


@pytest.mark.parametrize("name", NAMES)
def test_imgt_gapped_fasta_gives_the_shipped_segments(name, tmp_path):
    segments = shipped(name)
    path = tmp_path / "imgt.fasta.gz"
    path.write_bytes(gzip.compress(fasta(segments, SPECIES[name[:5]]).encode()))
    anchors, odd = anchors_for(segments, tmp_path / "anchors.csv")
    imported = import_germline(path, anchors=anchors)
    assert imported.refusals == ()
    assert pairs(imported.germline().segments) == pairs(segments)
    bare = import_germline(path)
    assert {refusal.allele for refusal in bare.refusals} == odd
    assert all(refusal.reason.startswith("no anchor: ") for refusal in bare.refusals)


@pytest.mark.parametrize("name", NAMES)
def test_imgt_fasta_of_the_models_own_sequences(name, tmp_path):
    """Real V and J regions, gapped so that codon 104 stands at its place: the motif finds no wrong anchor."""
    genes = [gene for gene in ModelFolder().read(model_folder(name)) if gene.sequence and isinstance(gene.anchor, int)]
    lines = []
    for gene in genes:
        gaps = "." * (CODON_104 - gene.anchor) if gene.segment_type == "V" else ""
        where = 30 if len(gaps) % 3 == 0 else 0
        lines.append(f">{gene.allele}\n{gene.sequence[:where].lower()}{gaps}{gene.sequence[where:].lower()}\n")
    path = tmp_path / "bare.fasta"
    path.write_text("".join(lines))
    expected = {gene.allele: gene for gene in genes}
    imported = import_germline(path)
    assert len(imported.rows) > 0.8 * sum(gene.segment_type != "D" for gene in genes)
    for row in imported.rows:
        gene = expected[row.allele]
        cut = gene.sequence[gene.anchor + 3 :] if gene.segment_type == "V" else gene.sequence[: gene.anchor]
        assert row.sequence == cut, row.allele


@pytest.mark.parametrize("gapped", [True, False])
@pytest.mark.parametrize("name", ["human_igh", "human_trb", "mouse_igk", "mouse_trb"])
def test_germline_set_json_gives_the_shipped_segments(name, gapped, tmp_path):
    segments = shipped(name)
    germline_set = {
        "germline_set_ref": "OGRDB:G00001.1",
        "germline_set_name": "test set",
        "allele_descriptions": [allele_description(s, gapped) for s in segments],
    }
    path = tmp_path / "set.json"
    path.write_text(json.dumps({"GermlineSet": [germline_set]}))
    imported = import_germline(path)
    odd = {s.allele for s in segments if codon(s, "104", "") and (s.functional == "F" or not gapped)}
    odd |= {s.allele for s in segments if codon(s, "118", "")}
    assert {refusal.allele for refusal in imported.refusals} == odd
    found = {allele: value[::2] for allele, value in pairs(imported.germline().segments).items()}
    assert found == {s.allele: (s.locus, s.sequence) for s in segments if s.allele not in odd}
    assert {row.functional for row in imported.rows} <= {"F", "P", "ORF"}
    assert imported.rows[0].source.startswith("OGRDB:G00001.1 test set, set.json")
    # A second source with the same alleles adds nothing, and says so.
    twice = import_germline([path, path])
    assert twice.rows == imported.rows
    assert len(twice.refusals) == len(imported.rows) + 2 * len(odd)


def test_what_is_written_is_what_is_read(tmp_path):
    (tmp_path / "a.fasta").write_text(fasta(shipped("mouse_trb")))
    imported = import_germline(tmp_path / "a.fasta", species_note="strain C57BL/6")
    for target in ("x.tsv", "x.tsv.gz"):
        imported.write(tmp_path / target, overwrite=True)
        read = read_germline(tmp_path / target)
        assert read.segments == imported.germline().segments
        assert read.digest() == imported.germline().digest()
    assert all("; strain C57BL/6" in segment.source for segment in read.segments)
    assert gzip.decompress((tmp_path / "x.tsv.gz").read_bytes()) == (tmp_path / "x.tsv").read_bytes()


def test_models_of_all_shipped_tables_are_tried():
    assert set(MODELS) == set(NAMES)
