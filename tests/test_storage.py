"""hpcvdj.storage: what may be written, and by whom."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpcvdj.counting.config import Config, Inputs
from hpcvdj.counting.whole import count_file
from hpcvdj.errors import InputError
from hpcvdj.runs.ranks import World
from hpcvdj.storage import alone, require_apart, require_writable
from tests.conftest import SMALL

HOLD = """
import sys
from pathlib import Path
from hpcvdj.storage import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that is writing o.h5."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "o.h5")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_one_run_at_a_time_writes_a_result(tmp_path, other, paper_germline):
    target = tmp_path / "o.h5"
    with pytest.raises(InputError, match="another run is writing it"):
        count_file(Inputs(SMALL), paper_germline, target, Config(1), World(), overwrite=True)
    with alone(tmp_path / "p.h5"):
        pass
    other.communicate("")
    with alone(target):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_ends_with_its_process(tmp_path, other):
    other.kill()
    other.wait()
    assert os.listdir(tmp_path) == [".o.h5.lock"]
    with alone(tmp_path / "o.h5"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_was_removed_meanwhile_is_none(tmp_path, monkeypatch):
    right, tries = fcntl.flock, []

    def removed_once(stream, operation):
        right(stream, operation)
        tries.append(stream)
        if len(tries) == 1:
            (tmp_path / ".o.h5.lock").unlink()

    monkeypatch.setattr(fcntl, "flock", removed_once)
    with alone(tmp_path / "o.h5"):
        assert (tmp_path / ".o.h5.lock").exists()
    assert len(tries) == 2


def test_a_file_system_without_locks_needs_none(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with alone(tmp_path / "o.h5"), alone(tmp_path / "no" / "o.h5"):
        pass


def test_an_input_is_not_overwritten(tmp_path):
    path, link = tmp_path / "a.tsv", tmp_path / "link"
    path.touch()
    link.symlink_to(path)
    require_apart(tmp_path / "b.h5", path, tmp_path / "none")
    for target in (path, link):
        with pytest.raises(InputError, match="is an input of this run"):
            require_apart(target, tmp_path / "none", path)


def test_a_name_that_is_no_text_is_refused_before_anything_is_counted(tmp_path, paper_germline):
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.tsv"))
    shutil.copy(SMALL, strange)
    for path, target in ((strange, tmp_path / "o.h5"), (SMALL, strange.with_suffix(".h5"))):
        with pytest.raises(InputError, match=r"caf\\xe9.*: the name is not UTF-8"):
            count_file(Inputs(path), paper_germline, target, Config(1), World())
    assert os.listdir(tmp_path) == [strange.name]


def test_what_is_no_plain_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="name a file"):
            require_writable(target, overwrite=True)
