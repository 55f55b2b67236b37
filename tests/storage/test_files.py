"""hpcvdj.storage.files: which files may be written, files that appear whole, and locks."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.storage.files import atomic_path, exclusive_lock, require_distinct, require_text_name, require_writable

HOLD = """
import sys
from pathlib import Path
from hpcvdj.storage.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """Another process that is writing o.h5."""
    words = [sys.executable, "-c", HOLD, str(tmp_path / "o.h5")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.communicate()


def test_one_run_at_a_time_writes_a_result(tmp_path, other):
    target = tmp_path / "o.h5"
    with pytest.raises(InputError, match="another run is writing it"), exclusive_lock(target):
        pass
    with exclusive_lock(tmp_path / "p.h5"):
        pass
    other.communicate("")
    with exclusive_lock(target):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_ends_with_its_process(tmp_path, other):
    other.kill()
    other.wait()
    assert os.listdir(tmp_path) == [".o.h5.lock"]
    with exclusive_lock(tmp_path / "o.h5"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_that_was_removed_meanwhile_is_taken_again(tmp_path, monkeypatch):
    right, tries = fcntl.flock, []

    def removed_once(descriptor, operation):
        right(descriptor, operation)
        tries.append(descriptor)
        if len(tries) == 1:
            (tmp_path / ".o.h5.lock").unlink()

    monkeypatch.setattr(fcntl, "flock", removed_once)
    with exclusive_lock(tmp_path / "o.h5"):
        assert (tmp_path / ".o.h5.lock").exists()
    assert len(tries) == 2


def test_a_lock_that_cannot_be_taken_is_an_error(tmp_path, monkeypatch):
    """Two runs would otherwise write the same result."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(MachineError, match=r"cannot be locked \(No locks available\)"), exclusive_lock(tmp_path / "o"):
        pass


def test_a_lock_does_not_follow_a_link(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / ".o.h5.lock").symlink_to(precious)
    with pytest.raises(MachineError, match="remove that file"), exclusive_lock(tmp_path / "o.h5"):
        pass
    assert precious.read_text() == "kept"


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "a.tsv"
    with pytest.raises(ZeroDivisionError), atomic_path(target, overwrite=False) as path:
        path.write_text("half")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    with atomic_path(target, overwrite=False) as path:
        assert path.read_bytes() == b""
        path.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    with pytest.raises(InputError, match="exists already"), atomic_path(target, overwrite=False):
        pass
    with pytest.raises(ZeroDivisionError), atomic_path(target, overwrite=True) as path:
        raise ZeroDivisionError
    assert target.read_text() == "whole"
    assert os.listdir(tmp_path) == ["a.tsv"]


def test_what_is_renamed_is_on_disk(tmp_path, monkeypatch):
    """First the content, then the name: a crash of the machine leaves no empty file under the name."""
    done, fsync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def renamed(source, target):
        done.append(("rename", Path(source).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    with atomic_path(tmp_path / "a", overwrite=False) as path:
        path.write_text("whole")
    assert done == [("sync", ".a.part"), ("rename", ".a.part"), ("sync", tmp_path.name)]


def test_a_lock_that_somebody_removed_is_no_error(tmp_path):
    with exclusive_lock(tmp_path / "o.h5"):
        (tmp_path / ".o.h5.lock").unlink()


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "in").mkdir()
    link, file = tmp_path / "link", tmp_path / "in" / "a"
    link.symlink_to(file)
    for content, overwrite in (("first", False), ("second", True)):
        with atomic_path(link, overwrite=overwrite) as path:
            assert path.parent == file.parent
            path.write_text(content)
        assert link.readlink() == file
        assert file.read_text() == content
    # A pipe, not /dev/null: a fault here would replace a device of the machine.
    os.mkfifo(tmp_path / "pipe")
    device = tmp_path / "device"
    device.symlink_to(tmp_path / "pipe")
    with pytest.raises(InputError, match="device: is not a regular file"), atomic_path(device, overwrite=True):
        pass
    assert sorted(os.listdir(tmp_path)) == ["device", "in", "link", "pipe"]


def test_new_files_have_the_mode_that_the_user_wants(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "a", overwrite=False):
            pass
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ((errno.ENOSPC, os.strerror(errno.ENOSPC)), "the disk is full; free space"),
        (("HDF5: write failed, error message = 'No space left on device'",), "the disk is full; free space"),
        ((errno.EIO, os.strerror(errno.EIO)), "writing failed .*Input/output error"),
    ],
)
def test_faults_of_the_disk_are_the_machines(tmp_path, fault, message):
    with pytest.raises(MachineError, match=f"a: {message}"), atomic_path(tmp_path / "a", overwrite=False):
        raise OSError(*fault)
    assert os.listdir(tmp_path) == []


def test_the_temporary_file_of_the_next_run_stays(tmp_path, monkeypatch):
    """Once a file has its name, a temporary file of the old name is another run's."""
    right, begun = os.replace, tmp_path / ".a.part"

    def replaced(source, target):
        right(source, target)
        begun.write_text("of the next run")

    monkeypatch.setattr(os, "replace", replaced)
    with atomic_path(tmp_path / "a", overwrite=False) as path:
        path.write_text("whole")
    assert begun.read_text() == "of the next run"


def test_an_input_is_not_overwritten(tmp_path):
    path, link = tmp_path / "a.tsv", tmp_path / "link"
    path.touch()
    link.symlink_to(path)
    require_distinct(tmp_path / "b.h5", path, tmp_path / "missing")
    for target in (path, link):
        with pytest.raises(InputError, match="is an input of this run"):
            require_distinct(target, tmp_path / "missing", path)


def test_a_name_that_is_not_text_is_refused(tmp_path):
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.tsv"))
    for check in (require_text_name, lambda path: require_writable(path, overwrite=True)):
        with pytest.raises(InputError, match=r"caf\\xe9.*: the file name is not UTF-8"):
            check(strange)
    require_text_name(tmp_path / "café.tsv")


def test_only_regular_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="name a file"):
            require_writable(target, overwrite=True)


def test_a_place_that_cannot_be_written_is_noticed(tmp_path):
    with pytest.raises(InputError, match="no such folder; create it first"):
        require_writable(tmp_path / "missing" / "a", overwrite=False)
    (tmp_path / ".a.probe").symlink_to(tmp_path / "precious")
    with pytest.raises(
        InputError, match=r"a: cannot be written \(Too many levels of symbolic links\); write elsewhere"
    ):
        require_writable(tmp_path / "a", overwrite=False)
    assert not (tmp_path / "precious").exists()
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="cannot be written"):
            require_writable(tmp_path / "a", overwrite=False)
        tmp_path.chmod(0o700)


