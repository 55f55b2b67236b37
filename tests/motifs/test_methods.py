"""Every method of comparing against the definition, on the CPU."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.costs import Choice, estimates
from hpcvdj.kernels.kmers.join_cpu import Index
from hpcvdj.kernels.kmers.methods import LONGEST_K, load
from hpcvdj.motifs.reference import exact_counters, opposite_strand_counters, raw_counters
from hpcvdj.motifs.sequences import sequence_set
from tests.motifs.tables.cases import hostile, random_text

METHODS = ("pigeonhole", "index", "matrix", "bitslice", "tables")
SETTINGS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def loaded(method, texts, k, d, *, distinct=False, blocks=0):
    some = profile(sequence_set(texts), k, d, distinct=distinct)
    return load(Choice(method, 0.0, blocks), some, d, "cpu"), some


def usable(method, k):
    return k <= LONGEST_K.get(method, {}).get("cpu", 32)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(("k", "d"), [(4, 3), (5, 0), (8, 2), (11, 1), (12, 2), (16, 3), (17, 2), (31, 1), (32, 3)])
@pytest.mark.parametrize("method", METHODS)
def test_hostile_sets(method, k, d, distinct):
    if not usable(method, k):
        pytest.skip("k is too long for the method")
    comparison, some = loaded(method, hostile(), k, d, distinct=distinct)
    expected = exact_counters(hostile(), k, d, distinct=distinct)
    assert np.array_equal(comparison.counters(None), expected)
    assert np.array_equal(comparison.counters(some), expected)
    # A run of rows, of which only the columns from each one's own on count.
    found = comparison.counters(None, 3, 9)
    assert np.array_equal(np.triu(found, 3), np.triu(expected[:, 3:9], 3))


@SETTINGS
@given(data=st.data())
def test_random_sets(data):
    letters = data.draw(st.sampled_from(["ACGT", "ACGTN", "AC", "A"]))
    texts = data.draw(st.lists(st.text(letters, max_size=40), min_size=1, max_size=6))
    k, d = data.draw(st.integers(4, 12)), data.draw(st.integers(0, 3))
    method = data.draw(st.sampled_from(METHODS))
    if not usable(method, k):
        return
    blocks = data.draw(st.integers(d + 1, k)) if method == "pigeonhole" and d < k else 0
    comparison, _ = loaded(method, texts, k, d, blocks=blocks)
    assert np.array_equal(comparison.counters(None), exact_counters(texts, k, d))


@pytest.mark.parametrize("method", METHODS)
def test_opposite_strands(method):
    texts = hostile()
    comparison, some = loaded(method, texts, 8, 2)
    reverse = load(Choice(method, 0.0, 0), some.reverse_complement(), 2, "cpu")
    expected = opposite_strand_counters(texts, 8, 2)
    assert np.array_equal(reverse.counters(some), expected)
    assert np.array_equal(expected, expected.transpose(0, 2, 1))
    assert np.array_equal(np.triu(reverse.counters(some, 0)), np.triu(expected))
    assert not np.array_equal(comparison.counters(None), expected)


@pytest.mark.parametrize("method", METHODS)
def test_more_sequences_than_a_group(method):
    """Groups of 512 and tiles of 64: two and a part of each; against the method that shares nothing with the others."""
    rng = np.random.default_rng(5)
    texts = [random_text(rng, int(rng.integers(0, 40)), "ACGT"[: 2 + i % 3]) for i in range(1100)]
    comparison, some = loaded(method, texts, 8, 2)
    expected = load(Choice("bitslice", 0.0), some, 2, "cpu").counters(None)
    for first, last in ((0, 1100), (512, 1024), (1024, 1100), (100, 700)):
        found = comparison.counters(None, first, last)
        assert np.array_equal(np.triu(found, first), np.triu(expected[:, first:last], first))
    assert np.array_equal(comparison.counters(some.part(37, 661)), expected[:, 37:661])


def test_index_gives_the_raw_counters():
    comparison, _ = loaded("index", hostile(), 8, 2)
    assert isinstance(comparison, Index)
    assert np.array_equal(comparison.raw(None), raw_counters(hostile(), 8, 2))


def test_repeats_whose_neighbourhoods_pass_a_byte():
    """matrix counts in bytes as long as it can: 600 A have 593 k-mers of one kind."""
    texts = ["A" * 600, "A" * 300 + "C" * 300, "ACGT" * 20]
    for method in METHODS:
        comparison, _ = loaded(method, texts, 8, 2)
        assert comparison.counters(None)[0, 0, 0] == 593**2
        assert np.array_equal(comparison.counters(None), exact_counters(texts, 8, 2))


@pytest.mark.parametrize("method", METHODS)
def test_no_k_mers_at_all(method):
    for texts in (["ACG"], ["NNNNNNNN", ""], ["ACG", "TTT", "A"]):
        comparison, _ = loaded(method, texts, 4, 2)
        assert not comparison.counters(None).any()


def test_what_cannot_be():
    some = profile(sequence_set(["ACGTACGT"]), 16, 2)
    with pytest.raises(InputError, match="up to 11"):
        load(Choice("matrix", 0.0), some, 2, "cpu")
    with pytest.raises(InputError, match="no method"):
        load(Choice("magic", 0.0), some, 2, "cpu")
    with pytest.raises(InputError, match="--blocks 2"):
        load(Choice("pigeonhole", 0.0, 2), some, 2, "cpu")
    with pytest.raises(InputError, match="cut it into parts"):
        profile(sequence_set(["ACGT" * 20_000]), 8, 2).kmers.key.sum()


def test_auto_prefers_what_suits_k():
    rng = np.random.default_rng(1)
    texts = sequence_set([random_text(rng, 500) for _ in range(600)])
    best = {k: estimates(profile(texts, k, 2), 2, "cpu", 2)[0].method for k in (8, 12, 20)}
    assert best == {8: "matrix", 12: "pigeonhole", 20: "pigeonhole"}


def test_auto_sees_that_real_sequences_agree_more():
    rng = np.random.default_rng(1)
    even = profile(sequence_set([random_text(rng, 500) for _ in range(64)]), 12, 2)
    poor = profile(sequence_set([random_text(rng, 500, "AAAAAACGTT") for _ in range(64)]), 12, 2)
    seconds = [
        next(c.seconds for c in estimates(some, 2, "cpu", 1) if c.method == "pigeonhole" and c.blocks == 5)
        for some in (even, poor)
    ]
    assert seconds[1] > 1.2 * seconds[0]
