"""benchmarks/_cohort.py: the cohort whose planted signals are known."""

import csv
import importlib
from dataclasses import replace

import pytest

from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from tests.conftest import ROOT


def rows_of(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


@pytest.mark.exhaustive
def test_a_cohort_with_planted_signals(tmp_path, monkeypatch):
    """The seed gives the bytes, and the truth is in the tables."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    cohort = importlib.import_module("_cohort")
    model = load_model("human_trb_m15")
    plan = cohort.Cohort(individuals=4, junctions=300, seed=3, public=3, clusters=2, carried=5, rarest=1e-9)
    for name, own in (("a", plan), ("b", plan), ("c", replace(plan, seed=4))):
        cohort.make(tmp_path / name, model, own)
    files = [path.relative_to(tmp_path / "a") for path in sorted((tmp_path / "a").rglob("*.tsv"))]
    assert len(files) == 6
    for file in files:
        own = (tmp_path / "a" / file).read_bytes()
        assert own == (tmp_path / "b" / file).read_bytes()
        assert (own == (tmp_path / "c" / file).read_bytes()) == (file.name == "metadata.tsv")
    names = [row["repertoire_id"] for row in rows_of(tmp_path / "a" / "metadata.tsv")]
    samples = {name: rows_of(tmp_path / "a" / "samples" / f"{name}.tsv") for name in names}
    truth = rows_of(tmp_path / "a" / "truth.tsv")
    for row in truth:
        (own,) = [own for own in samples[row["repertoire_id"]] if own["sequence_id"] == row["sequence_id"]]
        assert own["junction"] == row["junction"]
        assert translate([row["junction"]]) == [row["junction_aa"]]
    public = [row for row in truth if row["kind"] == "public"]
    assert len({(row["number"], row["junction_aa"]) for row in public}) == 3
    assert len({row["junction"] for row in public}) == len(public), "nucleotides of its own in each individual"
    assert {row["repertoire_id"] for row in public if row["number"] == "1"} == {"individual_001", "individual_003"}
    carried = [row["junction"] for row in truth if row["kind"] == "carried"]
    assert set(carried) <= {row["junction"] for row in samples["individual_001"]}
    assert len(carried) == 5
    clusters = {row["repertoire_id"] for row in truth if row["kind"] == "cluster"}
    assert clusters == {"individual_004", "individual_003"}
