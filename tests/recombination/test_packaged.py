"""What comes with hpcvdj, if it did not come."""

import pytest

import hpcvdj
from hpcvdj.errors import MachineError
from hpcvdj.recombination import packaged
from tests.commands import error_line, hpcvdj_command


@pytest.fixture
def without_inputs(monkeypatch, tmp_path):
    """A copy in which the link to the folder of inputs is a file, as file systems without links have it."""
    (tmp_path / "inputs").write_text("../inputs")
    monkeypatch.setattr(packaged, "_INPUTS", tmp_path / "inputs")


@pytest.mark.usefixtures("without_inputs")
@pytest.mark.parametrize("paths", [packaged.germline_paths, packaged.anchors_paths, packaged.model_paths])
def test_missing_files_are_an_error(paths):
    with pytest.raises(MachineError, match="comes with hpcvdj; install hpcvdj again"):
        paths()


@pytest.mark.usefixtures("without_inputs")
def test_no_model_is_read_without_its_corrections(tmp_path):
    _, err = hpcvdj_command("generate", "-m", "human_trb", "-n", 5, "-o", tmp_path / "o.tsv", code=1)
    assert "comes with hpcvdj" in error_line(err)
    assert not (tmp_path / "o.tsv").exists()
    with pytest.raises(MachineError, match="comes with hpcvdj"):
        hpcvdj.generate("human_trb", 5)
