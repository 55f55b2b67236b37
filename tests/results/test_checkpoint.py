"""The checkpoint of a result: what was saved comes back, and nothing else; damage is noticed."""

import json
import os
from contextlib import suppress
from dataclasses import replace

import h5py
import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import CompleteError, InputError, MachineError, StoppedError
from hpcvdj.kernels.backends import CpuBackend
from hpcvdj.kernels.kernel import Unit
from hpcvdj.results.reader import Result
from hpcvdj.results.writer import STATE, result_writer
from hpcvdj.runs.driver import Partial
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.run import Run
from hpcvdj.storage import packed
from tests.conftest import SMALL
from tests.problems import count_to, junctions_of_rows, method_named

CDR3 = ["GCC", "GCCTT", "", "AAAA", "GGG", "GCCTTC", "TTTTTTT"]
A = Unit(range(1), range(4), range(1), 1)
B = Unit(range(1, 2), range(4, 7), range(1), 1)
C = Unit(range(2), range(7), range(1, 2), 4)
D = Unit(range(2), range(7), range(2, 3), 4)
VALUES = np.arange(1, 22, dtype=np.uint64).reshape(7, 3) * np.uint64(2**40)


def values_of(unit):
    return VALUES[unit.rows.start : unit.rows.stop, unit.n_lengths.start : unit.n_lengths.stop]


@pytest.fixture
def junctions(paper_germline, monkeypatch):
    """Four sequences of one pair and three of another; a chunk has three rows of a column."""
    monkeypatch.setattr(packed, "CHUNK_BYTES", 8 * 3)
    rows = [(f"TRBV{1 + (k > 3)}", "TRBJ1-1", cdr3) for k, cdr3 in enumerate(CDR3)]
    return junctions_of_rows(paper_germline, rows)


@pytest.fixture
def writer(tmp_path, junctions):
    """Opens a writer of out.h5 in the folder of the same run, as a run does that continues."""
    method = method_named("bitwise")

    def opened():
        folder = RunFolder(tmp_path / "out.h5.checkpoint", {})
        folder.open(STATE, {}, resume=True, overwrite=False)
        return result_writer(tmp_path / "out.h5", junctions, method, 3, folder=folder)

    return opened


class KilledError(Exception):
    """As if the process had been killed: nothing is tidied up."""


def killed_after(writer, *steps):
    """A run that is killed after these steps; returns what another run restores."""
    with pytest.raises(KilledError), writer() as result:  # noqa: PT012
        for step in steps:
            step(result)
        raise KilledError
    with pytest.raises(KilledError), writer() as result:  # noqa: PT012
        begun = result.restore()
        kept = result.missing(begun), list(result.sums), result.nonzero.copy(), begun
        raise KilledError
    return kept


def put(unit):
    return lambda result: result.put(unit, values_of(unit))


def save(partial=None):
    return lambda result: result.save(partial)


def test_units_and_the_cut_one_come_back(writer):
    cut = Partial(C, 3, values_of(C))
    missing, sums, nonzero, begun = killed_after(writer, put(A), put(B), save(cut))
    assert (begun.unit, begun.tasks_done) == (C, 3)
    assert np.array_equal(begun.values, values_of(C))
    assert missing == [(range(2, 3), range(7))]
    assert sums == [int(VALUES[:, 0].sum()), 0, 0]
    assert nonzero.all()


def test_what_was_not_saved_is_lost(writer):
    missing, sums, nonzero, begun = killed_after(writer, put(A), save(), put(B), put(C))
    assert begun is None
    assert missing == [(range(1), range(4, 7)), (range(1, 2), range(7)), (range(2, 3), range(7))]
    assert sums == [int(VALUES[:4, 0].sum()), 0, 0]
    assert nonzero.tolist() == [True] * 4 + [False] * 3


def test_nothing_saved_is_nothing_restored(writer):
    missing, sums, _, begun = killed_after(writer, put(A))
    assert (begun, sums) == (None, [0, 0, 0])
    assert missing == [(range(k, k + 1), range(7)) for k in range(3)]


