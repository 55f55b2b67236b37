"""The outputs of an analysis: each is of one individual, and none of a stopped run, or of other metadata, stays."""

import json
import shutil

import pyarrow as pa
import pytest
from pyarrow import csv

import hpcvdj
from hpcvdj.analysis import steps
from hpcvdj.errors import InputError
from tests.analysis.test_analyze import COLUMNS, MODEL, StoppingError
from tests.commands import error_line, hpcvdj_command

# In a fresh clone, the first test compiles the kernels of all steps.
pytestmark = pytest.mark.timeout(900)

PEOPLE = 3


def only(*asked):
    return [option for step in asked for option in ("--only", step)]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def shown_in(output):
    """The names of the files that the page shows."""
    record = json.loads((output / "analysis.json").read_text())
    return [name for own in record["steps"] for name in own["shown"]]


@pytest.fixture(scope="module")
def drawn():
    rows = hpcvdj.generate(MODEL, PEOPLE * 400, seed=5, productive=True, backend="cpu").select(COLUMNS)
    return [rows.slice(400 * k, 400) for k in range(PEOPLE)]


@pytest.fixture
def tables(drawn, tmp_path):
    """The tables A, B and C."""
    paths = [tmp_path / f"{name}.tsv" for name in "ABC"]
    for path, rows in zip(paths, drawn, strict=True):
        csv.write_csv(rows, path, csv.WriteOptions(delimiter="\t", quoting_style="none"))
    return paths


def words(tables, *further):
    return "analyze", *tables, "-m", MODEL, "--backend", "cpu", "-o", tables[0].parent / "out", *further


@pytest.mark.parametrize("step", ["pgen", "enrich"])
def test_tables_whose_outputs_would_be_one_file_are_refused_before_the_first_step(step, drawn, tmp_path):
    """With --overwrite the second table replaced the first, whose donor was lost."""
    for k in (1, 2):
        (tmp_path / f"d{k}").mkdir()
        rows = drawn[k].append_column("repertoire_id", pa.array([f"P{k}"] * len(drawn[k])))
        csv.write_csv(rows, tmp_path / f"d{k}" / "S.tsv", csv.WriteOptions(delimiter="\t", quoting_style="none"))
    named = [tmp_path / f"d{k}" / "S.tsv" for k in (1, 2)]
    line = ["analyze", *named, "-m", MODEL, "--backend", "cpu", "-o", tmp_path / "out", *only("sharing", step)]
    error = error_line(hpcvdj_command(*line, "--overwrite", code=2)[1])
    assert f"{named[1]}: its result would be {tmp_path / 'out'}" in error
    assert f"like that of {named[0]}; rename one of the tables" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_parts_of_a_folder_are_one_individual(drawn, tmp_path, write_parts):
    """Each part was an individual, and the parts of two folders had the same output."""
    folders = [tmp_path / f"{name}.dataset" for name in "AB"]
    for folder, rows in zip(folders, drawn, strict=False):
        write_parts(folder, rows, 200)
    hpcvdj_command(*words(folders, *only("pgen", "enrich")))
    for folder, ending, command in (("pgen", ".tsv.gz", "pgen"), ("enriched", ".tsv", "enrich")):
        written = tmp_path / "out" / folder
        assert names_in(written) == [f"{name}{ending}{facts}" for name in "AB" for facts in ("", ".json")]
        alone = tmp_path / f"B{ending}"
        hpcvdj_command(command, folders[1], "-m", MODEL, "--backend", "cpu", "-o", alone)
        assert alone.read_bytes() == (written / alone.name).read_bytes()


def test_a_folder_with_parts_of_several_individuals_is_not_tested(drawn, tmp_path, write_parts):
    folder = tmp_path / "M.dataset"
    rows = pa.concat_tables(drawn[:2])
    write_parts(folder, rows.append_column("repertoire_id", pa.array(["P1"] * 400 + ["P2"] * 400)), 400)
    said, _ = hpcvdj_command(*words([folder], *only("enrich")))
    assert "M.dataset has several individuals; give each its own table" in said


@pytest.fixture
def stopped(tables, monkeypatch):
    """An analysis of A and B that was stopped when it had written pgen/A.tsv.gz; its folder."""

    def stop_at_b(inputs, *arguments):
        if inputs.path.name == "B.tsv":
            raise StoppingError("SIGTERM")
        return compute(inputs, *arguments)

    compute = steps.compute_tables
    with monkeypatch.context() as patched:
        patched.setattr(steps, "compute_tables", stop_at_b)
        hpcvdj_command(*words(tables[:2], *only("pgen", "report")), code=75)
    output = tables[0].parent / "out"
    assert names_in(output / "pgen") == ["A.tsv.gz", "A.tsv.gz.json"]
    # As a run leaves it that is stopped within a table.
    unfinished = output / "pgen" / "B.tsv.gz.parts"
    unfinished.mkdir()
    record = {"format": "hpcvdj-run", "identity": {}, "facts": {}}
    (unfinished / "run.json").write_text(json.dumps(record))
    return output


