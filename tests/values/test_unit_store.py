"""Finished units of all rows: what was saved comes back, and nothing else; damage is noticed."""

import json
import os

import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import CompleteError, InputError, MachineError, StoppedError
from hpcvdj.kernels.backends import CpuBackend
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.results.reader import Result
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.run import Run
from hpcvdj.values.at_once import UnitStore
from tests.conftest import SMALL
from tests.problems import count_to, method_named, repertoire_of_rows

CDR3 = ["GCC", "GCCTT", "", "AAAA", "GGG", "GCCTTC", "TTTTTTT"]
VALUES = np.arange(1, 22, dtype=np.uint64).reshape(7, 3) * np.uint64(2**40)
UNITS = [(rows, n) for n in range(3) for rows in (range(4), range(4, 7))]
"""The rows and the n-length of each unit of the enumerating method: a V-J pair at a time."""


def values_of(unit):
    return VALUES[unit.rows.start : unit.rows.stop, unit.n_lengths.start : unit.n_lengths.stop]


@pytest.fixture
def problem(paper_germline):
    rows = [(f"TRBV{1 + (k > 3)}", "TRBJ1-1", cdr3) for k, cdr3 in enumerate(CDR3)]
    return Problem(repertoire_of_rows(paper_germline, rows), paper_germline, 2, "paper")


@pytest.fixture
def store(tmp_path, problem):
    """Makes a store in the folder of the same run, as a run does that continues, and the numbers of the units left."""

    def made(method="bitwise", unit_work=1):
        folder = RunFolder(tmp_path / "out.parts", {"max_n": 2})
        folder.open({}, resume=True, overwrite=False)
        made = UnitStore(problem, method_named(method), folder)
        left = made.begin(unit_work)
        return made, [made.units.index(unit) for unit in left]

    return made


def put(store, *numbers):
    for number in numbers:
        store.put(store.units[number], values_of(store.units[number]))


def cut(store, number, tasks_done):
    unit = store.units[number]
    return Partial(unit, tasks_done, values_of(unit))


def saved(tmp_path):
    return sorted(path.name for path in (tmp_path / "out.parts").glob("part-*"))


def test_units_and_the_cut_one_come_back(store):
    first, left = store()
    assert [(unit.rows, *unit.n_lengths) for unit in first.units] == UNITS
    assert left == list(range(6))
    assert first.begun is None
    put(first, 0, 1)
    first.save(cut(first, 3, 2))
    second, left = store()
    assert (second.begun.unit, second.begun.tasks_done) == (first.units[3], 2)
    assert np.array_equal(second.begun.values, values_of(first.units[3]))
    assert np.array_equal(second.values[:, 0], VALUES[:, 0])
    assert not second.values[:, 1:].any()
    assert left == [3, 2, 4, 5], "the one that was begun first"


def test_what_was_not_saved_is_lost(store):
    first, _ = store()
    put(first, 0)
    first.save(None)
    put(first, 1, 2)
    second, left = store()
    assert second.begun is None
    assert left == [1, 2, 3, 4, 5]
    assert not second.values[4:].any()


def test_nothing_saved_is_nothing_restored(store):
    put(store()[0], 0)
    second, left = store()
    assert second.begun is None
    assert left == list(range(6))


def test_a_backend_with_larger_units_goes_on_with_those_of_the_run_that_began(store):
    first, _ = store()
    put(first, 0, 2)
    first.save(None)
    second, left = store(unit_work=1 << 20)
    assert second.units == first.units
    assert left == [1, 3, 4, 5]
    put(second, 1)
    second.save(None)
    assert store(unit_work=3)[1] == [3, 4, 5]


