"""The shipped germline tables: what a reader of them relies on, and that `derive.py` still makes them."""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hpcvdj.recombination.germline import COLUMNS, read_germline

GERMLINE = Path(__file__).resolve().parents[2] / "inputs" / "germline"
DERIVE = GERMLINE / "derive.py"
LOCI = {
    f"{species}_{locus.lower()}.tsv": locus
    for species in ("human", "mouse")
    for locus in ("TRA", "TRB", "IGH", "IGK", "IGL")
} | {"mouse_trb_paper.tsv": "TRB"}
WITH_D = {name for name, locus in LOCI.items() if locus in ("TRB", "IGH")}

PAPER_V = {
    14: ["TRBV1", "TRBV2", "TRBV3", "TRBV4", "TRBV5", "TRBV15", "TRBV16", "TRBV23", "TRBV26", "TRBV29"],
    13: ["TRBV13-1", "TRBV13-2", "TRBV13-3", "TRBV14", "TRBV19"],
    12: ["TRBV12-1", "TRBV12-2"],
    11: ["TRBV20", "TRBV30", "TRBV31"],
}
PAPER_J = {
    **{f"TRBJ1-{number}": length for number, length in enumerate((17, 17, 19, 20, 19, 22), start=1)},
    **{f"TRBJ2-{number}": length for number, length in enumerate((19, 20, 18, 18, 18), start=1)},
    "TRBJ2-7": 16,
}
PAPER_D = {"TRBD1": "GGGACAGGGGGC", "TRBD2": "GGGACTGGGGGGGC"}

Row = dict[str, str]
every_table = pytest.mark.parametrize("name", LOCI)


