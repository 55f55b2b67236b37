"""hpcvdj.runs.folder: which folders a run makes, continues, refuses and removes."""

import json

import h5py
import pytest

import hpcvdj
from hpcvdj.errors import CompleteError, InputError
from hpcvdj.runs.folder import RunFolder, differences, raise_if_complete
from hpcvdj.storage.hdf5 import write_attributes

IDENTITY = {"max_n": 2, "calls": {"ambiguous": "exclude"}, "tables": [["a", "1"], ["b", "2"]]}


def folder_at(tmp_path, identity=IDENTITY):
    return RunFolder(tmp_path / "out.h5.checkpoint", identity)


def opened(tmp_path, identity=IDENTITY, *, facts=None, resume=False, overwrite=False):
    folder = folder_at(tmp_path, identity)
    return folder, folder.open(facts or {"layout": 1}, resume=resume, overwrite=overwrite)


def with_item(tmp_path, **options):
    folder, _ = opened(tmp_path, **options)
    (folder.path / "item-1").write_text("x")
    return folder


def test_a_new_folder_says_which_run_it_is_of(tmp_path):
    folder, facts = opened(tmp_path)
    assert facts == {"layout": 1}
    record = json.loads((folder.path / "run.json").read_text())
    version = hpcvdj.__version__
    known = {"format": "hpcvdj-run", "hpcvdj": version, "identity": IDENTITY, "facts": {"layout": 1}}
    assert record == {**known, "replaces": None}
    assert folder.is_same()
    assert not folder_at(tmp_path, {"max_n": 3}).is_same()


def test_a_folder_with_work_is_continued_only_if_asked(tmp_path):
    folder = with_item(tmp_path)
    (folder.path / ".item-2.77.part").write_text("half")
    with pytest.raises(InputError, match="has the work of an unfinished run; resume=True continues it, overwrite=True"):
        opened(tmp_path)
    _, facts = opened(tmp_path, facts={"layout": 2}, resume=True)
    assert facts == {"layout": 1}, "the layout of the first run holds"
    assert sorted(path.name for path in folder.path.iterdir()) == ["item-1", "run.json"]
    _, facts = opened(tmp_path, facts={"layout": 2}, overwrite=True)
    assert facts == {"layout": 2}
    assert not (folder.path / "item-1").exists()


@pytest.mark.parametrize("resume", [True, False])
def test_overwriting_starts_again_whatever_run_the_work_is_of(tmp_path, resume):
    """Also together with resume; nothing of the work and of the facts of the other run is left."""
    folder = with_item(tmp_path, identity={"max_n": 9}, facts={"layout": 7})
    (folder.path / ".item-2.77.part").write_text("half")
    own, facts = opened(tmp_path, facts={"layout": 2}, resume=resume, overwrite=True)
    assert facts == {"layout": 2}
    assert [path.name for path in own.path.iterdir()] == ["run.json"]
    assert json.loads((own.path / "run.json").read_text())["facts"] == {"layout": 2}
    assert own.is_same()


@pytest.mark.parametrize("damaged", [{"layout": 0}, {"layout": "1"}, {"layout": None}, {}, {"layout": 1, "other": -1}])
def test_work_with_damaged_facts_is_not_continued_but_overwritten(tmp_path, damaged):
    folder = with_item(tmp_path)
    record = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps({**record, "facts": damaged}))
    with pytest.raises(InputError, match=r"its run\.json is damaged; overwrite=True starts again"):
        opened(tmp_path, resume=True)
    assert (folder.path / "item-1").exists()
    assert opened(tmp_path, overwrite=True)[1] == {"layout": 1}
    assert not (folder.path / "item-1").exists()


def test_each_fact_is_that_of_the_run(tmp_path):
    with_item(tmp_path, facts={"layout": 1, "other": "x"})
    with pytest.raises(InputError, match="is damaged"):
        opened(tmp_path, facts={"layout": 1, "other": 2}, resume=True)


def test_a_folder_in_the_folder_stays(tmp_path):
    folder = with_item(tmp_path)
    (folder.path / "mine").mkdir()
    assert opened(tmp_path, facts={"layout": 2}, overwrite=True)[1] == {"layout": 2}
    assert sorted(path.name for path in folder.path.iterdir()) == ["mine", "run.json"]


def test_an_empty_folder_becomes_that_of_a_run(tmp_path):
    folder_at(tmp_path).path.mkdir()
    folder, facts = opened(tmp_path)
    assert facts == {"layout": 1}
    assert folder.is_same()


def test_a_folder_that_cannot_be_made(tmp_path):
    folder = RunFolder(tmp_path / "nowhere" / "out.h5.checkpoint", IDENTITY)
    with pytest.raises(InputError, match=r"cannot be made \(No such file or directory\); write elsewhere"):
        folder.open({}, resume=False, overwrite=False)


def test_a_folder_without_work_is_made_again(tmp_path):
    opened(tmp_path, {"max_n": 9})
    _, facts = opened(tmp_path, facts={"layout": 5})
    assert facts == {"layout": 5}


def test_another_run_is_refused_by_what_differs(tmp_path):
    with_item(tmp_path)
    other = {**IDENTITY, "max_n": 3, "tables": [["b", "9"], ["c", "3"]]}
    with pytest.raises(InputError) as caught:
        opened(tmp_path, other, resume=True)
    assert "belongs to another run (max_n was 2, is 3; " in str(caught.value)
    assert "b changed, a no longer among the tables, c new among the tables" in str(caught.value)