def test_every_unit_is_saved_once(store, tmp_path):
    first, _ = store()
    put(first, 0, 1)
    first.save(None)
    put(first, 2)
    first.save(cut(first, 3, 1))
    first.save(cut(first, 3, 2))
    assert saved(tmp_path) == ["part-000000.state", "part-000002.state", "part-begun.state"]
    second, _ = store()
    assert second.begun.tasks_done == 2
    put(second, 3)
    second.save(None)
    third, left = store()
    # It is finished meanwhile.
    assert third.begun is None
    assert left == [4, 5]
    assert np.array_equal(third.values[:, :2], VALUES[:, :2])
    assert saved(tmp_path) == ["part-000000.state", "part-000002.state", "part-000003.state", "part-begun.state"]


def test_a_file_that_is_removed_is_computed_again(store, tmp_path):
    """As the message about a damaged file says."""
    first, _ = store()
    for number in range(4):
        put(first, number)
        first.save(None)
    (tmp_path / "out.parts" / "part-000001.state").unlink()
    second, left = store()
    assert left == [1, 4, 5]
    put(second, 1, 4)
    second.save(None)
    third, left = store()
    assert left == [5]
    assert np.array_equal(third.values[:, :2], VALUES[:, :2])


def test_a_method_that_goes_row_by_row(store, monkeypatch):
    monkeypatch.setattr("hpcvdj.kernels.method.UNIT_VALUES", 9)
    first, _ = store("direct")
    assert [unit.rows for unit in first.units] == [range(3), range(3, 6), range(6, 7)]
    put(first, 1)
    first.save(None)
    second, left = store("direct")
    assert left == [0, 2]
    assert np.array_equal(second.values[3:6], VALUES[3:6])


