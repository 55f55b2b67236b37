"""Where models come from and what they are good for: what is listed, recorded, and warned of."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import warnings
from importlib.metadata import version

import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.errors import HpcvdjWarning, InputError
from hpcvdj.recombination.igor import OLGA_FOLDERS, load_model, model_folders, olga_folder, read_model
from hpcvdj.recombination.origin import FACTS, FEW_ROWS, Origin, read_facts, read_origin
from hpcvdj.recombination.packaged import model_paths
from tests.commands import hpcvdj_command
from tests.recombination.igor_files import vdj_files

EXAMPLE = (
    "human_trb_m15 is an example of hpcvdj infer, from 2,036 junctions of one donor: do not trust its tests for other "
    "people"
)

ROWS = [
    ("TRBV9*01", "TRBJ2-7*01", "TGTGCCAGCAGCTACGAGCAGTACTTC"),
    ("TRBV12-3*01", "TRBJ1-1*01", "TGTGCCAGCAGTTTAGGACAGAACACTGAAGCTTTCTTT"),
]


def folder_of(path, **facts):
    """A model, and inference.json with these facts."""
    vdj_files().write(path)
    (path / FACTS).write_text(json.dumps({"format": "hpcvdj-inference", **facts}))
    return path


@pytest.fixture
def tables(tmp_path):
    """A folder of two tables of two rows."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        lines = ["sequence_id\tv_call\tj_call\tjunction", *(f"{k}\t" + "\t".join(row) for k, row in enumerate(ROWS))]
        (tmp_path / "in" / f"{name}.tsv").write_text("\n".join([*lines, ""]))
    return tmp_path / "in"


def commands(tables, out):
    """Each command whose tests or numbers rest on a model, and how it ends with so few rows."""
    return {
        "pgen": (["pgen", tables / "a.tsv", "-o", out / "p.tsv"], 0),
        "generate": (["generate", "-n", 3, "-o", out / "g.tsv"], 0),
        "sharing": (["sharing", tables, "-o", out / "s.tsv", "--draws", 1000], 2),
        "contamination": (["contamination", tables, "-o", out / "c.tsv", "--draws", 1000], 2),
        "enrich": (["enrich", tables / "a.tsv", "-o", out / "e.tsv"], 2),
        "infer-selection": (["infer-selection", tables, "-o", out / "f"], 2),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pgen", "generate", "sharing", "contamination", "enrich", "infer-selection"])
def test_commands_warn_once_of_the_example(tables, tmp_path, name):
    words, code = commands(tables, tmp_path)[name]
    _, err = hpcvdj_command(*words, "-m", "human_trb_m15", "--backend", "cpu", "-q", code=code)
    assert err.count(f"hpcvdj: {EXAMPLE}\n") == 1
    assert len(re.findall("human_trb_m15 is", err)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        lambda table, model: hpcvdj.pgen(table, model),
        lambda table, model: hpcvdj.generate(model, 3),
        lambda table, model: hpcvdj.sharing({"a": table, "b": table}, model),
        lambda table, model: hpcvdj.contamination({"a": table, "b": table}, model),
        lambda table, model: hpcvdj.enrich(table, model),
        lambda table, model: hpcvdj.infer_selection(table, model),
    ],
    ids=["pgen", "generate", "sharing", "contamination", "enrich", "infer_selection"],
)
@pytest.mark.parametrize("loaded", [False, True], ids=["by name", "loaded"])
def test_functions_warn_once_of_the_example(call, loaded):
    table = pa.table({name: list(column) for name, column in zip(("v_call", "j_call", "junction"), zip(*ROWS))})  # noqa: B905
    model = load_model("human_trb_m15") if loaded else "human_trb_m15"
    with warnings.catch_warnings(record=True) as given, contextlib.suppress(InputError):
        warnings.simplefilter("always")
        call(table, model)
    own = [one for one in given if "human_trb_m15 is" in str(one.message)]
    assert [(one.category, str(one.message), one.filename) for one in own] == [(HpcvdjWarning, EXAMPLE, __file__)]


