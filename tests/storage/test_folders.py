"""hpcvdj.storage.folders: folders that appear whole, and what is never removed."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.storage.folders import MARK, atomic_folder, exclusive_folder, require_unchanged_folder


@contextmanager
def writing(target, *inputs, overwrite=False):
    with exclusive_folder(target, *inputs, overwrite=overwrite), atomic_folder(target, overwrite=overwrite) as folder:
        yield folder


def written(target, content="new", *, overwrite=False):
    with writing(target, overwrite=overwrite) as folder:
        (folder / "a").write_text(content)
        assert target.exists() == overwrite


@pytest.fixture
def target(tmp_path):
    return tmp_path / "place" / "m"


@pytest.fixture(autouse=True)
def place(tmp_path):
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def contents(place):
    return {str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()}


def names(place):
    return sorted(path.name for path in place.iterdir())


def test_a_folder_appears_whole_or_not_at_all(target, place):
    with pytest.raises(ZeroDivisionError), writing(target) as folder:
        (folder / "a").write_text("half")
        raise ZeroDivisionError
    assert names(place) == []
    written(target)
    assert names(target) == [MARK, "a"]
    with pytest.raises(InputError, match="exists already; give another name, or overwrite=True"):
        written(target)
    with pytest.raises(ZeroDivisionError), writing(target, overwrite=True) as folder:
        raise ZeroDivisionError
    assert (target / "a").read_text() == "new"
    written(target, "newer", overwrite=True)
    assert (target / "a").read_text() == "newer"
    assert names(place) == ["m"]


@pytest.mark.parametrize("foreign", ["no mark", "added", "changed", "a folder", "a link", "file"])
def test_only_what_hpcvdj_wrote_is_replaced(target, place, foreign):
    if foreign == "file":
        target.write_text("mine")
    else:
        written(target)
    if foreign == "no mark":
        (target / MARK).unlink()
    elif foreign == "added":
        (target / "notes").write_text("mine")
    elif foreign == "changed":
        (target / "a").write_text("mine")
    elif foreign == "a folder":
        (target / "b").mkdir()
    elif foreign == "a link":
        target.rename(place / "elsewhere")
        target.symlink_to(place / "elsewhere")
    before = contents(place)
    with pytest.raises(InputError, match=r"m: (exists, and is not a folder that|has files that) hpcvdj"):
        written(target, overwrite=True)
    assert contents(place) == before


def test_what_is_added_while_a_run_works_stays(target):
    written(target)
    added = pytest.raises(InputError, match=r"has files that hpcvdj did not write there \(notes\)")
    with added, writing(target, overwrite=True):
        (target / "notes").write_text("mine")
    assert (target / "notes").read_text() == "mine"


def test_a_folder_that_appears_while_a_run_works_stays(target):
    appeared = pytest.raises(InputError, match="m: exists already; give another name")
    with appeared, writing(target) as folder:
        (folder / "a").write_text("new")
        target.mkdir()
        (target / "a").write_text("mine")
    assert (target / "a").read_text() == "mine"


@pytest.mark.parametrize("name", [".m.part", ".m.old"])
def test_folders_of_somebody_else_are_never_removed(target, place, name):
    (place / name).mkdir()
    (place / name / "thesis").write_text("years of work")
    before = contents(place)
    refusal = rf"{name}: exists, and is not a folder that hpcvdj wrote; move it away"
    with pytest.raises(InputError, match=refusal):
        written(target)
    with pytest.raises(InputError, match=refusal), exclusive_folder(target, overwrite=True):
        pytest.fail("the run has begun")
    assert contents(place) == before


def test_what_is_renamed_is_on_disk(target, place, monkeypatch):
    """First all files and their names, then the folder's: a crash of the machine leaves no empty files."""
    done, fsync, rename = [], os.fsync, Path.rename

    def synced(descriptor):
        done.append(str(Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(place)))
        fsync(descriptor)

    def renamed(self, other):
        done.append("rename")
        return rename(self, other)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    written(target)
    assert sorted(done[:3]) == [".m.part", f".m.part/{MARK}", ".m.part/a"]
    assert done[3:] == ["rename", "."]


@pytest.mark.parametrize("renamed", [1, 2])
def test_a_run_that_was_killed_between_two_renames(target, place, monkeypatch, renamed):
    written(target, "old")
    right, calls = Path.rename, []

    def killed(self, other):
        calls.append(other)
        if len(calls) == renamed:
            # As if nothing came after it.
            os._exit(9)
        return right(self, other)

    monkeypatch.setattr(Path, "rename", killed)
    child = os.fork()
    if not child:
        written(target, "new", overwrite=True)
    os.waitpid(child, 0)
    monkeypatch.undo()
    assert target.exists() == (renamed == 1)
    with pytest.raises(InputError, match="exists already"):
        written(target)
    assert (target / "a").read_text() == "old"
    written(target, "newer", overwrite=True)
    assert (target / "a").read_text() == "newer"
    assert names(place) == ["m"]