@pytest.mark.parametrize("name", ["part-000000.state", "part-begun.state"])
@pytest.mark.parametrize("damage", ["cut short", "one byte", "nonsense", "empty"])
def test_damage_is_named(store, tmp_path, name, damage):
    first, _ = store()
    put(first, 0)
    first.save(cut(first, 1, 0))
    path = tmp_path / "out.parts" / name
    raw = bytearray(path.read_bytes())
    if damage == "cut short":
        raw = raw[: len(raw) // 2]
    elif damage == "one byte":
        raw[-1] ^= 1
    else:
        raw = bytearray(b"nonsense" if damage == "nonsense" else b"")
    path.write_bytes(raw)
    with pytest.raises(InputError, match=rf"{name}: is damaged: .*, and resume=True .*overwrite=True starts again"):
        store()


@pytest.mark.parametrize(
    ("number", "values"),
    [("0", np.zeros((3, 1), np.uint64)), ("0", np.zeros((4, 1), np.int64)), ("6", np.zeros((3, 1), np.uint64))],
)
def test_a_unit_of_something_else_is_refused(store, number, values):
    first, _ = store()
    first._folder.save("part-000000", {"unit_work": 1}, {number: values})
    with pytest.raises(InputError, match=r"its values are not those of a unit of this run|index out of range"):
        store()


def test_units_of_another_run_are_refused(store, tmp_path):
    first, _ = store()
    put(first, 0)
    first._folder.identity["max_n"] = 3
    first.save(None)
    assert json.loads((tmp_path / "out.parts" / "run.json").read_text())["identity"] == {"max_n": 2}
    with pytest.raises(InputError, match="it was changed, or is of another run"):
        store()


def test_a_full_disk_leaves_what_was_saved(store, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    first, _ = store()
    put(first, 0)
    first.save(None)
    put(first, 1)
    with monkeypatch.context() as context:
        context.setattr("hpcvdj.runs.folder.write_state", full)
        with pytest.raises(MachineError, match=r"the disk is full.*What was saved before is complete"):
            first.save(None)
    assert store()[1] == [1, 2, 3, 4, 5]
    assert not list((tmp_path / "out.parts").glob(".*"))
    first.save(None)
    assert store()[1] == [2, 3, 4, 5]


def killed_run(tmp_path, germline, max_n, method="direct"):
    count_to(tmp_path / "out.h5", SMALL, germline, Config(max_n=max_n, method=method), resume=True)


@pytest.mark.parametrize("half_removed", [False, True])
def test_a_run_killed_right_after_its_result_got_its_name(tmp_path, paper_germline, monkeypatch, half_removed):
    with monkeypatch.context() as killed:
        killed.setattr(RunFolder, "remove", lambda self: None)
        killed_run(tmp_path, paper_germline, 1)
    folder = tmp_path / "out.h5.parts"
    assert folder.is_dir()
    with pytest.raises(InputError, match="is of another run"):
        killed_run(tmp_path, paper_germline, 2)
    assert folder.is_dir()
    if half_removed:
        for path in folder.iterdir():
            path.unlink()
    with pytest.raises(CompleteError):
        killed_run(tmp_path, paper_germline, 1)
    assert [path.name for path in tmp_path.iterdir() if not half_removed or path != folder] == ["out.h5"]


def test_a_stopped_run_that_replaces_a_result_continues(tmp_path, paper_germline):
    killed_run(tmp_path, paper_germline, 1)
    run = Run()
    run.request.begin = lambda: setattr(run.request, "name", "SIGTERM")
    arguments = tmp_path / "out.h5", SMALL, paper_germline, Config(max_n=2, method="bitwise")
    with pytest.raises(StoppedError):
        count_to(*arguments, run=run, overwrite=True, save_seconds=0.0)
    with Result(tmp_path / "out.h5") as result:
        assert result.max_n == 1
    count_to(*arguments, resume=True)
    with Result(tmp_path / "out.h5") as result:
        assert result.max_n == 2


def test_a_folder_of_another_run_stays_beside_a_complete_result(tmp_path, paper_germline):
    """Such as that of a run which was to replace the result, and was stopped."""
    killed_run(tmp_path, paper_germline, 1)
    folder = RunFolder(tmp_path / "out.h5.parts", {"max_n": 7})
    folder.open({}, resume=False, overwrite=False)
    with pytest.raises(CompleteError):
        killed_run(tmp_path, paper_germline, 1)
    assert folder.path.is_dir()


@pytest.mark.parametrize(("method", "max_n"), [("direct", 3), ("bitwise", 2)])
def test_a_run_stopped_at_every_unit_writes_the_same_result(tmp_path, paper_germline, monkeypatch, method, max_n):
    """As many runs as it takes: each has a signal as soon as it has done something."""
    monkeypatch.setattr(CpuBackend, "unit_work", 500 * 4)
    monkeypatch.setattr("hpcvdj.kernels.method.UNIT_VALUES", 30)
    monkeypatch.setattr("hpcvdj.runs.driver.FIRST_WORK", 2_000.0)
    monkeypatch.setattr("hpcvdj.runs.driver.STEP_SECONDS", 1e-6)
    table = tmp_path / "t.tsv"
    table.write_text("".join(SMALL.read_text().splitlines(keepends=True)[:80]))
    expected = count_to(tmp_path / "expected.h5", table, paper_germline, Config(max_n=max_n, method=method))
    runs, stopped = 0, ""
    while not (tmp_path / "out.h5").exists():
        run = Run()
        if "while" not in stopped:
            run.request.begin = lambda run=run: setattr(run.request, "name", "SIGTERM")
        try:
            options = {"run": run, "resume": True, "save_seconds": 0.0}
            summary = count_to(
                tmp_path / "out.h5", table, paper_germline, Config(max_n=max_n, method=method), **options
            )
        except StoppedError as error:
            stopped = str(error)
        runs += 1
    assert runs >= 3
    assert summary.sums == expected.sums
    with Result(tmp_path / "expected.h5") as one, Result(tmp_path / "out.h5") as other:
        assert np.array_equal(one.counters[:], other.counters[:])
        assert one.provenance["sums"] == other.provenance["sums"]
    assert sorted(os.listdir(tmp_path)) == ["expected.h5", "out.h5", "t.tsv"]
