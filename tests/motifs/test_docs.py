"""docs/motifs.md: what it prints of the small example is what the commands print."""

import pytest

from hpcvdj.cli import motifs_cluster, motifs_export, motifs_show
from hpcvdj.motifs.edges import Selection
from hpcvdj.motifs.sequences import read_junctions
from tests.conftest import ROOT, SMALL
from tests.motifs.conftest import write_result

PAGE = (ROOT / "docs" / "motifs.md").read_text()


def printed_on_the_page(text):
    """Whether the page has the lines of `text`, indented, one after another; blank ends apart."""
    lines = [f"    {line}".rstrip() for line in text.rstrip().splitlines()]
    page = "\n".join(line for line in map(str.rstrip, PAGE.splitlines()) if line)
    return "\n".join(line for line in lines if line) in page


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs") / "small.h5"
    return write_result(path, read_junctions(SMALL), k=12, d=1, dense=False, selection=Selection(0.3))


def test_the_edges_and_their_best(small, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert printed_on_the_page(run(motifs_export, small.path, "-o", "small_edges.tsv"))
    rows = [line.split("\t") for line in (tmp_path / "small_edges.tsv").read_text().splitlines()[1:]]
    best = max(rows, key=lambda row: float(row[-1]))
    assert best[:2] == ["insilico_454", "insilico_495"]
    assert f"{float(best[-1]):.2f}" == "0.69"


def test_the_pair_that_is_shown(run):
    text = run(motifs_show, SMALL, "insilico_454", "insilico_495", "-k", 12, "-d", 1)
    assert printed_on_the_page(text)
    assert not printed_on_the_page(text.replace("14 at", "15 at"))


def test_the_graph_that_is_clustered(small, run, tmp_path):
    pytest.importorskip("networkx")
    # The clusters depend on the version of networkx; the graph does not.
    text = run(motifs_cluster, small.path, "-o", tmp_path / "clusters.tsv")
    assert printed_on_the_page(text.splitlines()[0])
    assert "252 have no edge" in text
