"""hpcvdj.studies.pages: pages of the raw rows under results/ are those in the repository; a study is one class."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from hpcvdj.errors import InputError
from hpcvdj.studies.measuring import Measurement
from hpcvdj.studies.pages import PAGE, Block, IdentityCheck, Plot, Study, all_studies, render
from hpcvdj.studies.rows import RawFile, write_rows
from hpcvdj.studies.tables import distinct, lines, middle, number, pivot, same, spread, table
from tests.conftest import ROOT

pytest.importorskip("matplotlib")

FOLDERS = sorted(path.parent for path in (ROOT / "results").glob("*/raw-*.csv"))
FOLDERS = list(dict.fromkeys(FOLDERS))
STUDIES = {"scaling", "methods", "blocks", "pairs", "memory", "throughput", "motifs", "motif_tables"}


def copy_of(folder, target):
    """A folder with the raw files alone."""
    target.mkdir(exist_ok=True)
    for path in folder.glob("raw*.csv"):
        shutil.copy(path, target)
    return target


@pytest.fixture
def undrawn(monkeypatch):
    """Names of the pictures that would have been drawn."""
    drawn = []
    monkeypatch.setattr(Plot, "draw", lambda figure, folder: drawn.append(f"{figure.name}.png"))
    return drawn


def test_every_study_has_results():
    named = {RawFile.read(path).facts["study"] for folder in FOLDERS for path in folder.glob("raw-*.csv")}
    assert named == STUDIES <= all_studies().keys()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_pages_of_the_repository(folder, tmp_path, undrawn):
    assert render(copy_of(folder, tmp_path))
    assert (tmp_path / PAGE).read_text() == (folder / PAGE).read_text()
    assert sorted(undrawn) == sorted(path.name for path in folder.glob("*.png"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scaling_h200", "motif_tables_h200"])
def test_pictures(name, tmp_path):
    folder = copy_of(ROOT / "results" / name, tmp_path)
    if name.startswith("motif"):
        (folder / "raw-motif_tables-1-construction.csv").unlink()
    assert render(folder)
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@dataclass(frozen=True)
class ToyRow:
    """A tool and how long it took."""

    tool: str
    size: int
    seconds: float


class Toy(Study):
    """A study that exists because this class does."""

    name = "toy"
    title = "Tools"
    row = ToyRow
    notes = """
    A first
    paragraph.

    A second one.
    """

    def page(self, rows: list[ToyRow]) -> Iterator[Block]:
        """One of each kind of block."""
        yield IdentityCheck(same(rows, "tool", "size"), "tools", "sizes")
        panel = lines(rows, "tool", "size", lambda repeats: middle(repeats, "seconds")), {"xlabel": "size"}
        yield Plot("tools", "seconds by size", [panel])
        yield pivot(rows, "tool", "size", lambda repeats: f"{middle(repeats, 'seconds'):.1f}")


def test_a_new_study_is_one_class(tmp_path):
    rows = [ToyRow("saw", size, seconds) for size, seconds in ((10, 1.0), (2, 2.0), (10, 4.0))]
    write_rows(tmp_path / "raw-a.csv", {"study": "toy", "command": "x", "date": "now", "gpu": "none"}, rows)
    write_rows(tmp_path / "raw-b.csv", {"study": "toy", "gpu": "H200"}, [replace(rows[0], size=7)])
    assert render(tmp_path)
    assert (tmp_path / "tools.png").stat().st_size > 1000
    assert (
        (tmp_path / PAGE).read_text()
        == """# Tools

Made from the raw rows by `hpcvdj study render`.

**tools identical for all sizes**

![seconds by size](tools.png)

|  | 2 | 7 | 10 |
| --- | --- | --- | --- |
| saw | 2.0 | 1.0 | 2.5 |

A first paragraph.

A second one.

## How it was measured

- `raw-a.csv`: `x`, now
- `raw-b.csv`: (not recorded)
- gpu: none; H200
"""
    )


def test_a_check_that_fails(tmp_path, undrawn):
    rows = [ToyRow(tool, 1, 1.0) for tool in ("saw", "axe")]
    write_rows(tmp_path / "raw-a.csv", {"study": "toy"}, rows)
    assert not render(tmp_path)
    assert "**TOOLS DIFFER between sizes**" in (tmp_path / PAGE).read_text()


def test_totals_that_differ_are_called_out(tmp_path, undrawn):
    folder = copy_of(ROOT / "results" / "strong_scaling_h200" / "bitwise", tmp_path)
    path = folder / "raw-bitwise-2.csv"
    rows = RawFile.read(path).rows(Measurement)
    write_rows(path, {"study": "scaling"}, [replace(rows[0], pathways=rows[0].pathways + 1), *rows[1:]])
    assert not render(folder)
    assert "TOTALS DIFFER between rank counts" in (folder / PAGE).read_text()


def test_folders_that_are_not_of_one_study(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        render(tmp_path / "none")
    with pytest.raises(InputError, match="not the folder of a study"):
        render(tmp_path)
    write_rows(tmp_path / "raw-a.csv", {"study": "toy"}, [ToyRow("saw", 1, 1.0)])
    write_rows(tmp_path / "raw-b.csv", {"study": "pairs"}, [ToyRow("saw", 1, 1.0)])
    with pytest.raises(InputError, match=r"of one study \(.*scaling.*\): its raw files are of toy, pairs"):
        render(tmp_path)
    (tmp_path / "raw-b.csv").unlink()
    write_rows(tmp_path / "raw-a.csv", {"study": "tables"}, [ToyRow("saw", 1, 1.0)])
    with pytest.raises(InputError, match=r"of one study .* of tables"):
        render(tmp_path)
    (tmp_path / "raw-a.csv").write_text("# study: toy\ntool,size,seconds\n")
    with pytest.raises(InputError, match="have no rows"):
        render(tmp_path)
    assert not (tmp_path / PAGE).exists()


def test_tables():
    rows = [ToyRow("saw", 1, 1.0), ToyRow("saw", 1, 3.0), ToyRow("axe", 2000, 2.0)]
    assert table(("a", "b"), [(1, "x")]) == "| a | b |\n| --- | --- |\n| 1 | x |"
    assert pivot(rows, "tool", "size", lambda group: str(len(group)), "tool").splitlines()[2:] == [
        "| saw | 2 | - |",
        "| axe | - | 1 |",
    ]
    assert lines(rows, "tool", "size", len) == {"saw": {1: 2}, "axe": {2000: 1}}
    assert distinct(rows, "size", ",") == "1, 2,000"
    assert number(float("nan"), ".2f") == "-"
    assert number(12.345, ".1f", " %") == "12.3 %"
    assert spread([2.0, 1.0, 9.0], "{:.0f}".format) == "2 (1…9)"
    assert spread([2.0], "{:.0f}".format) == "2"
