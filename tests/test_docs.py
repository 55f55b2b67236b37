"""The documentation: its examples run, and it names every command, option and public name."""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex

import pytest
import typer.main

import hpcvdj
from hpcvdj.cli import program
from hpcvdj.counting.config import Config
from hpcvdj.kernels.quantities import Pathways
from tests.commands import hpcvdj_command
from tests.conftest import GERMLINE, ROOT, SMALL
from tests.problems import count_to

API = ROOT / "docs" / "api.md"

EXAMPLE = re.compile(r"^```(sh|python)\n(.*?)^```\n\n((?:    [^\n]*\n|\n+(?=    ))+)", re.MULTILINE | re.DOTALL)
"""A command or a Python block, and the indented output below it."""


@pytest.mark.slow
def test_the_examples_of_the_api_page_run(tmp_path, monkeypatch, paper_germline):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").symlink_to(ROOT / "inputs")
    both = [SMALL, SMALL.with_name("repertoire.tsv.gz")]
    for tables, target, option in ((SMALL, "out.h5", ""), (both, "all.h5", " --together")):
        names = " ".join(str(path.relative_to(ROOT)) for path in (tables if isinstance(tables, list) else [tables]))
        command = f"hpcvdj count {names} -g {GERMLINE.stem} -o {target}{option}\n"
        assert command in API.read_text()
        count_to(tmp_path / target, tables, paper_germline, Config())
    done = doctest.testfile(str(API), module_relative=False)
    assert done.attempted > 12
    assert done.failed == 0


@pytest.mark.parametrize(
    ("page", "number"), [pytest.param("algorithm", 2, marks=pytest.mark.exhaustive), ("explain", 2)]
)
def test_the_examples_of_a_page_print_what_it_shows(page, number, monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = EXAMPLE.findall((ROOT / "docs" / f"{page}.md").read_text())
    assert len(examples) == number
    for language, code, shown in examples:
        if language == "sh":
            out, _ = hpcvdj_command(*shlex.split(code)[1:])
        else:
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(code, {})
            out = stream.getvalue()
        assert out.split() == shown.split()


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
    places = re.findall(r"`(\w+/[\w/.]*)`", page.split("## Where a change goes")[1])
    assert len(places) > 10
    for place in places:
        assert (ROOT / place).exists(), place


def site_module(name):
    """A module of docs/site, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_command_and_option():
    page = site_module("reference").commands()
    root = typer.main.get_command(program())
    names = [f"hpcvdj {name}" for name in root.commands]
    for name, command in root.commands.items():
        for subname, subcommand in getattr(command, "commands", {"": command}).items():
            names.append(f"hpcvdj {name} {subname}".strip())
            section = page.partition(f"# {names[-1]}\n")[2].partition("\n## ")[0]
            for parameter in subcommand.params:
                for option in parameter.opts if parameter.param_type_name == "option" else ():
                    everywhere = ("--help", "-h", "--quiet", "-q", "--verbose", "-v", "--help-all")
                    assert option in everywhere or f"`{option}`" in section, (names[-1], option)
    assert all(f"# {name}\n" in page for name in names)
    assert len(names) > 15
    assert "None" not in page
    assert "| `--d-forms` | `paper`, `distinct` | `paper` |" in page
    assert "{tables}" not in page
    pathways = Pathways()
    assert f"{', '.join(pathways.columns(2))}, ..., pathways_total and weight, empty" in page
    assert f"{pathways.excluded} with the reason" in " ".join(page.split())


def test_columns_of_a_docstring_become_a_list():
    pytest.importorskip("griffe")
    text = 'Count.\n\ntable   a table,\n        or another\nv, j    calls\n\n>>> count("a")\n1\n\nThe end.  Really.'
    assert site_module("docstrings").markdown(text) == (
        "Count.\n\n\n- `table`: a table,\n    or another\n- `v`, `j`: calls\n\n"
        '```pycon\n>>> count("a")\n1\n```\n\nThe end.  Really.'
    )
