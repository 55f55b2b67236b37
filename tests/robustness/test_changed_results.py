"""Defects that `over_inputs.py` and `changed_results.py` found."""

import json
import shutil

import h5py
import numpy as np
import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.results.result_output import ResultOutput
from hpcvdj.runs.folder import RunFolder
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL

MODEL = ROOT / "inputs" / "models" / "human_trb_m15"
COUNT = ("count", "t.tsv", "-g", GERMLINE, "--max-n", "1", "-o")


@pytest.fixture
def model(tmp_path):
    shutil.copytree(MODEL, tmp_path / "model")
    return tmp_path / "model"


def refused(tmp_path, *words, code=2):
    """The one line; nothing in the folder changes."""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    line = error_line(hpcvdj_command("-q", *words, code=code, cwd=tmp_path)[1])
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    return line


@pytest.mark.parametrize("name", ["model_marginals.txt", "inference.json", "V_gene_CDR3_anchors.csv"])
@pytest.mark.parametrize("command", ["generate", "models show", "models compare"])
def test_files_of_a_model_are_inputs(tmp_path, model, command, name):
    words = {
        "generate": ("generate", "-n", 3, "-m", "model"), "models show": ("models", "show", "model:published"),
        "models compare": ("models", "compare", "human_trb_m15", "model"),
    }[command]  # fmt: skip
    link = "alias.svg" if command == "models show" else "alias.tsv"
    (tmp_path / link).symlink_to(model / name)
    assert f"{link}: is an input of this run" in refused(tmp_path, *words, "-o", link, "--overwrite")
    (tmp_path / link).rename(tmp_path / f".{link}.part")
    assert f".{link}.part: is an input of this run" in refused(tmp_path, *words, "-o", link, "--overwrite")


@pytest.mark.parametrize("name", ["o.tsv.json", ".o.tsv.json.part"])
@pytest.mark.parametrize("given", ["g.tsv", "t.tsv"])
def test_facts_are_written_over_no_input(tmp_path, name, given):
    shutil.copy(GERMLINE, tmp_path / "g.tsv")
    shutil.copy(SMALL, tmp_path / "t.tsv")
    (tmp_path / name).hardlink_to(tmp_path / given)
    words = ("count", "t.tsv", "-g", "g.tsv", "--max-n", 1, "-o", "o.tsv", "--overwrite")
    assert f"{name}: is an input of this run" in refused(tmp_path, *words)


def test_tables_in_a_folder_of_generate_like_are_inputs(tmp_path):
    (tmp_path / "cohort").mkdir()
    for seed in (0, 1):
        words = ("-n", 60, "--productive", "--seed", seed, "-o", f"cohort/{seed}.tsv")
        hpcvdj_command("-q", "generate", "-m", "human_trb_m15", *words, cwd=tmp_path)
    words = ("generate", "-m", "human_trb_m15", "--like", "cohort", "-o", "cohort/1.tsv", "--overwrite")
    assert "cohort/1.tsv: is an input of this run" in refused(tmp_path, *words)


