"""The four kernels executed on the CPU, against the definition."""

import importlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcvdj.errors import InputError, MachineError
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.studies.hash_tables.construction import KERNELS
from tests.kernels.host import fake_cupy
from tests.kernels.kmers.cases import exact, hostile, kmers, random_text, raw, upper
from tests.studies.hash_tables.cases import VARIANTS, tables_exact, tables_raw

pytestmark = pytest.mark.slow

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")


def compared(some, d, count=tables_exact, **options):
    return count(some, d, "cuda", **{"threads_per_block": 64, "buckets": 8, **options})


@pytest.mark.slow_others("kernel")
@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@pytest.mark.parametrize(("kernel", "variant"), VARIANTS)
def test_every_kernel_in_every_order(host, kernel, variant, order):
    host.order = order
    found = compared(kmers(hostile(), 8), 2, tables_raw, kernel=kernel, **variant)
    assert np.array_equal(found, upper(raw(hostile(), 8, 2)))


@pytest.mark.parametrize("buckets", [1, 5, 33, 200])
@pytest.mark.parametrize("kernel", KERNELS)
def test_bucket_counts_and_hashes(host, kernel, buckets):
    some = kmers(hostile(), 7)
    for name in ("djb2", "2umt"):
        found = compared(some, 1, kernel=kernel, hash=name, buckets=buckets)
        assert np.array_equal(found, upper(exact(hostile(), 7, 1)))


@pytest.mark.slow_others("kernel")
@pytest.mark.parametrize(("encoding", "k", "d"), [("3x64", 21, 1), ("2x32", 16, 1), ("2x64", 32, 1), ("2x64", 6, 3)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_encodings(host, kernel, encoding, k, d):
    found = compared(kmers(hostile(), k), d, kernel=kernel, encoding=encoding)
    assert np.array_equal(found, upper(exact(hostile(), k, d)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [32, 96, 128])
@pytest.mark.parametrize("kernel", KERNELS)
def test_block_sizes(host, kernel, threads):
    found = compared(kmers(hostile(), 8), 2, kernel=kernel, threads_per_block=threads, chunk=3)
    assert np.array_equal(found, upper(exact(hostile(), 8, 2)))


def test_more_rows_than_share_columns(host):
    """Thirty-four rows: two groups of sixteen and a rest."""
    rng = np.random.default_rng(4)
    texts = tuple(random_text(rng, 12) for _ in range(34))
    found = compared(kmers(texts, 4), 1, threads_per_block=32)
    assert np.array_equal(found, upper(exact(texts, 4, 1)))


def test_a_kmer_of_ones(host):
    """Poly-G fills its word with ones where k is the largest."""
    texts = ("G" * 20, "G" * 16, "C" * 17, "ACGTTGCAACGTACGTGACCATTA", "G" * 15 + "A" + "G" * 16)
    for buckets in (1, 40):
        found = compared(kmers(texts, 16), 1, buckets=buckets, encoding="2x32")
        assert np.array_equal(found, upper(exact(texts, 16, 1)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_counts_past_16_and_32_bits(host, kernel):
    key = np.array([0, 0, 1], np.uint64)
    some = Kmers(8, key, np.array([70_000, 3, 4_000_000_000], np.uint32), np.array([0, 1, 3]))
    assert compared(some, 1, kernel=kernel)[0].tolist() == [[4_900_000_000, 210_000], [0, 9 + 16 * 10**18]]


@pytest.mark.parametrize("kernel", KERNELS)
def test_some_rows_and_small_launches(host, kernel, monkeypatch):
    cuda = importlib.import_module("hpcvdj.studies.hash_tables.compare_cuda")
    monkeypatch.setattr(cuda, "LAUNCH_BYTES", 3 * 14 * 4 * 2)
    some, expected = kmers(hostile(), 6), upper(raw(hostile(), 6, 2))
    for rows in (range(5), range(7, 14), range(13, 14), range(14)):
        found = compared(some, 2, tables_raw, rows=rows, kernel=kernel)
        assert np.array_equal(found, expected[:, rows.start : rows.stop])


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_sequence_and_none(host, kernel):
    for texts in (("ACGTACGTAC",), ("",), ("NNNNNN", "AC")):
        found = compared(kmers(texts, 4), 2, kernel=kernel)
        assert np.array_equal(found, upper(exact(texts, 4, 2)))
    none = kmers(("ACGTACGTAC",), 4).part(0, 0)
    assert compared(none, 1, kernel=kernel).shape == (2, 0, 0)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(st.sampled_from("AACGTN"), max_size=30), min_size=1, max_size=5).map(tuple),
    kernel=st.sampled_from(KERNELS),
    d=st.integers(0, 3),
    k=st.integers(4, 7),
    order=st.sampled_from(list(fake_cupy.ORDERS)),
)
def test_random_sets(host, texts, kernel, d, k, order):
    host.order = order
    assert np.array_equal(compared(kmers(texts, k), d, kernel=kernel), upper(exact(texts, k, d)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_too_little_shared_memory_is_one_line(host, kernel):
    """The stand-in has 100,000 bytes for a block."""
    rng = np.random.default_rng(9)
    for length, fits in ((7_000, True), (40_000, False)):
        texts = (random_text(rng, length), "ACGTACGTAC")
        sequences = kmers(texts, 10)
        if fits:
            assert np.array_equal(compared(sequences, 0, kernel=kernel, chunk=2), tables_exact(sequences, 0))
            continue
        with pytest.raises(InputError, match="of a block's shared memory, and the GPU has 100,000"):
            compared(sequences, 0, kernel=kernel, chunk=2)


def test_memory_that_does_not_suffice_is_one_line(host, monkeypatch):
    import cupy

    def none(*arguments):
        raise fake_cupy.OutOfMemoryError("1 TB")

    for allocation in ("zeros", "empty"):
        monkeypatch.setattr(cupy, allocation, none)
        with pytest.raises(MachineError, match="the GPU has too little memory"):
            compared(kmers(hostile(), 8), 1)


BARRIERS = {"sequential-bucket": range(4), "warp-to-bucket": range(4), "thread-to-bucket": range(4)}
BARRIERS["thread-to-pair"] = range(4, 6)

UNSEEN = {kernel: [3] for kernel in KERNELS[:3]}
"""Only the sums of sequences without a k-mer reach the fourth with no barrier before it, and those are all 0."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_missing_barrier_shows(host, kernel):
    """Taken away one by one, each changes the counters in some order of the threads."""
    rng = np.random.default_rng(7)
    texts = tuple(random_text(rng, length) for length in (150, 90, 200, 120))
    some = kmers(texts, 5)
    expected = upper(exact(texts, 5, 1))
    unseen = []
    for barrier in BARRIERS[kernel]:
        host.change = fake_cupy.without_barrier(barrier)
        same = []
        for order in fake_cupy.ORDERS:
            host.order = order
            same.append(np.array_equal(compared(some, 1, kernel=kernel, buckets=70), expected))
        if all(same):
            unseen.append(barrier)
    assert unseen == UNSEEN.get(kernel, [])