def test_the_rows_of_a_cut_unit_are_not_missing(writer):
    missing, *_ = killed_after(writer, put(A), save(Partial(replace(B, rows=range(4, 6)), 1, values_of(B)[:2])))
    assert missing == [(range(1), range(6, 7)), (range(1, 2), range(7)), (range(2, 3), range(7))]


def test_the_latest_state_counts_and_older_files_go(writer, tmp_path):
    folder = tmp_path / "out.h5.checkpoint"
    for tasks in (1, 2):
        *_, begun = killed_after(writer, put(A), put(B), save(Partial(C, tasks, values_of(C) + np.uint64(tasks))))
        assert begun.tasks_done == tasks
        assert len(list(folder.glob("result-*.part"))) == 1
        for file in folder.glob("[!r]*"):
            file.unlink()
    # Restoring saves, so that a run which is killed at once loses nothing.
    assert killed_after(writer, put(A), save())[0] == killed_after(writer)[0]


def test_a_run_that_continues_writes_the_same_result(writer, tmp_path):
    killed_after(writer, put(A), save(), put(B))
    with writer() as result:
        assert result.restore() is None
        for unit in (B, C, D):
            result.put(unit, values_of(unit))
        result._values.close()
    with h5py.File(tmp_path / "out.h5") as file:
        assert np.array_equal(file["counters"][:], VALUES)


def state_file(tmp_path):
    return tmp_path / "out.h5.checkpoint" / STATE