def test_what_rests_on_no_model_does_not_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", HpcvdjWarning)
        hpcvdj.model_tables("human_trb_m15")
        hpcvdj.compare_models("human_trb_m15", "human_trb_m15")
    for words in (["models", "show", "human_trb_m15"], ["explain", ROWS[0][2], "-m", "human_trb_m15"]):
        assert "an example" not in hpcvdj_command(*words)[1]


@pytest.mark.parametrize(("rows", "warned"), [(FEW_ROWS, False), (FEW_ROWS - 1, True), (0, True)])
def test_models_of_few_rows(tmp_path, rows, warned):
    model = load_model(folder_of(tmp_path / "m", rows_counted=rows))
    assert model.origin == Origin("", rows)
    expected = (
        f"model {tmp_path / 'm'}: inferred from {rows:,} rows, fewer than 10,000; what is rare is not known well, and "
        "tests that rest on it may be wrong"
    )
    assert model.caution == (expected if warned else None)
    _, err = hpcvdj_command("generate", "-m", tmp_path / "m", "-n", 3, "-o", tmp_path / "g.tsv", "--backend", "cpu")
    assert err.count(expected) == warned
    assert model.facts()["model_rows"] == rows
    assert "model_purpose" not in model.facts()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": "another", "rows_counted": 5}', '{"rows_counted": 5}', None]
)
def test_what_is_no_file_of_facts_says_nothing(tmp_path, text):
    vdj_files().write(tmp_path / "m")
    if text is not None:
        (tmp_path / "m" / FACTS).write_text(text)
    assert read_facts(tmp_path / "m") is None
    model = load_model(tmp_path / "m")
    assert model.origin == Origin()
    assert model.caution is None
    assert model.facts() == {"model": str(tmp_path / "m"), "model_sha256": model.digest}


@pytest.mark.parametrize(
    ("name", "locus"),
    [
        ("human_trb_m15", "TRB"),
        pytest.param("mouse_tra", "TRA", marks=pytest.mark.olga),
        pytest.param("human_igk", "IGK", marks=pytest.mark.olga),
    ],
)
def test_the_locus_of_a_model(name, locus):
    assert load_model(name).locus == locus


def test_rows_that_are_no_number(tmp_path):
    assert read_origin(folder_of(tmp_path / "m", rows_counted="many")) == Origin()


def test_results_record_the_purpose_and_the_rows(tables, tmp_path):
    hpcvdj_command("pgen", tables / "a.tsv", "-m", "human_trb_m15", "-o", tmp_path / "p.h5", "--backend", "cpu")
    with hpcvdj.Result(tmp_path / "p.h5") as result:
        facts = result.provenance
    assert facts["model_rows"] == 2036
    assert f"human_trb_m15 is {facts['model_purpose']}" == EXAMPLE


@pytest.mark.parametrize(
    "facts",
    [
        {"rows_counted": 5_000},
        {"rows_counted": 2_036, "purpose": "an example of one donor"},
        {"rows_counted": 70_000, "species": "mouse"},
    ],
)
def test_a_model_that_python_writes_keeps_its_origin(facts, tmp_path):
    """Copies were used without a word of caution."""
    model = load_model(folder_of(tmp_path / "m", **facts))
    hpcvdj.write_model(model, tmp_path / "copy")
    copy = load_model(tmp_path / "copy")
    assert (
        copy.origin == model.origin == Origin(facts.get("purpose", ""), facts["rows_counted"], facts.get("species", ""))
    )
    assert (copy.caution is None) == (model.caution is None)
    # It has no other facts about the inference.
    assert read_facts(tmp_path / "copy") is None
    out, _ = hpcvdj_command("models", "show", tmp_path / "copy")
    assert "inferred" not in out


def test_a_model_of_unknown_origin_has_no_file_of_it(tmp_path):
    hpcvdj.write_model(load_model(vdj_files().write(tmp_path / "m")), tmp_path / "copy")
    assert not (tmp_path / "copy" / "origin.json").exists()


