"""The notebooks in docs/notebooks run, and their stored outputs are those of a run (except figures)."""

import os
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

LONGEST = "beyond_chance", "cohort"
"""They take a minute and half a minute, and call nothing that other tests do not call."""

REMEDY = "if the new output is right: jupyter execute --inplace docs/notebooks/"


def output_texts(notebook):
    """The text that each code cell prints and shows."""
    return [
        "".join(output.get("text", output.get("data", {}).get("text/plain", "")) for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_there_are_four():
    assert len(NOTEBOOKS) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.exhaustive] * (path.stem in LONGEST), id=path.stem) for path in NOTEBOOKS],
)
def test_the_stored_outputs_are_those_of_a_run(path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    if path.stem == "single_cells":
        pytest.importorskip("olga")
        pytest.importorskip("anndata")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    stored = output_texts(notebook)
    nbclient.NotebookClient(
        notebook, timeout=240, coalesce_streams=True, resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
    for number, (before, after) in enumerate(zip(stored, output_texts(notebook), strict=True)):
        if not before.startswith(("<Figure", "<PIL")):
            assert after == before, f"code cell {number}; {REMEDY}{path.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_names_no_machine(path):
    text = path.read_text()
    assert len(text) < 300_000
    assert "/home/" not in text
    assert "/tmp/" not in text
    assert '"image/png"' in text