def test_facts_are_inputs_of_a_report(tmp_path):
    pytest.importorskip("vl_convert")
    (tmp_path / "page").mkdir()
    shutil.copy(SMALL, tmp_path / "t.tsv")
    hpcvdj_command("-q", *COUNT, "page/o.tsv", cwd=tmp_path)
    for given, target in (("page", "page/o.tsv.json"), ("page", "page/o.tsv"), ("page/o.tsv", "page/o.tsv.json")):
        line = refused(tmp_path, "report", given, "-o", target, "--overwrite")
        assert f"{target}: is an input of this run" in line
    (tmp_path / "page" / "o.tsv").unlink()
    line = refused(tmp_path, "report", "page/o.tsv", "-o", "o.html")
    assert "page/o.tsv: no such table; give that which o.tsv.json describes" in line


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_resume_of_a_complete_result_whose_part_is_damaged(tmp_path, damage):
    shutil.copy(SMALL, tmp_path / "t.tsv")
    hpcvdj_command("-q", *COUNT, "o.h5", "--batch-rows", 300, cwd=tmp_path)
    part = tmp_path / "o.h5.parts" / "part-000001.h5"
    data = bytearray(part.read_bytes())
    with h5py.File(part) as file:
        at = file["counters"].id.get_chunk_info(0).byte_offset
    _, said = hpcvdj_command(*COUNT, "o.h5", "--batch-rows", 300, "--resume", cwd=tmp_path)
    assert "is complete already" in said
    if damage == "missing":
        part.unlink()
    else:
        data[at + 5] ^= 1
        part.write_bytes(data[: -len(data) // 3] if damage == "cut" else data)
    line = refused(tmp_path, *COUNT, "o.h5", "--batch-rows", 300, "--resume")
    assert "part-000001.h5" in line
    assert "--overwrite starts again" in line
    hpcvdj_command(*COUNT, "o.h5", "--batch-rows", 300, "--overwrite", cwd=tmp_path)
    hpcvdj_command(*COUNT, "o.h5", "--batch-rows", 300, "--resume", cwd=tmp_path)


def test_a_part_of_another_run(tmp_path):
    shutil.copy(SMALL, tmp_path / "t.tsv")
    words = (*COUNT, "o.h5", "--batch-rows", 300)
    hpcvdj_command("-q", *words, "--d-forms", "distinct", cwd=tmp_path)
    other = (tmp_path / "o.h5.parts" / "part-000001.h5").read_bytes()
    hpcvdj_command("-q", *words, "--overwrite", cwd=tmp_path)
    (part,) = tmp_path.glob("o.h5*parts/part-000001.h5")
    part.write_bytes(other)
    for read in ((*words, "--resume"), ("export", "o.h5", "-o", "p.tsv"), ("report", "o.h5", "-o", "p.html")):
        line = refused(tmp_path, *read)
        assert f"o.h5: the files in {part.parent.name} are not the parts of this result" in line


def test_parts_that_lack_rows_are_not_joined(tmp_path, monkeypatch):
    """As after a kill, and a change of the slices' size in the record of the run."""

    def full(*arguments, **options):
        raise MachineError("the disk is full")

    shutil.copy(SMALL, tmp_path / "t.tsv")
    with monkeypatch.context() as patch:
        patch.setattr(ResultOutput, "join", full)
        hpcvdj_command("-q", *COUNT, "o.h5", "--batch-rows", 200, cwd=tmp_path, code=MachineError.exit_code)
    for part in (1, 2):
        (tmp_path / "o.h5.parts" / f"part-{part:06}.state").unlink()
    record = tmp_path / "o.h5.parts" / "run.json"
    said = json.loads(record.read_text())
    record.write_text(json.dumps({**said, "facts": {**said["facts"], "slice_rows": 1200}}))
    line = refused(tmp_path, *COUNT, "o.h5", "--batch-rows", 200, "--resume")
    assert "o.h5.parts: its parts lack 300 rows; --overwrite starts again" in line
    record.write_text(json.dumps(said))
    hpcvdj_command("-q", *COUNT, "o.h5", "--batch-rows", 200, "--resume", cwd=tmp_path)


def test_a_changed_fact_is_no_complete_table(tmp_path):
    shutil.copy(SMALL, tmp_path / "t.tsv")
    hpcvdj_command("-q", *COUNT, "o.tsv", cwd=tmp_path)
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    (tmp_path / "o.tsv.json").write_text(json.dumps({**facts, "rows_read": facts["rows_read"] + 1}))
    assert "o.tsv.json: is damaged: it was changed" in refused(tmp_path, *COUNT, "o.tsv", "--resume")


def test_a_piece_of_another_run_or_of_another_name(tmp_path):
    folder, other = RunFolder(tmp_path, {"distinct": True}), RunFolder(tmp_path, {"distinct": False})
    folder.save("tile-0", {"pairs": 3}, {"row": np.arange(4)})
    facts, arrays = folder.read("tile-0")
    assert (facts, arrays["row"].tolist()) == ({"pairs": 3}, [0, 1, 2, 3])
    with pytest.raises(InputError, match="it was changed, or is of another run"):
        other.read("tile-0")
    shutil.copy(folder.file("tile-0"), folder.file("tile-1"))
    assert folder.finished == ["tile-0", "tile-1"]
    with pytest.raises(InputError, match=r"tile-1\.state: is damaged: it was changed, .*; remove it, "):
        folder.read("tile-1")
