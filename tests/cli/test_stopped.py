"""What a run that a signal stopped says: what is saved, and a remedy that works."""

import pytest

from hpcvdj.counting.config import Config
from hpcvdj.errors import StoppedError
from hpcvdj.values import compute, compute_tables
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, SMALL
from tests.problems import signalled_run


def test_a_folder_of_tables_goes_on_after_those_that_are_done(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / f"{name}.tsv").write_bytes(SMALL.read_bytes())
    words = ["count", tmp_path / "in", "-g", GERMLINE, "--max-n", 1, "-o", tmp_path / "out"]
    right, calls = compute_tables.compute_tables, []

    def signalled_after_the_second(inputs, reference, config, run, *arguments):
        found = right(inputs, reference, config, run, *arguments)
        calls.append(found)
        run.request.name = "SIGINT" if len(calls) == 2 else ""
        return found

    with monkeypatch.context() as patch:
        patch.setattr(compute_tables, "compute_tables", signalled_after_the_second)
        _, err = hpcvdj_command(*words, code=75)
    assert err.endswith("hpcvdj: SIGINT: stopped after 2 of 3 repertoires; --resume continues\n")
    states = {path: written_at(path) for path in (tmp_path / "out").iterdir()}
    assert sorted(path.name for path in states) == ["a.h5", "b.h5"]
    out, err = hpcvdj_command(*words, "--resume")
    assert err.count("is complete already") == 2
    assert "c.h5" in out
    assert {path: written_at(path) for path in states} == states


def written_at(path):
    """What changes when a file is written again, but not when it is read."""
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns


def test_nothing_is_said_to_be_saved_of_a_computation_in_memory(tmp_path, monkeypatch):
    run = signalled_run().to(tmp_path / "o.tsv")

    def stopped(problem, config, backend, run, store):
        raise run.stopped("with 12.0 % done and saved; --resume continues")

    monkeypatch.setattr(compute, "compute", stopped)
    monkeypatch.setattr(compute, "ArrayStore", lambda *given: None)
    with pytest.raises(StoppedError, match="SIGTERM: stopped before any result; start again with the same command"):
        compute.count_in_memory(None, Config(max_n=1), run, object())
