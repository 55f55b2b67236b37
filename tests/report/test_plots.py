"""hpcvdj.reports.plots: the figure of `--plot` is what the report draws of the table."""

import re

import networkx as nx
import numpy as np
import pytest

from hpcvdj.errors import InputError, installing
from hpcvdj.reports.findings import _layout
from hpcvdj.reports.plots import _POINTS, _roc, draw, require_drawable
from tests.report import examples

KINDS = {
    "sharing": ("expected, q = 0.603", "observed / expected", "Sequences that pairs of individuals share"),
    "contamination": ("Rates at which pairs", "reads of the clone", "other group"),
    "expansion": (
        "anna, 1.5 to 12: shares",
        "share of the reads at 12",
        "Largest fold change, log2: 9",
        "3 hits in colour",
    ),
    "enrichment": ("expected p-value, −log10", "neighbours / expected", "TRBV3", "18 of 18 hits"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_figures_of_a_table(tmp_path, kind):
    table = getattr(examples, kind)(tmp_path / "t.tsv")
    draw(table, tmp_path / "f.svg")
    picture = (tmp_path / "f.svg").read_text()
    assert [words for words in KINDS[kind] if words not in picture] == []
    draw(table, tmp_path / "f.PNG")
    assert (tmp_path / "f.PNG").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"f\.svg: exists already"):
        draw(table, tmp_path / "f.svg")


def test_roc_curves(tmp_path):
    false = np.linspace(0, 1, 5_000)
    curves = {"pgen: 0.667": (false, np.sqrt(false)), "length: 0.500": (np.array([0.0, 1]), np.array([0.0, 1]))}
    draw(examples.sharing(tmp_path / "t.tsv"), tmp_path / "f.svg", curves=curves)
    picture = (tmp_path / "f.svg").read_text()
    assert all(words in picture for words in (*curves, "false positive rate", "true positive rate"))
    rows = _roc(curves).tables[0].records()
    drawn = np.array([(row["false"], row["true"]) for row in rows if row["predictor"].startswith("pgen")])
    np.testing.assert_array_equal(drawn[:, 1], np.sqrt(drawn[:, 0]))
    assert drawn[0].tolist() == [0, 0]
    assert drawn[-1].tolist() == [1, 1]
    assert _POINTS * 0.9 < len(drawn) <= _POINTS
    assert np.diff(drawn.sum(axis=1)).max() < 0.02
    assert [row["true"] for row in rows if row["predictor"].startswith("length")] == [0, 1]


def test_a_table_without_anything_to_draw(tmp_path):
    table = examples.enrichment(tmp_path / "t.tsv", clusters=0, hits=0, tested=0, qq=None)
    draw(table, tmp_path / "f.svg")
    assert "nothing to draw" in (tmp_path / "f.svg").read_text()


@pytest.mark.parametrize("missing", ["networkx", "vl_convert"])
def test_what_is_asked_before_the_work(tmp_path, monkeypatch, missing):
    require_drawable(tmp_path / "f.png", overwrite=False)
    with pytest.raises(InputError, match=r"f\.pdf: the name must end in \.png or \.svg"):
        require_drawable(tmp_path / "f.pdf", overwrite=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == missing else True)
    with pytest.raises(InputError, match=re.escape(f"{missing} is not installed; {installing('report')}")):
        require_drawable(tmp_path / "f.png", overwrite=False)


def test_groups_of_the_network_do_not_overlap():
    graph = nx.Graph()
    first = 0
    for size in (12, 5, 5, 3, *[2] * 10, *[1] * 15):
        graph.add_nodes_from(range(first, first + size))
        graph.add_edges_from((first, other) for other in range(first + 1, first + size))
        first += size
    positions = _layout(graph)
    assert positions == _layout(graph), "the same each time"
    groups = [np.array([positions[node] for node in sorted(part)]) for part in nx.connected_components(graph)]
    low, high = (np.array([getattr(group, end)(axis=0) for group in groups]) for end in ("min", "max"))
    # Of each two groups, one ends before the other begins, from left to right or from top to bottom.
    apart = np.maximum(low[:, np.newaxis] - high, low - high[:, np.newaxis]).max(axis=2)
    assert apart[np.triu_indices(len(groups), 1)].min() > 0.5