@pytest.mark.slow
@pytest.mark.parametrize("how", ["--resume", "--overwrite"])
def test_the_page_shows_no_table_of_a_stopped_run(how, tables, stopped):
    """A person who was left out was on the page."""
    shutil.rmtree(stopped / "pgen" / "B.tsv.gz.parts")
    hpcvdj_command(*words(tables[1:], *only("pgen", "report"), how))
    assert shown_in(stopped) == ["pgen/B.tsv.gz", "pgen/C.tsv.gz"]
    # A run that resumes removes nothing, but what hpcvdj wrote stays on record.
    assert (stopped / "pgen" / "A.tsv.gz").exists() == (how == "--resume")
    hpcvdj_command(*words(tables[1:], *only("pgen"), "--overwrite"))
    assert names_in(stopped / "pgen") == [f"{name}.tsv.gz{facts}" for name in "BC" for facts in ("", ".json")]


@pytest.mark.slow
def test_overwriting_removes_what_a_stopped_run_left(tables, stopped):
    (stopped / "pgen" / "notes.txt").write_text("mine")
    hpcvdj_command(*words(tables[2:], *only("pgen"), "--overwrite"))
    assert names_in(stopped / "pgen") == ["C.tsv.gz", "C.tsv.gz.json", "notes.txt"]


def test_overwriting_keeps_what_hpcvdj_did_not_write(tables, stopped):
    (stopped / "pgen" / "A.tsv.gz").write_text("mine")
    line = words(tables[2:], *only("pgen"), "--overwrite")
    assert "pgen/A.tsv.gz changed since hpcvdj wrote it" in error_line(hpcvdj_command(*line, code=2)[1])
    (stopped / "pgen" / "A.tsv.gz.json").unlink()
    hpcvdj_command(*line)
    assert names_in(stopped / "pgen") == ["A.tsv.gz", "C.tsv.gz", "C.tsv.gz.json"]
    assert (stopped / "pgen" / "A.tsv.gz").read_text() == "mine"


def test_a_refused_run_that_would_overwrite_loses_nothing(tables):
    output = tables[0].parent / "out"
    hpcvdj_command(*words(tables, *only("pgen")))
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    tables[2].write_text(tables[2].read_text().splitlines()[0] + "\n")
    assert "C.tsv: no data rows" in error_line(hpcvdj_command(*words(tables, *only("pgen"), "--overwrite"), code=2)[1])
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_the_page_shows_no_table_that_was_refused(tables, monkeypatch):
    """It showed what was there under the name, of whichever run."""
    output = tables[0].parent / "out"
    hpcvdj_command(*words(tables, *only("pgen")))
    (output / "pgen" / "B.tsv.gz").unlink()
    compute = steps.compute_tables

    def refuse_a(inputs, *arguments):
        if inputs.path.name == "A.tsv":
            raise InputError("it is of another run").everywhere()
        return compute(inputs, *arguments)

    monkeypatch.setattr(steps, "compute_tables", refuse_a)
    hpcvdj_command(*words(tables, *only("pgen"), "--resume"), code=2)
    assert shown_in(output) == ["pgen/B.tsv.gz", "pgen/C.tsv.gz"]


@pytest.mark.slow
def test_the_page_is_drawn_again_for_corrected_groups(tables):
    metadata, page = tables[0].parent / "groups.txt", tables[0].parent / "out" / "report.html"
    line = words(tables, "--metadata", metadata, "--group", "group", *only("pgen", "report"))
    drawn = []
    for groups, how in (("xyy", "--overwrite"), ("xyy", "--resume"), ("yxx", "--resume")):
        rows = [f"{name}\t{group}\n" for name, group in zip("ABC", groups, strict=True)]
        metadata.write_text("".join(["sample\tgroup\n", *rows]))
        hpcvdj_command(*line, how)
        drawn.append((page.stat().st_mtime_ns, page.read_text()))
    assert drawn[0] == drawn[1]
    assert drawn[1][1] != drawn[2][1]


@pytest.mark.slow
def test_what_was_made_with_other_metadata_is_not_shown(tables):
    """Steps that are asked for are made again; the page had the numbers of both metadata."""
    metadata, output = tables[0].parent / "groups.txt", tables[0].parent / "out"
    line = words(tables, "--metadata", metadata, "--group", "group")
    for groups, how in (
        ("xyy", only("contamination", "sharing", "report")),
        ("yxx", [*only("sharing", "report"), "--resume"]),
    ):
        rows = [f"{name}\t{group}\n" for name, group in zip("ABC", groups, strict=True)]
        metadata.write_text("".join(["sample\tgroup\n", *rows]))
        _, err = hpcvdj_command(*line, *how)
    assert "contamination is of other metadata, so the page leaves it out; ask for it, too" in err
    assert shown_in(output) == ["shared.tsv"]
    assert (output / "contamination.tsv").exists()