def read(name: str) -> list[Row]:
    """The rows of one file, strictly: the reader of the package is lenient with blanks and lower case."""
    with (GERMLINE / name).open(encoding="ascii", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def gene_of(allele: str) -> str:
    """The gene's name: the allele's, less `*01`."""
    return allele.partition("*")[0]


def segments(name: str, kind: str) -> dict[str, str]:
    """Segments of one type by allele."""
    return {row["allele"]: row["sequence"] for row in read(name) if row["segment_type"] == kind}


def numbers(text: str) -> list[str | int]:
    """Sort key in which 2 stands before 12."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


@every_table
def test_rows_are_clean(name: str) -> None:
    rows = read(name)
    assert rows
    assert tuple(rows[0]) == COLUMNS
    for row in rows:
        assert None not in row, row
        assert None not in row.values(), row
        assert row["locus"] == LOCI[name]
        assert row["functional"] in ("F", "ORF", "P")
        assert re.fullmatch("[ACGT]+", row["sequence"]), row
        assert re.fullmatch(r"[A-Z]{4}\S+\*\S+", row["allele"]), row
        assert row["allele"].startswith(row["locus"] + row["segment_type"])
        assert re.match(r"(IMGT|OGRDB), from OLGA 1\.3\.0 (human|mouse)_[TB]_\w+(; |$)", row["source"]), row
        assert row["source"].split()[4].startswith(name.split("_")[0])


@every_table
def test_alleles_are_unique(name: str) -> None:
    counts = Counter(row["allele"] for row in read(name))
    assert [allele for allele, count in counts.items() if count > 1] == []


@every_table
def test_types_present(name: str) -> None:
    assert {row["segment_type"] for row in read(name)} == ({"V", "D", "J"} if name in WITH_D else {"V", "J"})


@every_table
def test_order(name: str) -> None:
    """V, D, J, and natural within each: a call without allele means the first listed, so order is meaning."""
    listed = [(row["segment_type"], row["allele"]) for row in read(name)]

    def key(entry: tuple[str, str]) -> tuple[int, list[str | int], list[str | int]]:
        gene, _, number = entry[1].partition("*")
        return "VDJ".index(entry[0]), numbers(gene), numbers(number)

    assert listed == sorted(listed, key=key)


@every_table
def test_gene_call_means_lowest_allele(name: str) -> None:
    """The package's own reader resolves a gene name to the allele with the lowest number that is listed."""
    germline = read_germline(GERMLINE / name)
    alleles: dict[tuple[str, str], list[str]] = {}
    for row in read(name):
        alleles.setdefault((row["segment_type"], gene_of(row["allele"])), []).append(row["allele"])
    for (kind, gene), listed in alleles.items():
        found = germline.find(kind, gene)
        lowest = min(listed, key=lambda allele: numbers(allele.partition("*")[2]))
        assert found is not None
        assert found.allele == lowest


def test_only_these_tables_are_shipped() -> None:
    assert {path.name for path in GERMLINE.glob("*.tsv")} == {*LOCI, "REFUSED.tsv"}


# --- Mouse TRB, whose figures the paper prints


@pytest.mark.parametrize("name", ["mouse_trb.tsv", "mouse_trb_paper.tsv"])
def test_mouse_trb_reference_lengths(name: str) -> None:
    v, d, j = ({gene_of(allele): sequence for allele, sequence in segments(name, kind).items()} for kind in "VDJ")
    for length, genes in PAPER_V.items():
        assert {gene: len(v[gene]) for gene in genes} == dict.fromkeys(genes, length)
    assert {gene: len(j[gene]) for gene in PAPER_J} == PAPER_J
    assert d == PAPER_D
    assert v["TRBV1"] == "ACCTGCAGTGCAGA"
    assert v["TRBV31"] == "GCCTGGAGTCT"


def test_mouse_trb_has_22_functional_v() -> None:
    rows = read("mouse_trb.tsv")
    functional = {row["allele"] for row in rows if (row["segment_type"], row["functional"]) == ("V", "F")}
    paper = set(segments("mouse_trb_paper.tsv", "V"))
    assert len(functional) == 22
    assert functional - paper == {"TRBV17*01", "TRBV24*01"}
    assert not paper - functional


def test_paper_set() -> None:
    """20 V, 2 D, 12 J; the rows are those of the whole table; the forms are the paper's 362, 505 and 283."""
    name = "mouse_trb_paper.tsv"
    v, d, j = (segments(name, kind) for kind in "VDJ")
    assert (len(v), len(d), len(j)) == (20, 2, 12)
    assert {gene_of(allele) for allele in v} == {gene for genes in PAPER_V.values() for gene in genes}
    assert {gene_of(allele) for allele in j} == set(PAPER_J)
    whole = read("mouse_trb.tsv")
    assert all(row in whole for row in read(name))
    assert sum(len(sequence) + 4 + 1 for sequence in v.values()) == 362
    assert sum((len(sequence) + 9) * (len(sequence) + 10) // 2 - 1 for sequence in d.values()) == 505
    assert sum(len(sequence) + 4 + 1 for sequence in j.values()) == 283


# --- Corrections and refusals


@pytest.mark.parametrize(
    ("name", "allele", "segment"),
    [
        ("human_trb.tsv", "TRBV4-3*02", "GCCAGCAGCCAAGA"),
        ("human_igh.tsv", "IGHV4-4*07", "GCGAGAGA"),
        ("human_igl.tsv", "IGLV3-2*03", "CGCTCGGAACAGCACTGCTTCTCATCT"),
        ("mouse_trb.tsv", "TRBV10*01", "GCCAGCAGTGAACAAA"),
        ("mouse_trb.tsv", "TRBV31*01", "GCCTGGAGTCT"),
        ("mouse_igh.tsv", "IGHV0-OSZZ*00", "GCATGA"),
    ],
)
def test_corrected_segments(name: str, allele: str, segment: str) -> None:
    row = next(row for row in read(name) if row["allele"] == allele)
    assert row["sequence"] == segment
    assert "put right here" in row["source"]


def test_only_the_orphons_among_d_are_not_functional() -> None:
    for name in WITH_D:
        for row in read(name):
            if row["segment_type"] == "D":
                assert row["functional"] == ("ORF" if "/OR15" in row["allele"] else "F")


def test_no_bracketed_allele_differs_in_length_from_germline() -> None:
    """Alleles known from rearranged sequences have the length of a germline allele of their gene."""
    for name in LOCI:
        lengths: dict[str, set[int]] = {}
        partial: list[Row] = []
        for row in read(name):
            if re.search(r"; IMGT [\[(]", row["source"]):
                partial.append(row)
            else:
                lengths.setdefault(gene_of(row["allele"]), set()).add(len(row["sequence"]))
        for row in partial:
            assert len(row["sequence"]) in lengths[gene_of(row["allele"])], row


def test_refused_alleles() -> None:
    """Each refused allele is absent from its table, has a reason, and says so where no allele is left."""
    refused = read("REFUSED.tsv")
    assert len({(row["table"], row["allele"]) for row in refused}) == len(refused) > 0
    for row in refused:
        assert row["locus"] == LOCI[row["table"]]
        assert row["reason"]
        listed = {entry["allele"] for entry in read(row["table"])}
        assert row["allele"] not in listed
        lost = gene_of(row["allele"]) not in {gene_of(allele) for allele in listed}
        assert row["reason"].endswith("; the gene is lost") == lost


# --- README.md


def test_readme_counts() -> None:
    readme = (GERMLINE / "README.md").read_text(encoding="utf-8")
    for name in LOCI:
        rows = read(name)
        counts = Counter((row["segment_type"], row["functional"]) for row in rows)
        cells = [" / ".join(str(counts[kind, status]) for status in ("F", "ORF", "P")) for kind in "VDJ"]
        assert f"| `{name}` | {' | '.join(cells)} | {len(rows)} |\n" in readme


def test_readme_names_every_refused_and_corrected_allele() -> None:
    readme = (GERMLINE / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[A-Z]{4}[^\s*`|,;]*\*\w+", readme))
    refused = {row["allele"] for row in read("REFUSED.tsv")}
    corrected = {r["allele"] for name in LOCI for r in read(name) if "put right here" in r["source"]}
    assert sorted((refused | corrected) - named) == []


# --- derive.py


def olga_is_installed() -> bool:
    """Whether the version of OLGA that the tables are made of is there; its code is not imported."""
    return importlib.util.find_spec("olga") is not None and importlib.metadata.version("olga") == "1.3.0"


def run_derive(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script as a user would."""
    command = [sys.executable, str(DERIVE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


needs_olga = pytest.mark.skipif(not olga_is_installed(), reason="needs the model files of olga 1.3.0")


@needs_olga
def test_derive_check_passes() -> None:
    result = run_derive("--check")
    assert (result.returncode, result.stderr) == (0, "")


@needs_olga
def test_derive_check_names_what_differs(tmp_path: Path) -> None:
    """A changed and a missing file are named, the status is 1, and nothing is written."""
    for path in GERMLINE.glob("*.tsv"):
        shutil.copy(path, tmp_path)
    changed = tmp_path / "human_igk.tsv"
    changed.write_text(changed.read_text().replace("CTCC", "CTCA", 1))
    before = changed.read_bytes()
    (tmp_path / "mouse_igl.tsv").unlink()
    result = run_derive("--check", "--out", str(tmp_path))
    assert result.returncode == 1
    assert result.stdout.splitlines() == ["differs: human_igk.tsv", "differs: mouse_igl.tsv"]
    assert changed.read_bytes() == before
    assert not (tmp_path / "mouse_igl.tsv").exists()


@needs_olga
def test_derive_tells_every_refusal(tmp_path: Path) -> None:
    result = run_derive("--out", str(tmp_path))
    assert result.returncode == 0
    for row in read("REFUSED.tsv"):
        assert f"left out of {row['table']}: {row['allele']}: {row['reason']}\n" in result.stdout


def test_derive_without_models_is_one_line(tmp_path: Path) -> None:
    result = run_derive("--check", "--models", str(tmp_path / "none"))
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "none" in result.stderr
