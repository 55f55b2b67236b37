"""Finished units of all rows: what was saved comes back, and nothing else; damage is noticed."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import CompleteError, InputError, MachineError, StoppedError
from hpcvdj.kernels.backends import CpuBackend
from hpcvdj.kernels.kernel import Unit
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.results.reader import Result
from hpcvdj.results.slice_files import SAVED
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.run import Run
from hpcvdj.values.unit_store import BEGUN, UnitStore
from tests.conftest import SMALL
from tests.problems import count_to, method_named, repertoire_of_rows

CDR3 = ["GCC", "GCCTT", "", "AAAA", "GGG", "GCCTTC", "TTTTTTT"]
A = Unit(range(1), range(4), range(1), 1)
B = Unit(range(1, 2), range(4, 7), range(1), 1)
C = Unit(range(2), range(7), range(1, 2), 4)
D = Unit(range(2), range(7), range(2, 3), 4)
VALUES = np.arange(1, 22, dtype=np.uint64).reshape(7, 3) * np.uint64(2**40)


def values_of(unit):
    return VALUES[unit.rows.start : unit.rows.stop, unit.n_lengths.start : unit.n_lengths.stop]


@pytest.fixture
def store(tmp_path, paper_germline):
    """Makes a store in the folder of the same run, as a run does that continues, with what was saved."""
    rows = [(f"TRBV{1 + (k > 3)}", "TRBJ1-1", cdr3) for k, cdr3 in enumerate(CDR3)]
    problem = Problem(repertoire_of_rows(paper_germline, rows), paper_germline, 2, "paper")

    def made():
        folder = RunFolder(tmp_path / "out.parts", {"max_n": 2})
        folder.open(SAVED, {}, resume=True, overwrite=False)
        made = UnitStore(problem, method_named("bitwise"), folder)
        return made, made.restore()

    return made


def put(store, *units):
    for unit in units:
        store.put(unit, values_of(unit))


def saved(tmp_path):
    return sorted(path.name for path in (tmp_path / "out.parts").glob(SAVED))


def test_units_and_the_cut_one_come_back(store):
    first, begun = store()
    assert begun is None
    put(first, A, B)
    first.save(Partial(C, 3, values_of(C)))
    second, begun = store()
    assert (begun.unit, begun.tasks_done) == (C, 3)
    assert np.array_equal(begun.values, values_of(C))
    assert np.array_equal(second.values[:, 0], VALUES[:, 0])
    assert not second.values[:, 1:].any()
    assert second.missing(begun) == [(range(2, 3), range(7))]


def test_what_was_not_saved_is_lost(store):
    first, _ = store()
    put(first, A)
    first.save(None)
    put(first, B, C)
    second, begun = store()
    assert begun is None
    assert second.missing() == [(range(1), range(4, 7)), (range(1, 2), range(7)), (range(2, 3), range(7))]
    assert not second.values[4:].any()


def test_nothing_saved_is_nothing_restored(store):
    put(store()[0], A)
    second, begun = store()
    assert begun is None
    assert second.missing() == [(range(k, k + 1), range(7)) for k in range(3)]


def test_the_rows_of_a_cut_unit_are_not_missing(store):
    first, _ = store()
    put(first, A)
    first.save(Partial(replace(B, rows=range(4, 6)), 1, values_of(B)[:2]))
    second, begun = store()
    assert second.missing(begun) == [(range(1), range(6, 7)), (range(1, 2), range(7)), (range(2, 3), range(7))]


def test_every_unit_is_saved_once(store, tmp_path):
    first, _ = store()
    put(first, A)
    first.save(None)
    put(first, B)
    first.save(Partial(C, 1, values_of(C)))
    first.save(Partial(C, 2, values_of(C) + np.uint64(1)))
    assert saved(tmp_path) == ["part-000000.npz", "part-000001.npz", BEGUN]
    second, begun = store()
    assert begun.tasks_done == 2
    assert np.array_equal(begun.values, values_of(C) + np.uint64(1))
    put(second, C)
    second.save(None)
    third, begun = store()
    # It is finished meanwhile.
    assert begun is None
    assert third.missing() == [(range(2, 3), range(7))]
    assert np.array_equal(third.values[:, :2], VALUES[:, :2])
    assert saved(tmp_path) == ["part-000000.npz", "part-000001.npz", "part-000002.npz", BEGUN]


def test_a_method_that_goes_row_by_row(tmp_path, store, paper_germline):
    problem = Problem(repertoire_of_rows(paper_germline, [("TRBV1", "TRBJ1-1", cdr3) for cdr3 in CDR3]),
                      paper_germline, 2, "paper")  # fmt: skip
    whole = Unit(range(1), range(2, 5), range(3), 3)
    folder = RunFolder(tmp_path / "rows.parts", {})
    folder.open(SAVED, {}, resume=True, overwrite=False)
    first = UnitStore(problem, method_named("direct"), folder)
    assert first.missing() == [(range(3), range(7))]
    put(first, whole)
    first.save(None)
    second = UnitStore(problem, method_named("direct"), folder)
    assert second.restore() is None
    assert second.missing() == [(range(3), range(2)), (range(3), range(5, 7))]
    assert np.array_equal(second.values[2:5], VALUES[2:5])


@pytest.mark.parametrize("name", ["part-000000.npz", BEGUN])
@pytest.mark.parametrize("damage", ["cut short", "one byte", "no zip", "empty", "pickle", "other names"])
def test_damage_is_named(store, tmp_path, name, damage):
    first, _ = store()
    put(first, A)
    first.save(Partial(B, 0, values_of(B)))
    path = tmp_path / "out.parts" / name
    raw = bytearray(path.read_bytes())
    if damage == "cut short":
        raw = raw[: len(raw) // 2]
    elif damage == "one byte":
        raw[raw.index(b"\x93NUMPY") + 140] ^= 1
    elif damage == "no zip":
        raw = bytearray(b"nonsense")
    elif damage == "empty":
        raw = bytearray()
    path.write_bytes(raw)
    if damage == "pickle":
        np.savez(path, meta=np.array([{}], dtype=object))
    elif damage == "other names":
        np.savez(path, x=np.zeros(3))
    with pytest.raises(InputError, match=rf"{name}: is damaged .*overwrite=True starts again"):
        store()


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        (replace(A, rows=range(4, 9)), np.zeros((5, 1), np.uint64)),
        (replace(A, n_lengths=range(3, 4)), np.zeros((4, 1), np.uint64)),
        (A, np.zeros((3, 1), np.uint64)),
        (A, np.zeros((4, 1), np.int64)),
    ],
)
def test_a_unit_of_something_else_is_refused(store, tmp_path, unit, values):
    first, _ = store()
    first.save(Partial(unit, 1, values))
    with pytest.raises(InputError, match="its values are not those of a unit of this run"):
        store()


def test_units_of_another_run_are_refused(store, tmp_path):
    first, _ = store()
    put(first, A)
    first.save(None)
    record = tmp_path / "out.parts" / "run.json"
    first._folder.identity["max_n"] = 3
    (tmp_path / "out.parts" / "part-000000.npz").unlink()
    first._saved = 0
    first.save(None)
    assert json.loads(record.read_text())["identity"] == {"max_n": 2}
    with pytest.raises(InputError, match="its values are not those that this run saved"):
        store()


def test_a_full_disk_leaves_what_was_saved(store, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    first, _ = store()
    put(first, A)
    first.save(None)
    put(first, B)
    with monkeypatch.context() as context:
        context.setattr(np, "savez", full)
        with pytest.raises(MachineError, match=r"the disk is full.*What was saved before is complete"):
            first.save(None)
    assert store()[0].missing() == [
        (range(1), range(4, 7)), (range(1, 2), range(7)), (range(2, 3), range(7))
    ]  # fmt: skip
    assert not list((tmp_path / "out.parts").glob(".*"))
    first.save(None)
    assert store()[0].missing() == [(range(1, 2), range(7)), (range(2, 3), range(7))]


def killed_run(tmp_path, germline, max_n, method="direct"):
    count_to(tmp_path / "out.h5", SMALL, germline, Config(max_n=max_n, method=method), resume=True)


@pytest.mark.parametrize("half_removed", [False, True])
def test_a_run_killed_right_after_its_result_got_its_name(tmp_path, paper_germline, monkeypatch, half_removed):
    with monkeypatch.context() as killed:
        killed.setattr(RunFolder, "remove", lambda self: None)
        killed_run(tmp_path, paper_germline, 1)
    folder = tmp_path / "out.h5.parts"
    assert folder.is_dir()
    with pytest.raises(InputError, match="is the result of another run"):
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
    folder.open(SAVED, {}, resume=False, overwrite=False)
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
