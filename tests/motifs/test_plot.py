"""`hpcvdj motifs plot`: the values behind the figures, and that they are drawn."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from hpcvdj.cli import motifs_cluster, motifs_plot
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.motifs import graph, plots
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.plots import heatmap, histogram
from hpcvdj.motifs.results import MotifResult
from tests.motifs.conftest import families, write_result

KINDS = [(dense, strands) for dense in (True, False) for strands in (1, 2)]


@pytest.fixture(autouse=True)
def _matplotlib():
    pytest.importorskip("matplotlib")


def best_scores(written):
    """The larger score of each pair, NaN on the diagonal."""
    best = np.triu(np.fmax.reduce(written.scores, axis=0), 1)
    best += best.T  # What is stored: division in the other order may differ in the last bit.
    np.fill_diagonal(best, np.nan)
    return best


def families_of(names, order):
    return [int(names[i][4:]) // 5 for i in order if names[i].startswith("gene")]


def permutation(values, of):
    """The order in which the rows of `of` stand in `values`, told by their sorted scores."""
    rows = {tuple(np.sort(np.nan_to_num(row, nan=-9))): i for i, row in enumerate(of)}
    return [rows[tuple(np.sort(np.nan_to_num(row, nan=-9)))] for row in values]


@pytest.mark.parametrize("strands", [1, 2])
def test_the_heatmap_of_all_pairs_brings_families_together(tmp_path, strands):
    some = families().part(0, 60)
    written = write_result(tmp_path / "r.h5", some, strands=strands)
    best = best_scores(written)
    with MotifResult(written.path) as result:
        found = heatmap(result, EdgeFilter(), list(range(strands)))
    order = permutation(found.values, best)
    assert sorted(order) == list(range(60))
    np.testing.assert_array_equal(found.values, best[np.ix_(order, order)])
    if strands == 2:
        blocks = families_of(some.names, order)
        assert all(len(set(blocks[at : at + 5])) == 1 for at in range(0, 60, 5))


def test_the_heatmap_of_edges_has_those(results):
    written = results[False, 2]
    best = best_scores(written)
    with MotifResult(written.path) as result:
        found = heatmap(result, EdgeFilter(0.25), [0, 1])
    best[~(best >= 0.25)] = np.nan
    linked = np.flatnonzero((best >= 0.25).any(axis=1))
    assert found.shown == len(linked) == 60
    order = permutation(found.values, best[np.ix_(linked, linked)])
    np.testing.assert_array_equal(found.values, best[np.ix_(linked[order], linked[order])])


def test_clusters_order_the_rows(results):
    rng = np.random.default_rng(1)
    for kind, edge_filter in (((True, 1), EdgeFilter()), ((False, 1), EdgeFilter(0.1))):
        written = results[kind]
        clusters = rng.integers(0, 4, len(written.sequences))
        with MotifResult(written.path) as result:
            found = heatmap(result, edge_filter, [0], clusters)
        ranks = [9 if c == 0 else c for c in found.cluster.tolist()]
        assert ranks == sorted(ranks)
        best = best_scores(written)
        if not written.path.name.startswith("dense"):
            best[~(best >= 0.1)] = np.nan
        keep = np.flatnonzero((best >= 0.1).any(axis=1)) if edge_filter.min_score else np.arange(len(best))
        order = sorted(keep, key=lambda i: (clusters[i] == 0, clusters[i], i))
        np.testing.assert_array_equal(found.values, best[np.ix_(order, order)])


def test_many_sequences_are_sampled_or_pooled(tmp_path, monkeypatch):
    some = families(n=560, length=40).part(0, 560)
    dense = write_result(tmp_path / "d.h5", some, k=8, d=1)
    edges = write_result(tmp_path / "e.h5", some, k=8, d=1, dense=False, edge_filter=EdgeFilter(0.2))
    monkeypatch.setattr(plots, "MOST", 100)
    monkeypatch.setattr(graph, "PIECE", 256 * 300)
    best = best_scores(dense)
    with MotifResult(dense.path) as a, MotifResult(edges.path) as b:
        sample, pooled = heatmap(a, EdgeFilter(), [0]), heatmap(b, EdgeFilter(), [0])
    assert (sample.shown, len(sample.values)) == (100, 100)
    chosen = np.arange(100) * 560 // 100
    part = best[np.ix_(chosen, chosen)]
    assert np.nansum(sample.values) == pytest.approx(np.nansum(part))
    assert len(pooled.values) == 100 < pooled.shown
    assert np.nanmax(pooled.values) == np.nanmax(best)
    np.testing.assert_array_equal(pooled.values, pooled.values.T)
    # Families stand together, so that edges lie near the diagonal.
    i, j = np.nonzero(~np.isnan(pooled.values))
    assert np.median(np.abs(i - j)) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_distribution_of_scores_counts_each_pair_once(results, kind):
    written = results[kind]
    edge_filter = EdgeFilter() if kind[0] else EdgeFilter(0.1)
    strands = list(range(kind[1]))
    with MotifResult(written.path) as result:
        borders, counts = histogram(lambda: plots._scores(result, edge_filter, strands), strands)
    for s in strands:
        upper = np.triu(np.ones(written.scores[s].shape, bool), 1)
        kept = upper & written.counters[s].any(axis=0) & (written.scores[s] >= (edge_filter.min_score or -9))
        np.testing.assert_array_equal(counts[s], np.histogram(written.scores[s][kept], borders)[0])
    assert counts.sum() > 50


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("figure", ["heatmap", "degree", "scores", "network"])
def test_figures_are_drawn(results, run, tmp_path, kind, figure):
    written = results[kind]
    more = ["--min-score", 0.1] if figure in ("degree", "network") else []
    svg, png = tmp_path / "f.svg", tmp_path / "f.png"
    text = run(motifs_plot, written.path, "-o", svg, "--kind", figure, *more)
    assert text.startswith("shown      ")
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    run(motifs_plot, written.path, "-o", png, "--kind", figure, *more)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.png", "f.svg"]


def test_the_clusters_of_the_command_order_the_figure(results, run, tmp_path):
    path = results[False, 2].path
    run(motifs_cluster, path, "-o", tmp_path / "c.tsv", "--algorithm", "components", "--min-score", 0.25)
    words = ("-o", tmp_path / "f.png", "--kind", "heatmap", "--order", tmp_path / "c.tsv", "--min-score", 0.25)
    text = run(motifs_plot, path, *words)
    assert "60 of 64 sequences, by cluster" in text


def test_wrong_usage_is_said_in_a_line(results, run, tmp_path, monkeypatch):
    dense, edges = results[True, 1].path, results[False, 1].path
    lonely = write_result(tmp_path / "l.h5", sequence_set(["ACG", "TTT"]), dense=False).path
    out = tmp_path / "f.png"
    for arguments, message in (
        ((dense, "-o", out, "--kind", "degree"), "--min-score or --top"),
        ((edges, "-o", tmp_path / "f.pdf"), r"must end in \.png or \.svg"),
        ((edges, "-o", out, "--strand", "-"), "--strands both"),
        ((edges, "-o", out, "--kind", "scores", "--order", "c.tsv"), "applies to --kind heatmap"),
        ((edges, "-o", out, "--order", tmp_path / "no.tsv"), "no such file"),
        ((tmp_path / "no.h5", "-o", out), "no such result file"),
        *(
            ((lonely, "-o", out, "--kind", kind), "give a lower --min-score")
            for kind in ("heatmap", "degree", "scores", "network")
        ),
    ):
        with pytest.raises(InputError, match=message):
            run(motifs_plot, *arguments)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"hpcvdj\[plots\]"):
        run(motifs_plot, edges, "-o", out)
    assert [path.name for path in tmp_path.iterdir()] == ["l.h5"]
