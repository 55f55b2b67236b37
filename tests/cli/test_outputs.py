"""Outputs over inputs: commands that write a folder refuse one that is, has or is in what they read."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import hpcvdj
from hpcvdj.cli import common
from hpcvdj.repertoires.writers import write_table
from hpcvdj.storage.files import exclusive_lock
from hpcvdj.storage.folders import exclusive_folder
from tests.commands import error_line, hpcvdj_command
from tests.conftest import SMALL
from tests.selected import few_genes


@pytest.fixture
def donors(tmp_path):
    folder = tmp_path / "cohort" / "donors"
    folder.mkdir(parents=True)
    for name in "ab":
        shutil.copy(SMALL, folder / f"{name}.tsv")
    (folder / "notes.txt").write_text("years of work")
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(*words):
    _, err = hpcvdj_command(*words, code=2)
    return error_line(err)


def test_clean_tables_never_replace_tables(donors, tmp_path):
    words = ["contamination", donors, "-m", "human_trb_m15", "-o", tmp_path / "p.tsv", "--overwrite", "--write-clean"]
    before = contents(donors)
    assert "donors: is an input of this run" in refused(*words, donors)
    assert "cohort: has an input of this run" in refused(*words, donors.parent)
    assert "clean: is in an input of this run" in refused(*words, donors / "clean")
    (tmp_path / "foreign").mkdir()
    assert "foreign: exists, and is not a folder that hpcvdj wrote" in refused(*words, tmp_path / "foreign")
    (tmp_path / "link").symlink_to(tmp_path / "foreign")
    assert "link: exists, and is not a folder that hpcvdj wrote" in refused(*words, tmp_path / "link")
    assert contents(donors) == before


@pytest.mark.parametrize("command", ["infer", "infer-selection"])
def test_a_model_that_is_read_is_not_replaced(command, donors, tmp_path):
    hpcvdj.write_model(few_genes(), tmp_path / "model")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    before = contents(tmp_path)
    for given in ("./model", "model:published", "link"):
        _, err = hpcvdj_command(command, donors, "-m", given, "-o", "model", "--overwrite", cwd=tmp_path, code=2)
        assert "model: is an input of this run" in error_line(err)
    assert contents(tmp_path) == before


def test_two_runs_do_not_write_the_same_clean_tables(donors, tmp_path):
    words = ["contamination", donors, "-m", "human_trb_m15", "-o", tmp_path / "p.tsv", "--write-clean"]
    with exclusive_folder(tmp_path / "clean", overwrite=False):
        assert "clean: another run is writing it" in refused(*words, tmp_path / "clean")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cohort"]


def test_paths_are_paths_with_older_versions_of_typer():
    """These leave them text until the command is called: what is compared before would not be seen."""
    kinds = {"output": "path", "tables": "path", "plot": "path", "genes": "choice"}
    parameters = [SimpleNamespace(name=name, type=SimpleNamespace(name=kind)) for name, kind in kinds.items()]
    values = {"output": "o", "tables": ["a", "b"], "plot": None, "genes": "any"}
    common._make_paths([*parameters, SimpleNamespace(name="without_type")], values)
    assert values == {"output": Path("o"), "tables": [Path("a"), Path("b")], "plot": None, "genes": "any"}


@pytest.mark.parametrize("name", ["o.tsv", "o.dataset"])
def test_a_table_in_blocks_is_written_while_its_name_is_locked(tmp_path, name):
    """Both took the lock, and the second one waited for the first."""
    for k in range(2):
        rows = hpcvdj.generate("human_trb_m15", 200, seed=k, productive=True, backend="cpu")
        write_table(tmp_path / f"{k}.tsv", rows.to_batches(), overwrite=False)
    words = ["sharing", tmp_path / "0.tsv", tmp_path / "1.tsv", "-m", "human_trb_m15", "--draws", 1000]
    hpcvdj_command(*words, "-o", tmp_path / name, "--overlap", tmp_path / "pairs.tsv")
    names = {"0.tsv", "1.tsv", name, f"{name}.json", "pairs.tsv"}
    assert {path.name for path in tmp_path.iterdir()} == names
    with exclusive_lock(tmp_path / name):
        _, err = hpcvdj_command(*words, "-o", tmp_path / name, "--overwrite", code=2)
        assert f"{name}: another run is writing it" in error_line(err)


def test_outputs_within_outputs(tmp_path):
    """A folder that appears when it is complete has nothing else in it; others, as of figures, may have a page."""
    folder = tmp_path / "page"
    page, facts = folder / "r.html", folder / "r.html.json"
    common._require_distinct({"output": page, "figures": folder, "write_clean": None}, ["write_clean"])
    for values in ({"output": page, "write_clean": folder}, {"write_clean": folder, "output": page}):
        with pytest.raises(hpcvdj.InputError, match=r"r\.html: is within the folder .*, which this run writes, too"):
            common._require_distinct(values, ["write_clean"])
    for values in ({"output": page, "overlap": facts}, {"overlap": facts, "output": page}):
        with pytest.raises(hpcvdj.InputError, match=r"r\.html\.json: is the name of the facts of"):
            common._require_distinct(values, [])
