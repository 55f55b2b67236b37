"""The comparison on the CPU against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.studies.hash_tables.encoding import HASHES
from tests.kernels.kmers.cases import ENCODINGS, exact, hostile, kmers, raw, upper
from tests.studies.hash_tables.cases import tables_exact, tables_raw

pytestmark = pytest.mark.slow

TEXTS = st.lists(st.text(st.sampled_from("AACGTN"), max_size=30), min_size=1, max_size=5).map(tuple)


@pytest.mark.parametrize("buckets", [1, 2, 7, 64])
@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_hash_and_bucket_count(encoding, name, buckets):
    some = kmers(hostile(), 8)
    found = tables_raw(some, 2, encoding=encoding, hash=name, buckets=buckets)
    assert np.array_equal(found, upper(raw(hostile(), 8, 2)))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("d", range(4))
def test_every_length_and_distance(encoding, d):
    for k in (4, 5, 12, 16, 20, 21, 32):
        if k <= ENCODINGS[encoding] and (d < 3 or k < 20):
            found = tables_exact(kmers(hostile(), k), d, encoding=encoding, buckets=8)
            assert np.array_equal(found, upper(exact(hostile(), k, d)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(texts=TEXTS, k=st.integers(4, 9), d=st.integers(0, 3), buckets=st.integers(1, 9))
def test_random_sets(texts, k, d, buckets):
    assert np.array_equal(tables_exact(kmers(texts, k), d, buckets=buckets), upper(exact(texts, k, d)))


def test_some_rows():
    texts = hostile()
    expected = upper(raw(texts, 6, 2))
    for rows in (range(3), range(5, 14), range(13, 14)):
        assert np.array_equal(tables_raw(kmers(texts, 6), 2, rows=rows), expected[:, rows.start : rows.stop])


def test_counts_past_16_and_32_bits():
    """One long poly-A: 70,000 occurrences of a k-mer; their products pass 2^32, and so do the sums."""
    key = np.array([0, 0, 1], np.uint64)
    some = Kmers(8, key, np.array([70_000, 3, 4_000_000_000], np.uint32), np.array([0, 1, 3]))
    found = tables_exact(some, 1, buckets=4)
    assert found.dtype == np.uint64
    assert found[0].tolist() == [[4_900_000_000, 210_000], [0, 9 + 16 * 10**18]]
    assert found[1, 0].tolist() == [0, 280_000_000_000_000]
    assert tables_exact(kmers(["ACGTACGT"], 4), 2).dtype == np.uint32


def test_what_cannot_be_compared():
    with pytest.raises(InputError, match="backend must be one of auto, cuda, cpu"):
        tables_raw(kmers(["ACGTACGT"], 4), 1, backend="tpu")
    with pytest.raises(InputError, match="encoding 2x32 takes up to 16"):
        tables_raw(kmers(["A" * 30], 20), 1, encoding="2x32")
