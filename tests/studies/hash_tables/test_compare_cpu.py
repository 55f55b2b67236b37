"""The comparison on the CPU against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.studies.hash_tables import TableOptions, TablesComparison
from hpcvdj.studies.hash_tables.compare_cpu import compare
from hpcvdj.studies.hash_tables.hashing import HASHES
from tests.kernels.kmers.cases import ENCODINGS, exact, hostile, kmers, raw, upper

TEXTS = st.lists(st.text(st.sampled_from("AACGTN"), max_size=30), min_size=1, max_size=5).map(tuple)


@pytest.mark.parametrize("buckets", [1, 2, 7, 64])
@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_hash_and_bucket_count(encoding, name, buckets):
    some = kmers(hostile(), 8)
    comparison = TablesComparison(some, 2, TableOptions(encoding, name, buckets=buckets, construction_buckets=64))
    assert np.array_equal(comparison.raw(some), raw(hostile(), 8, 2))
    assert np.array_equal(comparison.counters(some), exact(hostile(), 8, 2))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("d", range(4))
def test_every_length_and_distance(encoding, d):
    for k in (4, 5, 12, 16, 20, 21, 32):
        if k <= ENCODINGS[encoding] and (d < 3 or k < 20):
            some = kmers(hostile(), k)
            comparison = TablesComparison(some, d, TableOptions(encoding, buckets=8))
            assert np.array_equal(comparison.counters(some, 0), upper(exact(hostile(), k, d)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(texts=TEXTS, k=st.integers(4, 9), d=st.integers(0, 3), buckets=st.integers(1, 9))
def test_random_sets(texts, k, d, buckets):
    some = kmers(texts, k)
    comparison = TablesComparison(some, d, TableOptions(buckets=buckets))
    assert np.array_equal(comparison.counters(some), exact(texts, k, d))


def test_parts_of_the_set_and_other_sequences():
    texts = hostile()
    some = kmers(texts, 6)
    comparison = TablesComparison(some, 2)
    expected = raw(texts, 6, 2)
    for first, last in ((0, 3), (5, 14), (13, 14)):
        part = some.part(first, last)
        assert np.array_equal(comparison.raw(part, first), upper(expected[:, first:last], first))
        assert np.array_equal(comparison.raw(part), expected[:, first:last])
    half = TablesComparison(some.part(4, 9), 2)
    assert np.array_equal(half.raw(some), expected[:, :, 4:9])
    assert np.array_equal(
        compare(comparison.tables, range(2, 5), comparison.tables, range(4, 9)), expected[:, 2:5, 4:9]
    )


def test_counts_past_16_and_32_bits():
    """One long poly-A: 70,000 occurrences of a k-mer; their products pass 2^32, and so do the sums."""
    key = np.array([0, 0, 1], np.uint64)
    some = Kmers(8, key, np.array([70_000, 3, 4_000_000_000], np.uint32), np.array([0, 1, 3]))
    comparison = TablesComparison(some, 1, TableOptions(buckets=4))
    found = comparison.counters(some)
    assert found.dtype == np.uint64
    assert found[0].tolist() == [[4_900_000_000, 210_000], [210_000, 9 + 16 * 10**18]]
    assert found[1, 0].tolist() == [0, 280_000_000_000_000]
    assert TablesComparison(kmers(["ACGTACGT"], 4), 2).counters(kmers(["ACGTACGT"], 4)).dtype == np.uint32


def test_what_cannot_be_compared():
    some = kmers(["ACGTACGT"], 4)
    comparison = TablesComparison(some, 1)
    with pytest.raises(InputError, match="k-mers of 5 and of 4 bases"):
        comparison.raw(kmers(["ACGTACGT"], 5))
    with pytest.raises(InputError, match="rows 1 to 1 of 1 columns"):
        comparison.raw(some, 1)
    with pytest.raises(InputError, match="backend must be one of cuda, cpu"):
        TablesComparison(some, 1, backend="tpu")
    with pytest.raises(InputError, match="encoding 2x32 takes up to 16"):
        TablesComparison(kmers(["A" * 30], 20), 1, TableOptions("2x32"))
