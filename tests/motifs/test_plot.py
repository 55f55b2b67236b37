"""`hpcvdj motifs plot`: networks are drawn, and wrong usage is said."""

import sys
from xml.etree import ElementTree

import pytest

from hpcvdj.cli import motifs
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import sequence_set
from tests.motifs.conftest import write_result

KINDS = [(dense, strands) for dense in (True, False) for strands in (1, 2)]


@pytest.fixture(autouse=True)
def _matplotlib():
    pytest.importorskip("matplotlib")


@pytest.mark.parametrize("kind", KINDS)
def test_networks_are_drawn(results, run, tmp_path, kind):
    pytest.importorskip("networkx")
    svg, png = tmp_path / "f.svg", tmp_path / "f.png"
    text = run(motifs.plot, results[kind].path, "-o", svg, "--min-score", 0.1)
    assert text.startswith("shown      ")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    # The same figure in another format takes as long again.
    if kind == KINDS[0]:
        run(motifs.plot, results[kind].path, "-o", png, "--min-score", 0.1)
        assert png.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"f.svg", *(["f.png"] if kind == KINDS[0] else [])}


def test_wrong_usage_is_said_in_a_line(results, run, tmp_path, monkeypatch):
    dense, edges = results[True, 1].path, results[False, 1].path
    lonely = write_result(tmp_path / "l.h5", sequence_set(["ACG", "TTT"]), dense=False).path
    out = tmp_path / "f.png"
    for arguments, message in (
        ((dense, "-o", out), "--min-score or --top"),
        ((edges, "-o", tmp_path / "f.pdf"), r"must end in \.png or \.svg"),
        ((edges, "-o", out, "--strand", "-"), "--strands both"),
        ((edges, "-o", out, "--clusters", tmp_path / "no.tsv"), "no such file"),
        ((tmp_path / "no.h5", "-o", out), "no such result file"),
        ((lonely, "-o", out), "give a lower --min-score"),
    ):
        with pytest.raises(InputError, match=message):
            run(motifs.plot, *arguments)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"hpcvdj\[plots\]"):
        run(motifs.plot, edges, "-o", out)
    assert [path.name for path in tmp_path.iterdir()] == ["l.h5"]