def test_the_work_of_another_version_is_not_continued(tmp_path, monkeypatch):
    monkeypatch.setattr(hpcvdj, "__version__", "0.9.9")
    with_item(tmp_path)
    monkeypatch.undo()
    with pytest.raises(InputError, match=rf"another run \(hpcvdj was 0\.9\.9, is {hpcvdj.__version__}\)"):
        opened(tmp_path, resume=True)
    opened(tmp_path, overwrite=True)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        ([["b", "2"], ["a", "1"]], "the tables in another order"),
        ([["a", "1"], ["b", "2"], *([str(k), "3"] for k in range(5))], "0, 1, 2 and 2 more new among the tables"),
        ([], "a, b no longer among the tables"),
    ],
)
def test_differences_of_tables(now, text):
    assert differences(IDENTITY, {**IDENTITY, "tables": now}) == text
    assert differences(IDENTITY, dict(IDENTITY)) == ""
    digest, other = "0a" * 32, "0b" * 32
    for was, now, words in (
        (digest, other, "x has other content"), (None, digest, "x was not given, is a file"),
        ({"ill": "yes"}, {"ill": "no"}, "x was ill=yes, is ill=no"), (["HIV-1"], [], "x was HIV-1, is not given"),
        (digest[1:], other, f"x was {digest[1:]}, is a file"), (0.1, 0.2, "x was 0.1, is 0.2"),
    ):  # fmt: skip
        assert differences({"x": was}, {"x": now}) == words


@pytest.mark.parametrize("content", [None, "[]", "{", '{"format": "other"}', '{"format": "hpcvdj-run"}'])
@pytest.mark.parametrize("options", [{}, {"resume": True}, {"overwrite": True}])
def test_a_foreign_or_damaged_folder_is_refused_and_kept(tmp_path, content, options):
    folder = folder_at(tmp_path)
    folder.path.mkdir()
    (folder.path / "item-1").write_text("mine")
    if content is not None:
        (folder.path / "run.json").write_text(content)
    with pytest.raises(InputError, match="is not the folder of a run"):
        folder.open({}, **{"resume": False, "overwrite": False, **options})
    folder.remove()
    assert (folder.path / "item-1").read_text() == "mine"


def test_a_file_or_link_of_that_name_is_refused(tmp_path):
    folder = folder_at(tmp_path)
    folder.path.write_text("x")
    with pytest.raises(InputError, match="is not a folder, but a run needs"):
        folder.open({}, resume=False, overwrite=True)
    folder.path.unlink()
    (tmp_path / "elsewhere").mkdir()
    folder.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is not a folder, but a run needs"):
        folder.open({}, resume=False, overwrite=True)
    folder.remove()
    assert (tmp_path / "elsewhere").is_dir()


def test_leaving_keeps_work_and_nothing_else(tmp_path):
    folder, _ = opened(tmp_path)
    folder.leave(InputError("x"))
    assert not folder.path.exists()
    folder = with_item(tmp_path)
    folder.leave(InputError("x"))
    assert (folder.path / "item-1").exists()


def test_a_folder_that_was_half_removed_is_still_known(tmp_path):
    folder = with_item(tmp_path)
    (folder.path / "item-1").unlink()
    folder, facts = opened(tmp_path, {"max_n": 7})
    assert facts == {"layout": 1}


def result_at(tmp_path, identity):
    target = tmp_path / "out.h5"
    with h5py.File(target, "w") as file:
        if identity is not None:
            write_attributes(file, {"identity": identity})
    return target


def test_a_complete_result_is_known_by_its_identity(tmp_path):
    target = result_at(tmp_path, IDENTITY)
    with pytest.raises(CompleteError, match="is complete already"):
        raise_if_complete(target, folder_at(tmp_path))
    with pytest.raises(InputError, match=r"is of another run \(max_n was 2, is 5\)"):
        raise_if_complete(target, folder_at(tmp_path, {**IDENTITY, "max_n": 5}))
    with pytest.raises(InputError, match="is not the result of a run that can be resumed"):
        raise_if_complete(result_at(tmp_path, None), folder_at(tmp_path))


def test_what_a_run_left_that_was_killed_after_its_result_got_its_name(tmp_path):
    folder = with_item(tmp_path)
    with pytest.raises(CompleteError):
        raise_if_complete(result_at(tmp_path, IDENTITY), folder_at(tmp_path))
    assert not folder.path.exists()


def test_the_folder_of_another_run_stays_beside_a_complete_result(tmp_path):
    """Such as that of a run that was to replace the result, and was stopped."""
    folder = with_item(tmp_path, identity={"max_n": 8})
    with pytest.raises(CompleteError):
        raise_if_complete(result_at(tmp_path, IDENTITY), folder_at(tmp_path))
    assert (folder.path / "item-1").exists()


def test_a_run_that_replaces_another_result_continues(tmp_path):
    """Only if it began to replace this one."""
    target = result_at(tmp_path, {"max_n": 8})
    folder = with_item(tmp_path)
    with pytest.raises(InputError, match="is of another run"):
        raise_if_complete(target, folder)
    assert not folder.may_replace(target)
    assert folder.may_replace(tmp_path / "none")
    folder.open({}, resume=False, overwrite=True, target=target)
    assert not folder.may_replace(target), "it has no work"
    (folder.path / "item-1").touch()
    raise_if_complete(target, folder)
    assert folder.may_replace(target)
    later = result_at(tmp_path, {"max_n": 9})
    with pytest.raises(InputError, match="is of another run"):
        raise_if_complete(later, folder)
    folder.record_result(later)
    assert folder.may_replace(later)
    assert folder.is_same()
    assert not folder.may_replace(result_at(tmp_path, {"max_n": 10}))
    (folder.path / "item-1").unlink()
    with pytest.raises(InputError, match="is of another run"):
        raise_if_complete(later, folder)
