"""Every method of comparing on a GPU: against the definition, and against the CPU.  Skipped without a GPU.

python -m pytest tests/gpu/test_motifs.py
"""

import numpy as np
import pytest

from hpcvdj.errors import choices
from hpcvdj.kernels.backends import gpu_count
from hpcvdj.kernels.kmers.methods import KmerMethod, choose
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from tests.kernels.kmers.cases import exact, hostile, random_text
from tests.kernels.kmers.reference import exact_counters

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")

METHODS = tuple(choices(KmerMethod))


def on_gpu(method, some, d, blocks=0):
    return choose(method, some.k, d, "cuda", blocks=blocks).load(some)


def on_cpu(some, d):
    return choose("pigeonhole", some.k, d, "cpu").load(some)


def usable(method, k):
    return k <= choices(KmerMethod)[method].longest_k.get("cuda", 32)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(("k", "d"), [(4, 3), (5, 0), (8, 2), (9, 3), (12, 2), (16, 3), (17, 2), (31, 1), (32, 3)])
@pytest.mark.parametrize("method", METHODS)
def test_hostile_sets(method, k, d, distinct):
    if not usable(method, k):
        pytest.skip("k is too long for the method")
    some = profile(sequence_set(hostile()), k, d, distinct=distinct)
    comparison = on_gpu(method, some, d)
    expected = exact(hostile(), k, d, distinct=distinct)
    assert np.array_equal(host(comparison.counters(None)), expected)
    assert np.array_equal(host(comparison.counters(some)), expected)
    assert np.array_equal(np.triu(host(comparison.counters(None, 3, 9)), 3), np.triu(expected[:, 3:9], 3))


def host(array):
    return array.get()


@pytest.mark.parametrize("blocks", range(3, 9))
@pytest.mark.parametrize("k", [8, 12, 20, 32])
def test_any_number_of_blocks(k, blocks):
    rng = np.random.default_rng(k)
    some = profile(sequence_set([random_text(rng, 60, "AACGT") for _ in range(40)]), k, 2)
    expected = on_cpu(some, 2).counters(None)
    assert np.array_equal(host(on_gpu("pigeonhole", some, 2, blocks).counters(None)), expected)


@pytest.mark.parametrize("k", [8, 12, 20])
@pytest.mark.parametrize("method", METHODS)
def test_many_sequences_against_the_cpu(method, k):
    if not usable(method, k):
        pytest.skip("k is too long for the method")
    rng = np.random.default_rng(k)
    texts = [random_text(rng, int(rng.integers(0, 501)), "ACGT"[: 2 + i % 3]) for i in range(600)]
    some = profile(sequence_set(texts), k, 2)
    expected = on_cpu(some, 2).counters(None)
    comparison = on_gpu(method, some, 2)
    for first, last in ((0, 600), (100, 350), (512, 600)):
        found = host(comparison.counters(None, first, last))
        assert np.array_equal(np.triu(found, first), np.triu(expected[:, first:last], first))
    assert np.array_equal(host(comparison.counters(some.part(20, 320))), expected[:, 20:320])


def test_columns_in_several_shards(monkeypatch):
    """More columns than a block has counters for."""
    from hpcvdj.kernels.kmers import join_cuda

    monkeypatch.setattr(join_cuda, "widest_shard", lambda d: 70)
    rng = np.random.default_rng(2)
    some = profile(sequence_set([random_text(rng, 80, "ACG") for _ in range(200)]), 10, 2)
    expected = on_cpu(some, 2).counters(None)
    for method in ("pigeonhole", "index"):
        comparison = on_gpu(method, some, 2)
        for first, last in ((0, 200), (33, 150), (140, 200)):
            found = host(comparison.counters(None, first, last))
            assert np.array_equal(np.triu(found, first), np.triu(expected[:, first:last], first))
        assert np.array_equal(host(comparison.counters(some)), expected)


def test_sorting_in_several_pieces(monkeypatch):
    from hpcvdj.kernels.kmers import join_cuda

    monkeypatch.setattr(join_cuda, "_SORT_ENTRIES", 1000)
    some = profile(sequence_set(hostile()), 8, 2)
    assert np.array_equal(host(on_gpu("index", some, 2).counters(None)), exact(hostile(), 8, 2))


def test_repeats_whose_neighbourhoods_pass_a_byte():
    texts = ["A" * 600, "A" * 300 + "C" * 300, "ACGT" * 20]
    some = profile(sequence_set(texts), 8, 2)
    assert np.array_equal(host(on_gpu("matrix", some, 2).counters(None)), exact_counters(texts, 8, 2))
    # Columns that fit, rows that do not.
    fitting = profile(sequence_set(["ACGTACGTAC", "AAAAAAAAAA"]), 8, 2)
    found = host(on_gpu("matrix", fitting, 2).counters(some))
    assert np.array_equal(found, on_cpu(fitting, 2).counters(some))


@pytest.mark.parametrize("method", METHODS)
def test_no_k_mers_at_all(method):
    for texts in (["ACG"], ["NNNNNNNN", ""], ["ACG", "TTT", "A"]):
        assert not host(on_gpu(method, profile(sequence_set(texts), 4, 2), 2).counters(None)).any()
