"""Networks and logos of `hpcvdj motifs plot`: what is drawn, where, and the bits of the letters."""

import subprocess
import sys
from collections import Counter
from math import log2

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hpcvdj.cli import motifs
from hpcvdj.errors import InputError
from hpcvdj.motifs import network as module
from hpcvdj.motifs.logos import RESIDUES, alignment, information
from hpcvdj.motifs.network import drawn_nodes, network, packed
from tests.conftest import ROOT, SMALL
from tests.motifs.conftest import families, write_result

pytest.importorskip("matplotlib")
pytest.importorskip("networkx")


def graph(sizes, seed=1):
    """A symmetric matrix of rings of these sizes, a node without edges after each, and the ring of each node."""
    n = sum(sizes) + len(sizes)
    full, label, first = np.zeros((n, n)), np.zeros(n, dtype=np.int64), 0
    for number, size in enumerate(sizes, start=1):
        for k in range(size):
            i, j = first + k, first + (k + 1) % size
            full[i, j] = full[j, i] = 0.5 + k / 100
        label[first : first + size] = number
        first += size + 1
    return csr_array(full), label


def test_every_linked_sequence_is_drawn_once_and_components_are_apart():
    matrix, label = graph([9, 3, 30, 5, 5])
    own = network(matrix, label)
    assert own.nodes.tolist() == np.flatnonzero(label).tolist()
    ends = own.nodes[own.edges]
    assert sorted(map(tuple, ends.tolist())) == sorted(zip(*np.nonzero(np.triu(matrix.toarray())), strict=True))
    assert np.isfinite(own.positions).all()
    boxes = [own.positions[label[own.nodes] == number] for number in range(1, 6)]
    for a in range(5):
        for b in range(a):
            below, above = boxes[a].min(axis=0), boxes[a].max(axis=0)
            assert ((boxes[b].max(axis=0) < below) | (boxes[b].min(axis=0) > above)).any(), (a, b)
    assert len(np.unique(own.positions, axis=0)) == len(own.nodes)


def test_boxes_do_not_overlap():
    rng = np.random.default_rng(2)
    for sizes in ([], [np.array([3.0, 0.0])], list(rng.random((60, 2)) * rng.integers(1, 20, (60, 1)))):
        corners = packed(sizes)
        for a in range(len(sizes)):
            for b in range(a):
                apart = (corners[a] >= corners[b] + sizes[b]) | (corners[b] >= corners[a] + sizes[a])
                assert apart.any()


def test_of_many_sequences_the_largest_clusters_are_drawn(monkeypatch):
    matrix, label = graph([9, 3, 30, 5, 4])
    monkeypatch.setattr(module, "MOST_NODES", 40)
    assert set(label[drawn_nodes(matrix, label)]) == {3, 1}
    monkeypatch.setattr(module, "MOST_NODES", 10)
    # The largest does not fit: its nodes with the largest scores.
    chosen = drawn_nodes(matrix, label)
    assert (label[chosen] == 3).all()
    strength = matrix.sum(axis=1)
    assert sorted(strength[chosen]) == sorted(np.sort(strength[label == 3])[-10:])
    # Without clusters, those of all.
    assert len(drawn_nodes(matrix, np.zeros_like(label))) == 10
    own = network(matrix, label)
    assert len(own.nodes) == 10
    assert connected_components(matrix[own.nodes][:, own.nodes])[0] < 10


@pytest.mark.exhaustive
def test_the_same_figure_each_time(results, run, tmp_path):
    """In another process, with other hashes of texts."""
    path = results[False, 2].path
    run(motifs.plot, path, "-o", tmp_path / "a.png", "--min-score", 0.2)
    words = ["motifs", "plot", path, "-o", tmp_path / "b.png", "--min-score", "0.2", "-q"]
    environment = {"PYTHONHASHSEED": "4321", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-m", "hpcvdj", *map(str, words)], check=True, env=environment)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_the_figure_counts_what_it_leaves_out(run, tmp_path, monkeypatch):
    written = write_result(tmp_path / "r.h5", families().part(0, 60), strands=2, dense=False)
    monkeypatch.setattr(module, "MOST_NODES", 12)
    run(motifs.cluster, written.path, "-o", tmp_path / "c.tsv", "--algorithm", "components", "--min-score", 0.25)
    words = ("-o", tmp_path / "f.svg", "--min-score", 0.25, "--clusters", tmp_path / "c.tsv")
    text = run(motifs.plot, written.path, *words)
    assert "10 of 60 sequences, " in text
    assert "; 0 without edges, 50 in smaller clusters left out" in text


def test_alignments():
    texts = ["TGTGCCTTT", "TGTGCGTTC", "TGTGCC", "TGTNCCTTT", "TGTTAATTT", "TGTGCCTT", "GG", "GC"]
    assert alignment(texts, "amino-acids") == ["CAF", "CAF"]
    assert alignment(texts, "nucleotides") == ["TGTGCCTTT", "TGTGCGTTC", "TGTTAATTT"]
    assert alignment(["NN", ""], "nucleotides") == alignment(["TAA"], "amino-acids") == []


@pytest.mark.parametrize("letters", ["amino-acids", "nucleotides"])
def test_bits(letters):
    pytest.importorskip("logomaker")
    rng = np.random.default_rng(5)
    known = RESIDUES if letters == "amino-acids" else "ACGT"
    aligned = ["".join(rng.choice(list(known), 6)) for _ in range(7)] + [known[:1] * 6]
    found = information(aligned, letters)
    assert list(found.columns) == sorted(known)
    for position, column in enumerate(zip(*aligned, strict=True)):
        shares = {letter: number / len(column) for letter, number in Counter(column).items()}
        bits = log2(len(known)) + sum(p * log2(p) for p in shares.values())
        for letter in known:
            # Sums of a few rounded products.
            assert found.loc[position, letter] == pytest.approx(shares.get(letter, 0) * bits, abs=1e-12)


def test_logos_are_drawn(run, tmp_path):
    pytest.importorskip("logomaker")
    small = tmp_path / "small.tsv"
    small.write_text("".join(SMALL.read_text().splitlines(keepends=True)[:81]))
    run(motifs.compare, small, "-k", 8, "-d", 0, "--min-score", 0.4, "-o", tmp_path / "o.h5")
    text = run(motifs.plot, tmp_path / "o.h5", "-o", tmp_path / "l.png", "--kind", "logos")
    assert "amino acids of" in text
    words = ("-o", tmp_path / "l.png", "--overwrite", "--kind", "logos")
    assert "nucleotides of" in run(motifs.plot, tmp_path / "o.h5", *words, "--letters", "nucleotides")
    assert (tmp_path / "l.png").read_bytes().startswith(b"\x89PNG")
    small.unlink()
    with pytest.raises(InputError, match="--sequences says where"):
        run(motifs.plot, tmp_path / "o.h5", *words)


def test_without_libraries_one_line(results, run, tmp_path, monkeypatch):
    path = results[False, 1].path
    for library, kind, message in (
        ("logomaker", "logos", r"hpcvdj\[plots\]"),
        ("networkx", "network", r"hpcvdj\[graphs\]"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            with pytest.raises(InputError, match=message):
                run(motifs.plot, path, "-o", tmp_path / "f.png", "--kind", kind)
    assert not list(tmp_path.iterdir())
