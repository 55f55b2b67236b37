"""`hpcvdj models list`, `show` and `compare`."""

import sys
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest

import hpcvdj
from tests.commands import error_line, hpcvdj_command
from tests.recombination.igor_files import mouse_files, vdj_files, vj_files
from tests.rows import read_batches


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two models of the same alleles, but for a V allele of the second that is called otherwise."""
    folder = tmp_path_factory.mktemp("models")
    mouse_files(1).write(folder / "a")
    files = mouse_files(2)
    allele = files.events["v_choice"].realisations[2].partition(";")[0]
    for rows in (files.events["v_choice"].realisations, files.anchors["V"]):
        rows[2] = rows[2].replace(allele, "TRBV99*01")
    files.write(folder / "b")
    return folder / "a", folder / "b", allele


def test_a_model_is_shown(models):
    out, _ = hpcvdj_command("models", "show", models[0])
    assert f"SHA-256 {hpcvdj.load_model(models[0]).digest}\n" in out
    assert "V alleles  5, of which 5 can make a junction: 100.00 % of P(V)" in out
    lengths = hpcvdj.load_model(models[0]).insertions[1].lengths
    mean = sum(length * chance for length, chance in enumerate(lengths)) / sum(lengths)
    assert f"insertion  DJ: mean {mean:.2f} nt, at most 8; first base A " in out


@pytest.mark.slow
def test_a_page_is_drawn(models, tmp_path):
    pytest.importorskip("matplotlib")
    png, svg = tmp_path / "m.png", tmp_path / "m.svg"
    out, _ = hpcvdj_command("models", "show", models[0], "-o", png)
    assert out.endswith(f"written    {png}\n")
    assert png.read_bytes().startswith(b"\x89PNG")
    _, err = hpcvdj_command("models", "show", models[0], "-o", png, code=2)
    assert "--overwrite" in error_line(err)
    hpcvdj_command("models", "show", vj_files().write(tmp_path / "vj"), "-o", svg)
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.png", "m.svg", "vj"]


def test_two_models_are_compared(models, tmp_path):
    a, b, allele = models
    out, err = hpcvdj_command("models", "compare", a, b)
    assert not err
    loaded = [hpcvdj.load_model(path) for path in (a, b)]
    lines = out.splitlines()
    for letter, model, own in zip("AB", loaded, (allele, "TRBV99*01"), strict=True):
        assert f"model {letter}    {model.name}, SHA-256 {model.digest}" in lines
        share = f"{100 * model.p_v[2]:.2f} %"
        assert f"only in {letter}  1 allele(s), in {share} of the recombinations: {own} {share}" in lines
    comparison = hpcvdj.compare_models(*loaded)
    shown = [line.split() for line in lines]
    for row in comparison.rows:
        bits = [f"{value:.4g}" for value in (row.js_bits, row.kl_ab_bits, row.kl_ba_bits) if value is not None]
        shares = [f"{100 * share:.2f} %" for share in (row.probability_a, row.probability_b) if share is not None]
        words = " ".join([row.event, row.distribution, *bits, *shares]).split()
        assert (words in shown) == (not row.condition), words


@pytest.mark.parametrize("name", ["o.tsv", "o.tsv.gz", "o.parquet"])
def test_the_table_of_a_comparison(models, tmp_path, name):
    out, _ = hpcvdj_command("models", "compare", *models[:2], "-o", tmp_path / name)
    assert out.endswith(f"written    {tmp_path / name}\n")
    expected = hpcvdj.compare_models(*models[:2]).to_table()
    columns = expected.column_names
    read = [row for batch in read_batches(tmp_path / name, columns) for row in batch.to_pylist()]
    for row, own in zip(read, expected.to_pylist(), strict=True):
        for column, value in own.items():
            assert row[column] == "" if value is None else type(value)(row[column]) == value, (row, column)
    if name.endswith(".parquet"):
        assert pq.read_table(tmp_path / name).equals(expected)
    _, err = hpcvdj_command("models", "compare", *models[:2], "-o", tmp_path / name, code=2)
    assert "--overwrite" in error_line(err)
    hpcvdj_command("models", "compare", *models[:2], "-o", tmp_path / name, "--overwrite")


def test_infinite_and_missing_divergences_are_written(tmp_path):
    files = vdj_files()
    files.events["dj_ins"].probabilities = np.array([0.5, 0.5, 0.0])
    files.write(tmp_path / "b")
    out, _ = hpcvdj_command(
        "models", "compare", vdj_files().write(tmp_path / "a"), tmp_path / "b", "-o", tmp_path / "o.tsv"
    )
    rows = [line.split("\t") for line in (tmp_path / "o.tsv").read_text().splitlines()]
    (row,) = (row for row in rows if row[0] == "dj_ins")
    assert row[4] == "inf"
    assert float(row[5]) < 2
    assert "inf" in next(line for line in out.splitlines() if "dj_ins" in line).split()
    # VD insertions have at most one base.
    (row,) = (row for row in rows if row[0] == "vd_dinucl" and not row[2])
    assert row[3:6] == ["", "", ""]
    assert next(line for line in out.splitlines() if "vd_dinucl" in line).split().count("–") == 3


def test_models_of_the_same_alleles_have_no_others(tmp_path):
    folder = vdj_files().write(tmp_path / "a")
    out, _ = hpcvdj_command("models", "compare", folder, folder)
    assert "only in A  no allele\nonly in B  no allele\n" in out


def test_wrong_usage(models, tmp_path, monkeypatch):
    a, b, _ = models
    vj, heavy = vj_files().write(tmp_path / "vj"), vdj_files()
    heavy.events["v_choice"].realisations = ["IGHV1*01;GGTGTGCC", "IGHV2*01;GTGTA"]
    heavy.write(tmp_path / "igh")
    for arguments, message in (
        (["show", tmp_path], "model_params.txt"),
        (["show", "klingon_trb"], "no model of that name; there are human_tra"),
        (["show", a, "-o", tmp_path / "p.pdf"], "must end in .png or .svg"),
        (["show", a, "-o", tmp_path / "no" / "p.png"], "no such folder"),
        (["compare", a, vj], "has D genes and"),
        (
            ["compare", a, tmp_path / "igh"],
            "have no V allele in common; compare models of one locus",
        ),
        (["compare", a, "klingon_trb"], "no model of that name; there are human_tra"),
        (["compare", a, b, "-o", tmp_path / "o.csv"], "must end in .tsv, .tsv.gz, .tsv.zst, .parquet or .dataset"),
        (["compare", a, b, "-o", tmp_path / "no" / "o.tsv"], "no such folder"),
    ):
        _, err = hpcvdj_command("models", *arguments, code=2)
        assert message in error_line(err), arguments
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, err = hpcvdj_command("models", "show", a, "-o", tmp_path / "p.png", code=2)
    assert "pip install 'hpcvdj[plots]'" in error_line(err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["igh", "vj"]