@pytest.mark.parametrize("again", [True, False])
def test_a_second_rename_that_fails(target, place, monkeypatch, again):
    written(target, "old")
    right, calls = Path.rename, []

    def failing(self, other):
        calls.append(other)
        if len(calls) == 2 or (len(calls) == 3 and not again):
            raise OSError(errno.EIO, "Input/output error")
        return right(self, other)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        with pytest.raises(MachineError, match="m: writing failed"):
            written(target, "new", overwrite=True)
    assert target.exists() == again
    with pytest.raises(InputError, match="exists already"):
        written(target)
    assert (target / "a").read_text() == "old"
    assert names(place) == ["m"]


def test_a_run_that_resumes_leaves_the_folder(target):
    """Its caller says what is there; with overwrite, the folder must be hpcvdj's as well."""
    target.mkdir()
    (target / "thesis").write_text("years of work")
    with exclusive_folder(target, overwrite=False, resume=True):
        assert (target / "thesis").exists()
    for resume in (False, True):
        refused = pytest.raises(InputError, match="m: exists, and is not a folder that hpcvdj wrote")
        with refused, exclusive_folder(target, overwrite=True, resume=resume):
            pass
    with pytest.raises(InputError, match="m: exists already"), exclusive_folder(target, overwrite=False):
        pass


def test_one_run_at_a_time(target):
    refused = pytest.raises(InputError, match="another run is writing it")
    with exclusive_folder(target, overwrite=False), refused, exclusive_folder(target, overwrite=False):
        pass


def test_inputs_are_apart(target, place):
    (place / "in").mkdir()
    (place / "in" / "a.tsv").touch()
    (place / "link").symlink_to(place / "in")
    for own, given, relation in (
        (place / "in", place / "in" / "a.tsv", "has"),
        (place / "in", place / "in", "is"),
        (place / "link", place / "in", "is"),
        (place / "in" / "new", place / "link", "is in"),
        (place, place / "link" / "a.tsv", "has"),
    ):
        refused = pytest.raises(InputError, match=rf"{own.name}: {relation} an input of this run")
        with refused, exclusive_folder(own, given, overwrite=True):
            pass
    with exclusive_folder(target, place / "in", place / "in" / "a.tsv", place / "missing", overwrite=True):
        pass


def test_what_changed_is_no_complete_folder(target):
    written(target)
    require_unchanged_folder(target)
    (target / "notes").write_text("mine")
    require_unchanged_folder(target)
    (target / "a").write_text("x")
    with pytest.raises(InputError, match=r"m: a changed since hpcvdj wrote it; move .* without resume=True$"):
        require_unchanged_folder(target)


@pytest.mark.parametrize("left", ["no mark", "begun", "old"])
def test_what_a_killed_run_left_is_removed(target, place, left):
    written(target, "mine")
    if left == "old":
        target.rename(place / ".m.old")
        written(place / "n", "newer")
        (place / "n").rename(target)
    else:
        (place / ".m.part").mkdir()
        if left == "begun":
            (place / ".m.part" / "a").write_text("half")
            (place / ".m.part" / MARK).write_text('{"format": "hpcvdj-folder", "files": null}')
    written(target, "newest", overwrite=True)
    assert contents(target)["a"] == "newest"
    assert names(place) == ["m"]


def test_a_mark_of_another_program_is_none(target):
    written(target)
    (target / MARK).write_text((target / MARK).read_text().replace("hpcvdj-folder", "other"))
    with pytest.raises(InputError, match="is not a folder that hpcvdj wrote"):
        written(target, overwrite=True)


def test_a_link_to_the_same_bytes_is_not_what_was_written(target, place):
    written(target)
    (target / "a").rename(place / "elsewhere")
    (target / "a").symlink_to(place / "elsewhere")
    with pytest.raises(InputError, match=r"has files that hpcvdj did not write there \(a\)"):
        written(target, overwrite=True)


def test_a_folder_that_cannot_be_written_is_refused_at_once(place):
    for name, message in (("missing/m", "missing: no such folder"), (os.fsdecode(b"caf\xe9"), "is not UTF-8")):
        with pytest.raises(InputError, match=message), exclusive_folder(place / name, overwrite=False):
            pass
