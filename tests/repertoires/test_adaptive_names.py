"""Adaptive's names of genes, and the ends of J: those of slow, obvious references."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcvdj
from hpcvdj.recombination.packaged import model_paths
from hpcvdj.repertoires.formats.adaptive_names import call_of, end_of_j, genes_of, imgt_names

EXCEPTIONS = Path(__file__).resolve().parents[3] / "shared" / "formats" / "names_adaptive_exceptions.tsv"


@pytest.mark.skipif(not EXCEPTIONS.is_file(), reason="the list is not part of the repository")
def test_the_names_of_the_list_of_exceptions():
    with open(EXCEPTIONS) as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 30
    for row in rows:
        unnamed = row["imgt"].startswith("(")
        wanted = row["adaptive"] if unnamed else row["imgt"]
        assert imgt_names(row["species"], row["adaptive"]) == [wanted], row
        assert call_of(row["species"], {"resolved": row["adaptive"] + "*01"}) == wanted + "*01"


@pytest.mark.parametrize("species", ["human", "mouse"])
@pytest.mark.parametrize("locus", ["TRA", "TRB"])
def test_every_listed_gene_is_found_by_adaptives_name(species, locus):
    """The slow way round: how Adaptive spells IMGT's gene."""
    for segment in "VJ":
        for gene in genes_of(species, locus, segment):
            family, _, number = gene.split("/")[0].removeprefix(locus + segment).partition("-")
            digits = re.match(r"\d+", family)[0]
            padded = f"{int(digits):02}{family[len(digits) :]}-{int(number or 1):02}"
            name = f"TCR{locus[2]}{segment}{padded}"
            assert imgt_names(species, name) == [gene], name
            assert imgt_names(species, f"{name}*02, {name}*02") == [f"{gene}*02"]


def test_no_family_becomes_a_gene():
    for species in ("human", "mouse"):
        for locus in ("TRA", "TRB"):
            for segment in "VJ":
                genes = genes_of(species, locus, segment)
                for family in {gene.partition("-")[0] for gene in genes if "-" in gene and "/" not in gene}:
                    if family == "TRAV8N" and species == "mouse":
                        continue
                    call = call_of(species, {"resolved": "unresolved", "family": family.replace("TR", "TCR")})
                    assert call == family
                    assert call not in genes


@pytest.mark.parametrize(
    ("columns", "call"),
    [
        ({"resolved": "TCRBV06-05*01", "gene": "TCRBV06-05", "allele": "01"}, "TRBV6-5*01"),
        ({"resolved": "TCRBV06-05", "allele_ties": "01,02"}, "TRBV6-5"),
        ({"resolved": "TCRBV06-05", "allele": "unknown", "allele_ties": "02,03"}, "TRBV6-5*02,TRBV6-5*03"),
        ({"resolved": "TCRBV12", "gene_ties": "TCRBV12-03/12-04,TCRBV12-04"}, "TRBV12-3,TRBV12-4"),
        ({"resolved": "unresolved", "family": "TCRBV12", "gene_ties": ""}, "TRBV12"),
        ({"resolved": "TCRBV12-X", "family": "TCRBV12"}, "TRBV12"),
        ({"gene": "unresolved", "family_ties": "TCRBV03,TCRBV12"}, "TRBV3,TRBV12"),
        ({"gene": "TCRBV03-01/03-02", "allele": "01"}, "TRBV3-1*01,TRBV3-2*01"),
        ({"resolved": "TCRBV03-01/03-02*01"}, "TRBV3-1*01,TRBV3-2*01"),
        ({"resolved": "TCRBV6S4A1"}, "TCRBV6S4A1"),
        ({"resolved": "TCRBVA-or09_02"}, "TRBVA/OR9-2"),
        ({"resolved": "TCRBVA"}, "TRBVA"),
        ({"resolved": "IGHV03-23*01"}, "IGHV3-23*01"),
        ({"resolved": "IGHJ06-01*02"}, "IGHJ6*02"),
        ({"resolved": "IGHV01-or15_adap09"}, "IGHV01-or15_adap09"),
        ({"resolved": "TRBV6-2/6-3"}, "TRBV6-2,TRBV6-3"),
        ({"resolved": "TRAV29/DV5*01"}, "TRAV29/DV5*01"),
        ({"resolved": "no data", "gene": "null"}, ""),
        ({}, ""),
    ],
)
def test_calls(columns, call):
    assert call_of("human", columns) == call


def test_names_of_the_old_nomenclature_are_in_no_table():
    for name in ("TCRBV6S4", "TCRBV13S3", "TCRBV8S1", "TCRBV6S4A1"):
        for species in ("human", "mouse"):
            assert imgt_names(species, name) == [name]
            assert name not in genes_of(species, "TRB", "V")


@given(st.text(st.sampled_from("TCRBAVJDGIH0123456789-_/*,XorS ."), max_size=24), st.sampled_from(["human", "mouse"]))
def test_any_text_has_a_call(text, species):
    names = imgt_names(species, text)
    assert call_of(species, {"resolved": text}) == ",".join(names) or not names or "," in text or "*" not in text
    assert all(names)


def test_codon_118_is_that_of_the_model():
    model = hpcvdj.load_model(model_paths()["human_trb_m15"])
    ends = {template.allele: template.segment for template in model.j}
    assert len(ends) == 15
    assert {name: end_of_j("human", name) for name in ends} == ends


@pytest.mark.olga
def test_codon_118_of_mouse_is_that_of_olga():
    import olga

    folder = Path(olga.__file__).parent / "default_models" / "mouse_T_beta"
    with open(folder / "J_gene_CDR3_anchors.csv") as file:
        anchors = {row["gene"]: int(row["anchor_index"]) for row in csv.DictReader(file)}
    text = (folder / "model_params.txt").read_text()
    sequences = dict(re.findall(r"^%(TRBJ[^;]*);([ACGT]*);", text, re.MULTILINE))
    ends = {name: sequences[name][: anchor + 3] for name, anchor in anchors.items() if name in sequences}
    assert len(ends) > 10
    for name, end in ends.items():
        known = end if end.endswith(("TTT", "TTC")) else ""
        assert end_of_j("mouse", name) == known, name
