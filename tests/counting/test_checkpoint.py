"""The checkpoint: what is on disk comes back, and nothing else; other runs and damaged parts are refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.runs.checkpoint import Checkpoint, folder_of, remaining
from hpcvdj.counting.config import Config, Inputs
from hpcvdj.runs.driver import Partial
from hpcvdj.counting.whole import count_file
from hpcvdj.errors import CompleteError, InputError, MachineError
from hpcvdj.kernels.pathways.methods import Unit
from hpcvdj.runs.ranks import World
from tests.conftest import SMALL

OFFSETS = np.array([0, 4, 5, 9, 10])
IDENTITY = {"junctions_sha256": "abc", "max_n": 2, "calls": {"ambiguous": "exclude"}}
A = Unit(range(2), range(5), range(1), 1)
B = Unit(range(2, 4), range(5, 10), range(1), 1)
C = Unit(range(4), range(10), range(1, 2), 4)
COUNTERS = np.arange(30, dtype=np.uint64).reshape(10, 3) * np.uint64(2**40)


def counters_of(unit):
    return COUNTERS[unit.rows.start : unit.rows.stop, unit.n_lengths.start : unit.n_lengths.stop]


def opened(tmp_path, identity=IDENTITY, **options):
    checkpoint = Checkpoint(tmp_path / "out.h5", identity)
    checkpoint.open(**{"resume": True, "overwrite": False, **options})
    return checkpoint


def restored(checkpoint):
    found = {}
    done, partial = checkpoint.restore(lambda unit, counters: found.update({unit: counters.copy()}), (3, 4))
    return found, done, partial


def test_units_and_the_cut_one_come_back(tmp_path):
    checkpoint = opened(tmp_path)
    checkpoint.add(A)
    checkpoint.add(B)
    checkpoint.cut_at(Partial(C, 3, counters_of(C)))
    checkpoint.save(counters_of)
    found, done, partial = restored(opened(tmp_path))
    assert list(found) == [A, B]
    for unit, counters in found.items():
        assert np.array_equal(counters, counters_of(unit))
        assert counters.dtype == np.uint64
    assert done.tolist() == [[True] * 4, [False] * 4, [False] * 4]
    assert (partial.unit, partial.tasks_done) == (C, 3)
    assert np.array_equal(partial.counters, counters_of(C))


@pytest.mark.parametrize("half_removed", [False, True])
def test_what_a_run_leaves_that_is_killed_once_its_result_has_its_name(tmp_path, paper_germline, half_removed):
    def run(max_n):
        config = Config(max_n=max_n)
        count_file(Inputs(SMALL), paper_germline, tmp_path / "out.h5", config, World(), resume=True)

    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(Checkpoint, "remove", lambda self: None)
        run(1)
    folder = folder_of(tmp_path / "out.h5")
    assert folder.is_dir()
    with pytest.raises(InputError, match="holds another run"):
        run(2)
    assert folder.is_dir()
    if half_removed:
        (folder / "run.json").unlink()
    with pytest.raises(CompleteError):
        run(1)
    assert [path.name for path in tmp_path.iterdir()] == ["out.h5"]


def test_a_folder_of_another_run_stays_beside_a_complete_result(tmp_path, paper_germline):
    """Such as that of a run which was to replace the result, and was stopped."""
    arguments = Inputs(SMALL), paper_germline, tmp_path / "out.h5", Config(max_n=1), World()
    count_file(*arguments)
    opened(tmp_path, overwrite=True)
    with pytest.raises(CompleteError):
        count_file(*arguments, resume=True)
    assert folder_of(tmp_path / "out.h5").is_dir()


def test_the_latest_cut_counts_and_none_once_its_unit_is_done(tmp_path):
    checkpoint = opened(tmp_path)
    for tasks in (1, 2):
        checkpoint.cut_at(Partial(C, tasks, counters_of(C) + np.uint64(tasks)))
        checkpoint.save(counters_of)
    assert restored(checkpoint)[2].tasks_done == 2
    checkpoint.add(A)
    checkpoint.save(counters_of)
    assert restored(checkpoint)[2].tasks_done == 2
    checkpoint.add(C)
    checkpoint.save(counters_of)
    assert restored(checkpoint)[2] is None
    assert len(checkpoint.parts()) == 4


def test_nothing_new_writes_nothing(tmp_path):
    checkpoint = opened(tmp_path)
    checkpoint.save(counters_of)
    assert checkpoint.parts() == []
    checkpoint.leave()
    assert not checkpoint.folder.exists()


def test_counters_are_neither_lost_nor_taken_without_a_word(tmp_path):
    checkpoint = opened(tmp_path)
    checkpoint.add(A)
    checkpoint.save(counters_of)
    with pytest.raises(InputError, match="--resume goes on with it, --overwrite starts anew"):
        opened(tmp_path, resume=False)
    assert list(restored(opened(tmp_path))[0]) == [A]
    opened(tmp_path, overwrite=True)
    assert checkpoint.parts() == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"max_n": 3}, "max_n was 2, is 3"),
        ({"junctions_sha256": "xyz"}, "junctions_sha256 was abc, is xyz"),
        ({"calls": {"ambiguous": "first"}}, "calls was"),
        ({"new": 1}, "new was None, is 1"),
    ],
)
def test_another_run_is_refused_by_name(tmp_path, change, says):
    checkpoint = opened(tmp_path)
    checkpoint.add(A)
    checkpoint.save(counters_of)
    with pytest.raises(InputError, match=says):
        opened(tmp_path, {**IDENTITY, **change})
    assert len(checkpoint.parts()) == 1


@pytest.mark.parametrize("damage", ["cut short", "one byte", "no zip", "shape"])
def test_a_damaged_part_is_named(tmp_path, damage):
    checkpoint = opened(tmp_path)
    checkpoint.add(A)
    checkpoint.save(counters_of if damage != "shape" else lambda unit: COUNTERS)
    part = checkpoint.parts()[0]
    raw = bytearray(part.read_bytes())
    if damage == "cut short":
        raw = raw[: len(raw) // 2]
    elif damage == "one byte":
        raw[180] ^= 1
    elif damage == "no zip":
        raw = bytearray(b"nonsense")
    part.write_bytes(raw)
    with pytest.raises(InputError, match=r"part-000001.zip: is damaged"):
        restored(checkpoint)


def test_what_a_killed_run_leaves_besides_parts_is_no_part(tmp_path):
    checkpoint = opened(tmp_path)
    checkpoint.add(A)
    checkpoint.save(counters_of)
    (checkpoint.folder / "part-000002.zip.new").write_bytes(b"half")
    (checkpoint.folder / "result.part").write_bytes(b"half")
    assert list(restored(opened(tmp_path))[0]) == [A]


def test_a_full_disk_leaves_the_parts_before(tmp_path):
    checkpoint = opened(tmp_path)
    checkpoint.add(A)
    checkpoint.save(counters_of)
    checkpoint.add(B)

    def full(unit):
        raise OSError(28, "No space left on device")

    with pytest.raises(MachineError, match="disk is full; what was saved before is whole"):
        checkpoint.save(full)
    assert list(restored(opened(tmp_path))[0]) == [A]
    assert [path.name for path in checkpoint.folder.iterdir() if path.suffix == ".new"] == []


def test_the_folder_is_beside_the_result(tmp_path):
    assert folder_of(tmp_path / "out.h5") == tmp_path / "out.h5.checkpoint"
    (tmp_path / "out.h5.checkpoint").write_text("a file")
    with pytest.raises(InputError, match="is no folder"):
        opened(tmp_path)


def test_the_identity_is_readable(tmp_path):
    assert json.loads((opened(tmp_path).folder / "run.json").read_text()) == IDENTITY


@given(st.lists(st.booleans(), min_size=4, max_size=4), st.booleans())
def test_what_remains_is_what_is_not_done(cells, disjoint):
    done = np.zeros((3, 4), dtype=bool)
    done[1] = cells
    left = remaining(C, done, OFFSETS, disjoint=disjoint)
    assert [pair for unit in left for pair in unit.pairs] == [k for k in range(4) if not cells[k]]
    for unit in left:
        assert unit.rows == range(OFFSETS[unit.pairs.start], OFFSETS[unit.pairs.stop])
        assert unit.n_lengths == C.n_lengths
        assert unit.tasks == (len(unit.rows) if disjoint else C.tasks)
