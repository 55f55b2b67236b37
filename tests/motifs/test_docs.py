"""docs/motifs.md: what it prints of the small example is what the commands print."""

from itertools import product
from math import comb

import h5py
import numpy as np
import pytest

from hpcvdj.cli import motifs
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.results import datasets
from hpcvdj.motifs.sequences import read_sequences
from tests.conftest import ROOT, SMALL
from tests.kernels.kmers.cases import hostile
from tests.kernels.kmers.reference import exact_counters, kmer_counts, raw_counters
from tests.motifs.comparing import D
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
    return write_result(path, read_sequences(SMALL), k=12, d=1, dense=False, edge_filter=EdgeFilter(min_score=0.3))


def test_the_edges_and_their_best(small, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert printed_on_the_page(run(motifs.export, small.path, "-o", "small_edges.tsv"))
    rows = [line.split("\t") for line in (tmp_path / "small_edges.tsv").read_text().splitlines()[1:]]
    best = max(rows, key=lambda row: float(row[-1]))
    assert best[:2] == ["insilico_454", "insilico_495"]
    assert f"{float(best[-1]):.2f}" == "0.69"


def test_the_pair_that_is_shown(run):
    text = run(motifs.show, SMALL, "insilico_454", "insilico_495", "-k", 12, "-d", 1)
    assert printed_on_the_page(text)
    assert not printed_on_the_page(text.replace("14 at", "15 at"))


def test_the_graph_that_is_clustered(small, run, tmp_path):
    pytest.importorskip("networkx")
    # The clusters depend on the version of networkx; the graph does not.
    text = run(motifs.cluster, small.path, "-o", tmp_path / "clusters.tsv")
    assert printed_on_the_page(text.splitlines()[0])
    assert "252 have no edge" in text


@pytest.mark.parametrize(("dense", "strands"), [(True, 2), (False, 1)])
def test_a_result_has_the_datasets_that_are_declared_and_documented(results, dense, strands):
    declared, written = datasets(strands, D, dense=dense, several=False), []
    with h5py.File(results[dense, strands].path) as file:
        file.visititems(lambda name, item: written.append(name) if isinstance(item, h5py.Dataset) else None)
    assert sorted(declared) == sorted(name for name in written if not name.startswith("ranks/"))
    table = PAGE.partition("format `hpcvdj-motifs`")[2].partition("## Clusters")[0]
    for name in datasets(strands, D, dense=dense, several=True):
        group, _, last = name.rpartition("/")
        assert f"`{name}`" in table or (f"`{group}" in table and f"`{last}`" in table), name


def weighed(weights, texts, k):
    return sum(
        np.uint64(w) * plane for w, plane in zip(weights, exact_counters(texts, k, len(weights) - 1), strict=True)
    )


def test_the_weights_of_the_gapped_k_mer_kernel():
    assert [comb(12 - h, 2 - h) for h in range(3)] == [66, 11, 1]
    assert "`-k 12 -d 2 --weights 66,11,1`" in PAGE
    assert [comb(11 - h, 7) for h in range(4)] == [330, 120, 36, 8]
    assert "330, 120, 36, 8" in PAGE
    weights = [comb(5 - h, 2) for h in range(4)]
    assert np.array_equal(weighed(weights, hostile(), 5), raw_counters(hostile(), 5, 3)[3])


def test_the_weights_of_the_mismatch_kernel():
    """By its features: for each of the 4^k words, how many k-mers lie within one mismatch."""
    k = 4
    words = ["".join(letters) for letters in product("ACGT", repeat=k)]
    near = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) <= 1 for y in words] for x in words])
    counts = [kmer_counts(text, k) for text in hostile()]
    features = np.array([[f[word] for word in words] for f in counts]) @ near
    assert np.array_equal(weighed([1 + 3 * k, 4, 2], hostile(), k), features @ features.T)
    assert f"`-k 12 -d 2 --weights {1 + 3 * 12},4,2`" in PAGE
