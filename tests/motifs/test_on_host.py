"""`hpcvdj motifs compare` with the CUDA backend executed on the CPU (tests/kernels/host), from end to end."""

import numpy as np
import pytest

from hpcvdj.cli import motifs
from hpcvdj.errors import choices
from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.motifs.edges import EdgeFilter
from tests.kernels.host import fake_cupy
from tests.motifs.comparing import compare, content, exact

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", *choices(KmerMethod)])
def test_the_command_gives_all_pairs(host, fasta, tmp_path, run, method):
    out = tmp_path / "o.h5"
    options = ("-k", 6, "-d", 2, "--strands", "both", "--backend", "cuda", "--method", method)
    run(motifs.compare, fasta, *options, "-o", out)
    assert np.array_equal(content(out), exact())


@pytest.mark.slow_others("score")
@pytest.mark.parametrize("options", [("--min-score", 0.2), ("--top", 2), ("--min-score", 0.05, "--top", 3)])
@pytest.mark.parametrize("score", ["weights", "cosine", "background"])
def test_the_command_gives_the_edges_of_the_cpu(host, fasta, tmp_path, run, score, options):
    found = []
    for backend in ("cuda", "cpu"):
        out = tmp_path / f"{backend}.h5"
        chosen = ("-k", 6, "-d", 2, "--strands", "both", "--score", score, "--method", "pigeonhole", *options)
        run(motifs.compare, fasta, *chosen, "--backend", backend, "-o", out)
        found.append(content(out))
    assert found[0] == found[1]
    assert len(found[0]) > 10


@pytest.mark.slow
@pytest.mark.parametrize("layout", [(7, 3), (100, 4)])
@pytest.mark.parametrize("edges", [None, EdgeFilter(min_score=0.2, top=None), EdgeFilter(min_score=None, top=2)])
def test_tiles_on_a_gpu_and_on_the_cpu(host, fasta, tmp_path, monkeypatch, edges, layout):
    found = []
    for backend in ("cuda", "cpu"):
        out = tmp_path / f"{backend}.h5"
        options = {"layout": layout, "monkeypatch": monkeypatch, "strands": "both", "edges": edges}
        summary = compare(fasta, out, **options, backend=backend, method="index", score="cosine")
        found.append((content(out), summary.pairs))
    assert found[0][1] == found[1][1]
    if edges is None:
        assert np.array_equal(found[0][0], exact())
    else:
        assert sorted(found[0][0]) == sorted(found[1][0])