def test_what_a_run_killed_at_its_first_check_leaves_is_removed(tmp_path, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            require_writable(tmp_path / "o.tsv", overwrite=False)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    require_writable(tmp_path / "o.tsv", overwrite=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["part", "probe", "lock"])
@pytest.mark.parametrize("linked", [False, True])
def test_hidden_files_of_a_run_are_no_inputs(tmp_path, kind, linked):
    table, target = tmp_path / "t.tsv", tmp_path / "o.tsv"
    table.write_text("years of work")
    (tmp_path / f".o.tsv.{kind}").hardlink_to(table)
    if linked:
        target = tmp_path / "link.tsv"
        target.symlink_to("o.tsv")
    with pytest.raises(InputError, match=rf"\.o\.tsv\.{kind}: is an input of this run"):
        require_distinct(target, table)


@pytest.mark.parametrize("kind", ["part", "probe", "lock"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_hidden_file_that_is_another_name_of_a_file_stays(tmp_path, kind, linked):
    precious, target = tmp_path / "precious", tmp_path / "o.tsv"
    precious.write_text("years of work")
    if linked:
        target = tmp_path / "link.tsv"
        target.symlink_to("o.tsv")
    (tmp_path / f".o.tsv.{kind}").hardlink_to(precious)
    with pytest.raises(InputError, match=rf"\.o\.tsv\.{kind}: is a hard link to another file"):
        require_writable(target, overwrite=True)
    assert (tmp_path / f".o.tsv.{kind}").read_text() == precious.read_text() == "years of work"


def test_what_is_not_a_file_is_no_unfinished_one(tmp_path):
    hidden = tmp_path / ".o.tsv.part"
    for make in (hidden.mkdir, lambda: hidden.symlink_to(tmp_path / "elsewhere")):
        make()
        with pytest.raises(InputError, match=r"\.o\.tsv\.part: is where o\.tsv is written"):
            require_writable(tmp_path / "o.tsv", overwrite=True)
        hidden.unlink() if hidden.is_symlink() else hidden.rmdir()
    hidden.write_text("half")
    require_writable(tmp_path / "o.tsv", overwrite=False)