@pytest.mark.parametrize("damage", ["cut short", "one byte", "no zip", "empty", "pickle", "other names"])
def test_a_damaged_state_is_named(writer, tmp_path, damage):
    with pytest.raises(KilledError), writer() as result:  # noqa: PT012
        result.put(A, values_of(A))
        result.save(None)
        raise KilledError
    path = state_file(tmp_path)
    raw = bytearray(path.read_bytes())
    if damage == "cut short":
        raw = raw[: len(raw) // 2]
    elif damage == "one byte":
        place = raw.index(b"\x93NUMPY") + 140
        raw[place] ^= 1
    elif damage == "no zip":
        raw = bytearray(b"nonsense")
    elif damage == "empty":
        raw = bytearray()
    path.write_bytes(raw)
    if damage == "pickle":
        np.savez(path, meta=np.array([{}], dtype=object))
    elif damage == "other names":
        np.savez(path, x=np.zeros(3))
    with pytest.raises(InputError, match=r"state\.npz: is damaged .*overwrite=True starts again"), writer() as result:
        result.restore()


@pytest.mark.parametrize("damage", ["one byte", "cut short", "missing"])
def test_damaged_values_are_named(writer, tmp_path, damage):
    with pytest.raises(KilledError), writer() as result:  # noqa: PT012
        result.put(A, values_of(A))
        result.save(None)
        raise KilledError
    with np.load(state_file(tmp_path)) as state:
        _, _, offset, size = state["chunks"][0].tolist()
    (part,) = (tmp_path / "out.h5.checkpoint").glob("result-*.part")
    raw = bytearray(part.read_bytes())
    raw[offset + size // 2] ^= 4
    part.write_bytes(raw if damage == "one byte" else raw[:offset])
    if damage == "missing":
        part.unlink()
    with pytest.raises(InputError, match=r"state\.npz: is damaged"), writer() as result:
        result.restore()


def test_a_state_cannot_name_a_file_elsewhere(writer, tmp_path):
    """It would read what another user wrote."""
    with pytest.raises(KilledError), writer() as result:  # noqa: PT012
        result.put(A, values_of(A))
        result.save(None)
        raise KilledError
    with np.load(state_file(tmp_path)) as state:
        arrays = dict(state)
    meta = json.loads(str(arrays["meta"]))
    (part,) = (tmp_path / "out.h5.checkpoint").glob("result-*.part")
    part.rename(tmp_path / part.name)
    arrays["meta"] = np.array(json.dumps({**meta, "file": f"../{meta['file']}"}))
    np.savez(state_file(tmp_path), **arrays)
    with pytest.raises(InputError, match="is damaged"), writer() as result:
        result.restore()


def test_a_full_disk_leaves_the_state_before(writer, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with pytest.raises(MachineError, match=r"the disk is full.*What was saved before is complete"), writer() as result:  # noqa: PT012
        result.put(A, values_of(A))
        result.save(None)
        result.put(B, values_of(B))
        with monkeypatch.context() as context:
            context.setattr(np, "savez", full)
            result.save(None)
    assert killed_after(writer)[0] == [
        (range(1), range(4, 7)), (range(1, 2), range(7)), (range(2, 3), range(7))
    ]  # fmt: skip
    assert not list((tmp_path / "out.h5.checkpoint").glob(".*"))


def killed_run(tmp_path, germline, max_n, method="direct"):
    count_to(tmp_path / "out.h5", SMALL, germline, Config(max_n, method), resume=True)


@pytest.mark.parametrize("half_removed", [False, True])
def test_a_run_killed_right_after_its_result_got_its_name(tmp_path, paper_germline, monkeypatch, half_removed):
    with monkeypatch.context() as killed:
        killed.setattr(RunFolder, "remove", lambda self: None)
        killed_run(tmp_path, paper_germline, 1)
    folder = tmp_path / "out.h5.checkpoint"
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
    arguments = tmp_path / "out.h5", SMALL, paper_germline, Config(3, "bitwise")
    with pytest.raises(StoppedError):
        count_to(*arguments, run=run, overwrite=True, save_seconds=0.0)
    with Result(tmp_path / "out.h5") as result:
        assert result.max_n == 1
    count_to(*arguments, resume=True)
    with Result(tmp_path / "out.h5") as result:
        assert result.max_n == 3


def test_a_folder_of_another_run_stays_beside_a_complete_result(tmp_path, paper_germline):
    """Such as that of a run which was to replace the result, and was stopped."""
    killed_run(tmp_path, paper_germline, 1)
    folder = RunFolder(tmp_path / "out.h5.checkpoint", {"max_n": 7})
    folder.open(STATE, {}, resume=False, overwrite=False)
    with pytest.raises(CompleteError):
        killed_run(tmp_path, paper_germline, 1)
    assert folder.path.is_dir()


@pytest.mark.parametrize(("method", "max_n"), [("direct", 3), ("bitwise", 2)])
def test_a_run_stopped_at_every_unit_writes_the_same_result(tmp_path, paper_germline, monkeypatch, method, max_n):
    """As many runs as it takes: each has a signal as soon as it has done something."""
    monkeypatch.setattr(packed, "CHUNK_BYTES", 1 << 10)
    monkeypatch.setattr(CpuBackend, "unit_work", 500 * 4)
    monkeypatch.setattr("hpcvdj.kernels.method.UNIT_VALUES", 30)
    monkeypatch.setattr("hpcvdj.runs.driver.FIRST_WORK", 2_000.0)
    monkeypatch.setattr("hpcvdj.runs.driver.STEP_SECONDS", 1e-6)
    table = tmp_path / "t.tsv"
    table.write_text("".join(SMALL.read_text().splitlines(keepends=True)[:80]))
    expected = count_to(tmp_path / "expected.h5", table, paper_germline, Config(max_n, method))
    runs = 0
    while not (tmp_path / "out.h5").exists():
        run = Run()
        run.request.begin = lambda run=run: setattr(run.request, "name", "SIGTERM")
        options = {"run": run, "resume": True, "save_seconds": 0.0}
        with suppress(StoppedError):
            summary = count_to(tmp_path / "out.h5", table, paper_germline, Config(max_n, method), **options)
        runs += 1
    assert runs >= 2
    assert summary.sums == expected.sums
    with Result(tmp_path / "expected.h5") as one, Result(tmp_path / "out.h5") as other:
        assert np.array_equal(one.counters[:], other.counters[:])
        assert one.provenance["sums"] == other.provenance["sums"]
    assert sorted(os.listdir(tmp_path)) == ["expected.h5", "out.h5", "t.tsv"]
