"""docs/api.md: its outputs are those of the commands."""

import doctest

import pytest

import hpcvdj
from hpcvdj.parallel import World
from hpcvdj.run import Config, Inputs, count_file
from tests.conftest import GERMLINE, ROOT, SMALL

API = ROOT / "docs" / "api.md"


def test_the_page_of_the_api_is_true(tmp_path, monkeypatch, paper_germline):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").symlink_to(ROOT / "inputs")
    assert f"hpcvdj count {SMALL.relative_to(ROOT)} -g {GERMLINE.relative_to(ROOT)} -o out.h5\n" in API.read_text()
    count_file(Inputs(SMALL), paper_germline, tmp_path / "out.h5", Config(), World())
    done = doctest.testfile(str(API), module_relative=False)
    assert done.attempted > 12
    assert done.failed == 0


def test_every_name_is_on_the_page():
    page = API.read_text()
    table = page.partition("## All names")[2]
    for name in hpcvdj.__all__:
        assert name.startswith("__") or f"`{name}" in table, name


def test_the_map_of_the_house_shows_every_room():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    house = [path for path in (ROOT / "hpcvdj").iterdir() if path.name != "__pycache__"]
    for path in house:
        assert f"`{path.name}{'/' if path.is_dir() else ''}`" in page, path.name
