"""hpcvdj.studies.rows: raw files are read back as they were written, and damaged ones are refused by name."""

from dataclasses import dataclass

import pytest

from hpcvdj.errors import InputError
from hpcvdj.runs.run import Run
from hpcvdj.studies.rows import RawFile, launch_facts, write_rows

FACTS = {"study": "toy", "command": "hpcvdj study toy: x", "mpi": "MPICH\nVersion: 5"}


@dataclass(frozen=True)
class ToyRow:
    """A row with a field of each kind."""

    name: str
    count: int
    seconds: float


ROWS = [ToyRow('one, "two"', 3, 0.1 + 0.2), ToyRow("# three", 0, 1e-300)]


def test_rows_and_facts_read_back(tmp_path):
    path = tmp_path / "new" / "raw-x.csv"
    write_rows(path, FACTS, ROWS)
    raw = RawFile.read(path)
    assert raw.rows(ToyRow) == ROWS
    assert raw.facts == {"study": "toy", "command": "hpcvdj study toy: x", "mpi": "MPICH Version: 5"}
    write_rows(path, FACTS, ROWS[:1])
    assert RawFile.read(path).rows(ToyRow) == ROWS[:1]
    assert [other.name for other in path.parent.iterdir()] == ["raw-x.csv"]


def test_columns_are_read_by_name(tmp_path):
    path = tmp_path / "raw.csv"
    path.write_text("# study: toy\nseconds,estimate,name,count\n0.5,9,a,2\n")
    assert RawFile.read(path).rows(ToyRow) == [ToyRow("a", 2, 0.5)]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("name,count\na,1\n", r"raw\.csv: no column 'seconds'"),
        ("", r"raw\.csv: no column 'name'"),
        ("name,count,seconds\na,1,0.5\nb,2,0.5x\n", r"raw\.csv, line 4: .*'0\.5x'; the file is damaged, measure again"),
        ("name,count,seconds\na,1.5,0.5\n", r"raw\.csv, line 3: .*'1\.5'"),
        ("name,count,seconds\na,1,0.5\nb,2", r"raw\.csv, line 4: the line has too few values"),
    ],
)
def test_damaged_files(tmp_path, table, message):
    path = tmp_path / "raw.csv"
    path.write_text("# study: toy\n" + table)
    with pytest.raises(InputError, match=message):
        RawFile.read(path).rows(ToyRow)


def test_files_that_are_not_text(tmp_path):
    (tmp_path / "raw.csv").write_bytes(b"# study: \xff\xfe")
    with pytest.raises(InputError, match=r"raw\.csv: not a readable raw file"):
        RawFile.read(tmp_path / "raw.csv")
    with pytest.raises(InputError, match="no such raw file; measure first"):
        RawFile.read(tmp_path / "other.csv")


def test_nothing_measured(tmp_path):
    with pytest.raises(InputError, match=r"raw\.csv: nothing was measured"):
        write_rows(tmp_path / "raw.csv", FACTS, [])
    assert list(tmp_path.iterdir()) == []


def test_the_facts_of_a_launch():
    facts = launch_facts("toy", ["hpcvdj", "study", "toy", "a b"], Run())
    assert list(facts)[:4] == ["study", "command", "date", "mpi"]
    assert facts["command"] == "hpcvdj study toy 'a b'"
    assert {"processor", "gpu", "platform", "python", "hpcvdj", "numba"} <= facts.keys()
    assert "core(s) usable" in facts["processor"]
    run = Run()
    run.ranks = 4
    assert launch_facts("toy", ["hpcvdj"], run)["command"] == "mpiexec -n 4 hpcvdj"
