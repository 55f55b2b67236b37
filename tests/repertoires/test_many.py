"""hpcvdj.repertoires.many: which repertoires go where."""

from pathlib import Path

import pytest

from hpcvdj.errors import InputError
from hpcvdj.repertoires.many import plan, repertoire_name


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.tsv", "a"), ("a.b.tsv.gz", "a.b"), ("x/a.parquet", "a"), ("a.csv", "a.csv"), (".tsv", ".tsv")],
)
def test_names(file, name):
    assert repertoire_name(Path(file)) == name


def test_one_file_goes_to_a_file():
    assert plan([Path("a.tsv")], Path("o.h5")) == [(Path("a.tsv"), Path("o.h5"))]


def test_several_files_and_folders_go_to_a_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.tsv.gz", "a.parquet", "notes.txt"):
        (folder / name).touch()
    out = tmp_path / "out"
    assert plan([folder], out) == [(folder / "a.parquet", out / "a.h5"), (folder / "b.tsv.gz", out / "b.h5")]
    assert plan([Path("c.tsv"), folder], out)[0] == (Path("c.tsv"), out / "c.h5")


def test_what_cannot_be(tmp_path):
    with pytest.raises(InputError, match="has no table"):
        plan([tmp_path], tmp_path / "out")
    with pytest.raises(InputError, match="like that of"):
        plan([Path("x/a.tsv"), Path("y/a.parquet")], tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="need a folder"):
        plan([Path("a.tsv"), Path("b.tsv")], tmp_path / "file")
    with pytest.raises(InputError, match=r"o\.h5: several repertoires go to a folder.*--together"):
        plan([Path("a.tsv"), Path("b.tsv")], tmp_path / "o.h5")
    (tmp_path / "o.h5").mkdir()
    assert len(plan([Path("a.tsv"), Path("b.tsv")], tmp_path / "o.h5")) == 2, "it is a folder already"


def test_a_link_to_nowhere_is_not_left_out(tmp_path):
    folder = tmp_path / "in"
    (folder / "b.tsv").mkdir(parents=True)
    (folder / "a.tsv").symlink_to(tmp_path / "nowhere")
    assert plan([folder], tmp_path / "out") == [(folder / "a.tsv", tmp_path / "out" / "a.h5")]
