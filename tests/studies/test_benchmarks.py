"""benchmarks/: the pages under results/ are made from their raw rows."""

import importlib
import shutil
import sys

import pytest

from hpcvdj.studies.pages import PAGE, render
from tests.conftest import ROOT

pytest.importorskip("matplotlib")


@pytest.fixture
def benchmark(request, monkeypatch):
    """The benchmark of a script."""
    script, name = request.param
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    modules = set(sys.modules)
    yield getattr(importlib.import_module(script), name)()
    for imported in set(sys.modules) - modules:
        if str(getattr(sys.modules[imported], "__file__", "")).startswith(str(ROOT / "benchmarks")):
            del sys.modules[imported]


@pytest.mark.parametrize(
    "benchmark",
    [
        ("motifs", "Motifs"),
        ("pgen_peers", "PgenPeers"),
    ],
    ids=lambda pair: pair[0],
    indirect=True,
)
def test_the_pages_of_the_repository(benchmark, tmp_path):
    folder = ROOT / "results" / benchmark.name
    shutil.copy(folder / "raw.csv", tmp_path)
    assert render(tmp_path, benchmark)
    assert (tmp_path / PAGE).read_text() == (folder / PAGE).read_text()
