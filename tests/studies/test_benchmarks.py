"""benchmarks/: raw rows have one form, and the pages under results/ are made from theirs."""

import importlib
import shutil
import sys

import pytest

from hpcvdj.studies.pages import PAGE, render
from hpcvdj.studies.rows import RawFile
from tests.conftest import ROOT
from tests.studies.test_pages import Toy, ToyRow

pytest.importorskip("matplotlib")


@pytest.fixture
def script(monkeypatch):
    """Import a script of benchmarks/ by its name; afterwards it is forgotten."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(sys, "path", sys.path[:])
    modules = set(sys.modules)
    yield importlib.import_module
    for imported in set(sys.modules) - modules:
        if str(getattr(sys.modules[imported], "__file__", "")).startswith(str(ROOT / "benchmarks")):
            del sys.modules[imported]


@pytest.mark.parametrize(("module", "name"), [("motifs", "Motifs"), ("pgen_peers", "PgenPeers")])
def test_the_pages_of_the_repository(script, module, name, tmp_path):
    benchmark = getattr(script(module), name)()
    folder = ROOT / "results" / benchmark.name
    shutil.copy(folder / "raw.csv", tmp_path)
    assert render(tmp_path, benchmark)
    assert (tmp_path / PAGE).read_text() == (folder / PAGE).read_text()


def recorded(script, monkeypatch, words, measured, study=None, **arguments):
    """What `record` returns for a command line."""
    monkeypatch.setattr(sys, "argv", ["benchmarks/toy.py", *map(str, words)])
    return script("_common").record("A toy.", measured, study, **arguments)


def test_rows_are_written_with_how_they_were_measured(script, monkeypatch, tmp_path):
    """A column for each name that a row has, empty where another lacks it; what is measured before an error stays."""
    target, asked = tmp_path / "new" / "raw.csv", {}

    def measured(options):
        asked.update(vars(options))
        yield {"model": "a", "seconds": 1 / 3}
        yield {"model": "b", "hits": 7}
        if options.fail:
            raise RuntimeError

    words = ["--output", target, "--seeds", 3, 4, "--part", 0.5, "--fail"]
    options = {"seeds": ([1], ""), "part": (1.0, ""), "fail": (False, ""), "table": (None, ""), "top_k": (5, "")}
    with pytest.raises(RuntimeError):
        recorded(script, monkeypatch, words, measured, **options)
    assert {name: asked[name] for name in options} == {
        "seeds": [3, 4], "part": 0.5, "fail": True, "table": None, "top_k": 5,
    }  # fmt: skip
    file = RawFile.read(target)
    assert file.table == ["model,seconds,hits", "a,0.333333,", "b,,7"]
    assert file.facts["command"] == f"python benchmarks/toy.py --output {target} --seeds 3 4 --part 0.5 --fail"
    assert {"study", "date", "processor", "python", "hpcvdj", "numba", "load average at the start"} <= file.facts.keys()
    rows = recorded(script, monkeypatch, words[:-1], measured, **options)
    assert [row["model"] for row in rows] == ["a", "b"]


def test_a_page_whose_check_fails_ends_with_an_error(script, monkeypatch, tmp_path):
    rows = [ToyRow("saw", 1, 1.0), ToyRow("axe", 1, 2.0)]
    with pytest.raises(SystemExit) as ended:
        recorded(script, monkeypatch, ["--output", tmp_path], lambda options: rows[:1], Toy())
    assert ended.value.code == 0
    with pytest.raises(SystemExit) as ended:
        recorded(script, monkeypatch, ["--output", tmp_path], lambda options: rows, Toy())
    assert "DIFFERS" in str(ended.value.code)
    assert RawFile.read(tmp_path / "raw.csv").rows(ToyRow) == rows
    with pytest.raises(SystemExit):
        recorded(script, monkeypatch, ["--output", tmp_path, "--render"], None, Toy())


@pytest.mark.parametrize("check", [True, False])
def test_a_command_that_fails(script, check, capsys):
    """It ends the benchmark, or its exit code is in the row."""
    common, words = script("_common"), [sys.executable, "-c", "print('said'); raise SystemExit('no table')"]
    if check:
        with pytest.raises(SystemExit, match="no table"):
            common.run(words)
        return
    done = common.run(words, check=False)
    assert (done.status, done.stdout) == (1, "said\n")
    assert min(done.used.values()) > 0
    assert "no table" in capsys.readouterr().err