@pytest.mark.slow
def test_an_inferred_model_knows_its_rows(tmp_path):
    model = load_model(folder_of(tmp_path / "start", rows_counted=FEW_ROWS))
    drawn = hpcvdj.generate(model, 300, seed=3, backend="cpu").select(["v_call", "j_call", "junction"])
    fit = hpcvdj.infer(drawn, model, rows="all", duplicates=True, hold_out=0.1, iterations=1, backend="cpu")
    assert fit.counted[0] < 300
    assert fit.model.origin == Origin(rows=fit.counted[0])
    assert fit.model.caution.startswith(f"model inferred: inferred from {fit.counted[0]:,} rows")
    lines = ["sequence_id\tv_call\tj_call\tjunction"]
    lines += ["\t".join((str(k), *row.values())) for k, row in enumerate(drawn.to_pylist())]
    (tmp_path / "rows.tsv").write_text("\n".join([*lines, ""]))
    words = ["--rows", "all", "--duplicates", "--iterations", 1, "--backend", "cpu", "-o", tmp_path / "own"]
    hpcvdj_command("infer", tmp_path / "rows.tsv", "-m", tmp_path / "start", *words)
    own = load_model(tmp_path / "own")
    assert own.origin == Origin(rows=fit.counted[0])
    out, _ = hpcvdj_command("models", "show", tmp_path / "own")
    assert f"inferred   from {fit.counted[0]:,} rows of " in out


def test_the_example_is_shown_with_its_purpose():
    out, _ = hpcvdj_command("models", "show", "human_trb_m15")
    assert f"purpose    {EXAMPLE.removeprefix('human_trb_m15 is ')}\n" in out
    assert f"folder     {model_paths()['human_trb_m15']}\n" in out
    assert "inferred   from 2,036 rows of human_TRB_minervina_M15_CD8.tsv.gz" in out


@pytest.mark.skipif(olga_folder() is None, reason="olga is not installed")
def test_every_named_model_has_a_purpose():
    for name, folder in model_folders().items():
        for model in (load_model(name), read_model(folder)):
            assert model.origin.purpose
            assert model.facts()["model_purpose"] == model.origin.purpose
        if name in OLGA_FOLDERS:
            species, locus = name.split("_")
            start = f"published with OLGA {version('olga')}: {species} {locus.upper()}, for "
            assert model.origin.purpose.startswith(start)
            assert ("somatic" in model.origin.purpose) == locus.startswith("ig")
            assert load_model(name).caution is None
            assert load_model(f"{name}:published").origin == model.origin


@pytest.mark.skipif(olga_folder() is None, reason="olga is not installed")
def test_a_copy_of_a_folder_of_olga(tmp_path, monkeypatch):
    """It is corrected as well, but nothing says where it comes from."""
    copy = shutil.copytree(olga_folder() / OLGA_FOLDERS["mouse_trb"], tmp_path / OLGA_FOLDERS["mouse_trb"])
    own, named = load_model(copy), load_model("mouse_trb")
    assert own.origin == Origin()
    assert (own.digest, own.corrected) == (named.digest, named.corrected)
    monkeypatch.setattr("hpcvdj.recombination.igor.distributions", lambda name: iter(()))
    assert load_model("mouse_trb").origin.purpose == "published with OLGA: mouse TRB, for most purposes"


@pytest.mark.parametrize(
    ("facts", "selected", "species"),
    [
        ({}, {}, ""),
        ({"start": {"name": "the germline table mouse_trb"}}, {}, "mouse"),
        ({"start": {"name": "models/human_trb"}}, {}, "human"),
        ({"start": {"name": "mine"}}, {"model": "human_trb"}, "human"),
        ({}, {"species": "mouse", "model": "analysis/model"}, "mouse"),
        # What the model itself says comes first; what is no species is none.
        ({"species": "human"}, {"species": "mouse"}, "human"),
        ({"species": "martian", "start": "human_trb"}, {"model": 3}, ""),
    ],
)
def test_the_species_of_a_folder(facts, selected, species, tmp_path):
    folder = folder_of(tmp_path / "model", **facts)
    if selected:
        (folder / "selection.json").write_text(json.dumps({"format": "hpcvdj-selection", **selected}))
    assert read_model(folder).species == species
    # The name of a folder tells what its files do not.
    named = folder.rename(tmp_path / "human_mine")
    assert read_model(named).species == (species or "human")
