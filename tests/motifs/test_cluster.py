"""`hpcvdj motifs cluster`: the clusters that are there are found, the same each time."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from hpcvdj.cli import motifs
from hpcvdj.errors import InputError
from hpcvdj.motifs.clusters import cluster, modularity, read_clusters
from hpcvdj.motifs.edges import EdgeFilter
from hpcvdj.motifs.graph import score_matrix, selected_edges
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.settings import ClusterSettings
from tests.commands import error_line, hpcvdj_command
from tests.conftest import ROOT

METHODS = ("louvain", "components", "label-propagation")


@pytest.fixture(autouse=True)
def _networkx():
    pytest.importorskip("networkx")


def graph_of(n, edges):
    """A symmetric matrix of (i, j, weight)."""
    full = np.zeros((n, n))
    for i, j, weight in edges:
        full[i, j] = full[j, i] = weight
    return csr_array(full)


def cliques(*sizes, apart=0.1):
    """Cliques of the given sizes, one edge of weight `apart` between neighbouring ones; a lone sequence before them."""
    edges, first = [], 1
    for size in sizes:
        edges += [(i, j, 1.0) for i in range(first, first + size) for j in range(i + 1, first + size)]
        if first > 1 and apart:
            edges.append((first - 1, first, apart))
        first += size
    return graph_of(first, edges)


@pytest.mark.parametrize("method", METHODS)
def test_cliques_are_clusters_the_largest_first(method):
    matrix = cliques(4, 7, 5, apart=0 if method == "components" else 0.1)
    found = cluster(matrix, ClusterSettings(algorithm=method))
    assert found.cluster.tolist() == [0] + [3] * 4 + [1] * 7 + [2] * 5
    assert found.sizes.tolist() == [7, 5, 4]
    assert found.degree[:3].tolist() == [0, 3, 3]
    np.testing.assert_allclose(found.weighted_degree, matrix.toarray().sum(axis=1))


def test_components_follow_paths():
    found = cluster(cliques(3, 4, apart=0.01), ClusterSettings(algorithm="components"))
    assert found.cluster.tolist() == [0] + [1] * 7


def test_resolution_splits():
    rng = np.random.default_rng(3)
    n = 120
    blocks = np.arange(n) // 20
    near = blocks[:, None] == blocks[None, :]
    half = blocks[:, None] // 3 == blocks[None, :] // 3
    chance = np.where(near, 0.8, np.where(half, 0.3, 0.02))
    full = np.triu(rng.random((n, n)) < chance, 1) * 1.0
    matrix = csr_array(full + full.T)
    assert len(cluster(matrix, ClusterSettings(resolution=0.5)).sizes) < len(
        cluster(matrix, ClusterSettings(resolution=2.0)).sizes
    )


@pytest.mark.parametrize("method", METHODS)
def test_modularity_is_networkx_s(method, results):
    import networkx as nx

    with MotifResult(results[False, 2].path) as result:
        matrix = score_matrix(selected_edges(result), len(result))
    found = cluster(matrix, ClusterSettings(algorithm=method, singletons="own"))
    groups = [set(np.flatnonzero(found.cluster == c + 1).tolist()) for c in range(len(found.sizes))]
    expected = nx.community.modularity(nx.from_scipy_sparse_array(matrix), groups)
    assert found.modularity == pytest.approx(expected, abs=1e-12)
    assert modularity(matrix, np.zeros(matrix.shape[0], np.int32)) < 0


def test_families_are_found_on_both_strands(results):
    """Each fifth sequence of a family lies on the other strand: only two strands bring it in."""
    names = results[False, 2].sequences.names
    with MotifResult(results[False, 2].path) as result:
        both = cluster(
            score_matrix(selected_edges(result, EdgeFilter(min_score=0.25)), len(result)),
            ClusterSettings(algorithm="components"),
        )
        same = cluster(
            score_matrix(selected_edges(result, EdgeFilter(min_score=0.25), "+"), len(result)),
            ClusterSettings(algorithm="components"),
        )
    assert both.sizes.tolist() == [5] * 12
    for family in range(0, 60, 5):
        members = [names.index(f"gene{i}") for i in range(family, family + 5)]
        assert len(set(both.cluster[members])) == 1
        assert len(set(same.cluster[members[:4]])) == 1
        assert same.cluster[members[4]] != same.cluster[members[0]]


def test_small_clusters_are_dissolved_and_lone_sequences_kept():
    matrix = cliques(2, 4, apart=0)
    assert cluster(matrix, ClusterSettings(min_size=3)).cluster.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert cluster(matrix, ClusterSettings(singletons="own")).cluster.tolist() == [3, 2, 2, 1, 1, 1, 1]
    with pytest.raises(InputError, match="min_size=2"):
        ClusterSettings(singletons="own", min_size=2)
    with pytest.raises(InputError, match=r"resolution=2\.0: applies only to louvain; leave it out"):
        ClusterSettings(algorithm="components", resolution=2.0)


def test_edges_that_speak_against_similarity_are_left_out():
    matrix = graph_of(5, [(0, 1, 1.0), (1, 2, -2.0), (2, 3, 0.5)])
    for method in METHODS:
        found = cluster(matrix, ClusterSettings(algorithm=method))
        assert found.cluster.tolist() == [1, 1, 2, 2, 0]
        assert found.left_out == 1
        assert found.weighted_degree.tolist() == [1, 1, 0.5, 0.5, 0]
    assert matrix.nnz == 6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_graph_without_edges(method, n):
    found = cluster(csr_array((n, n)), ClusterSettings(algorithm=method))
    assert found.cluster.tolist() == [0] * n
    assert np.isnan(found.modularity)


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_file(results, run, tmp_path, method):
    written = results[True, 2]
    text = run(
        motifs.cluster, written.path, "-o", tmp_path / "a.tsv", "--algorithm", method, "--min-score", 0.02, "--seed", 7
    )
    code = (
        "import sys; from pathlib import Path; from hpcvdj.motifs.clusters import cluster\n"
        "from hpcvdj.motifs.edges import EdgeFilter; from hpcvdj.motifs.graph import score_matrix, selected_edges\n"
        "from hpcvdj.motifs.results import MotifResult\n"
        "from hpcvdj.motifs.settings import ClusterSettings\n"
        "from hpcvdj.repertoires.writers import write_table\n"
        f"with MotifResult({str(written.path)!r}) as result:\n"
        "    matrix = score_matrix(selected_edges(result, EdgeFilter(min_score=0.02)), len(result))\n"
        f"    found = cluster(matrix, ClusterSettings(algorithm={method!r}, seed=7))\n"
        "    table = found.to_table(result.names)\n"
        f"write_table(Path({str(tmp_path / 'b.tsv')!r}), table.to_batches(), overwrite=False)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    lines = [line.split("\t") for line in (tmp_path / "a.tsv").read_text().splitlines()]
    assert lines[0] == ["name", "cluster", "size", "degree", "weighted_degree"]
    assert [line[0] for line in lines[1:]] == written.sequences.names
    sizes = np.bincount([int(line[1]) for line in lines[1:]])
    assert all(int(line[2]) == (sizes[int(line[1])] if line[1] != "0" else 0) for line in lines[1:])
    assert f"clusters   {len(sizes) - 1}, {sizes[0]} sequences in none" in text
    assert "modularity" in text


def test_the_table_is_read_back(results, run, tmp_path):
    written = results[False, 1]
    for ending in ("tsv.gz", "parquet"):
        out = tmp_path / f"c.{ending}"
        run(motifs.cluster, written.path, "-o", out, "--algorithm", "components")
        with MotifResult(written.path) as result:
            expected = cluster(
                score_matrix(selected_edges(result), len(result)), ClusterSettings(algorithm="components")
            ).cluster
            assert read_clusters(out, result.names).tolist() == expected.tolist()
        with pytest.raises(InputError, match="no row for 'nobody'"):
            read_clusters(out, ["gene1", "nobody"])
    (tmp_path / "bad.tsv").write_text("name\tcluster\ngene1\tx\n")
    with pytest.raises(InputError, match="'x', not a number"):
        read_clusters(tmp_path / "bad.tsv", ["gene1"])


def test_wrong_usage_is_said_in_a_line(results, run, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="--min-score or --top"):
        run(motifs.cluster, results[True, 1].path, "-o", tmp_path / "c.tsv")
    with pytest.raises(InputError, match=r"must end in \.tsv"):
        run(motifs.cluster, results[False, 1].path, "-o", tmp_path / "c.txt")
    with pytest.raises(InputError, match=r"--resolution 0\.0"):
        run(motifs.cluster, results[False, 1].path, "-o", tmp_path / "c.tsv", "--resolution", 0)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(InputError, match=r"hpcvdj\[graphs\]"):
        run(motifs.cluster, results[False, 1].path, "-o", tmp_path / "c.tsv")
    run(motifs.cluster, results[False, 1].path, "-o", tmp_path / "c.tsv", "--algorithm", "components")


def test_clusters_of_a_repertoire_have_genes_and_a_consensus(tmp_path):
    table = tmp_path / "t.tsv"
    rows = [("a", "V1", "J1", "ACGTACGTACGG"), ("b", "V1", "J2", "acgtacgtacga"), ("x", "V9", "J9", ""),
            ("c", "V2", "J1", "ACGTACGTACGC"), ("again", "V3", "J3", "ACGTACGTACGG"),
            ("d", "V4", "J4", "TTTTTTTTTTTTTTTT")]  # fmt: skip
    lines = [("sequence_id", "v_call", "j_call", "junction"), *rows]
    table.write_text("".join("\t".join(line) + "\n" for line in lines))
    hpcvdj_command("motifs", "compare", table, "-k", 8, "-d", 0, "--min-score", 0.1, "--rows", "all", "-o",
                   tmp_path / "m.h5")  # fmt: skip
    words = ("motifs", "cluster", tmp_path / "m.h5", "-o", tmp_path / "c.tsv", "--algorithm", "components")
    hpcvdj_command(*words)
    head, *found = [line.split("\t") for line in (tmp_path / "c.tsv").read_text().splitlines()]
    assert head[5:] == ["v_call", "j_call", "junction", "consensus"]
    named = {line[0]: line[5:] for line in found}
    assert named["b"] == ["V1", "J2", "ACGTACGTACGA", "ACGTACGTACGN"]
    assert named["c"][-1] == "ACGTACGTACGN"
    assert named["d"] == ["V4", "J4", "TTTTTTTTTTTTTTTT", ""]
    assert sorted(named) == ["a", "b", "c", "d"]
    # A folder of Parquet is replaced as a file is.
    of_folder = (*words[:4], tmp_path / "c.dataset", *words[5:])
    hpcvdj_command(*of_folder)
    hpcvdj_command(*of_folder, "--overwrite")
    # A table that was moved is said, another one is refused.
    table.rename(tmp_path / "moved.tsv")
    _, err = hpcvdj_command(*words, "--overwrite")
    assert "--sequences says where it is" in err
    assert "v_call" not in (tmp_path / "c.tsv").read_text()
    hpcvdj_command(*words, "--overwrite", "--sequences", tmp_path / "moved.tsv")
    assert "ACGTACGTACGN" in (tmp_path / "c.tsv").read_text()
    (tmp_path / "other.tsv").write_text("sequence_id\tjunction\na\tACGT\n")
    _, err = hpcvdj_command(*words, "--overwrite", "--sequences", tmp_path / "other.tsv", code=2)
    assert "is not what was compared" in error_line(err)
