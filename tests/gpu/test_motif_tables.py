"""The thesis's four comparison kernels on a GPU against the definition, to the bit.  Skipped without a GPU.

python -m pytest tests/gpu/test_motif_tables.py
"""

import numpy as np
import pytest

from hpcvdj.errors import InputError, MachineError
from hpcvdj.kernels.backends import gpu_count
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.studies.hash_tables.construction import KERNELS
from tests.kernels.kmers.cases import ENCODINGS, exact, hostile, kmers, random_text, raw, upper
from tests.studies.hash_tables.cases import VARIANTS, tables_exact, tables_raw

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")


@pytest.mark.parametrize(("kernel", "variant"), VARIANTS)
def test_every_kernel_on_hostile_sets(kernel, variant):
    for k, d in ((4, 3), (8, 2), (16, 1)):
        some = kmers(hostile(), k)
        for buckets, threads in ((1, 32), (64, 128), (512, 256), (100, 1024)):
            settings = {"kernel": kernel, "buckets": buckets, "threads_per_block": threads, "chunk": 4, **variant}
            assert np.array_equal(tables_raw(some, d, "cuda", **settings), upper(raw(hostile(), k, d)))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_largest_k_of_every_encoding(kernel, encoding):
    k = ENCODINGS[encoding]
    some = kmers((*hostile(), "G" * 40), k)
    for name in ("djb2", "2umt", "xor"):
        found = tables_exact(some, 1, "cuda", kernel=kernel, encoding=encoding, hash=name)
        assert np.array_equal(found, upper(exact((*hostile(), "G" * 40), k, 1)))


@pytest.mark.parametrize("k", [8, 12, 20])
def test_many_sequences_against_the_cpu(k, monkeypatch):
    from hpcvdj.studies.hash_tables import compare_cuda

    monkeypatch.setattr(compare_cuda, "LAUNCH_BYTES", 1 << 15)
    rng = np.random.default_rng(k)
    some = kmers([random_text(rng, int(rng.integers(0, 501))) for _ in range(150)], k)
    expected = tables_raw(some, 2)
    for kernel in KERNELS:
        assert np.array_equal(tables_raw(some, 2, "cuda", kernel=kernel), expected)
        assert np.array_equal(tables_raw(some, 2, "cuda", range(40, 90), kernel=kernel), expected[:, 40:90])


@pytest.mark.parametrize(("kernel", "variant"), VARIANTS)
def test_sequences_that_fill_the_shared_memory(kernel, variant):
    rng = np.random.default_rng(9)
    some = kmers([random_text(rng, length) for length in (3_500, 500, 2_000, 0)], 10)
    for buckets in (64, 256):
        found = tables_raw(some, 1, "cuda", kernel=kernel, buckets=buckets, **variant)
        assert np.array_equal(found, tables_raw(some, 1, buckets=buckets))
    longer = kmers([random_text(rng, 120_000), "ACGTACGTAC"], 10)
    with pytest.raises(InputError, match="of a block's shared memory"):
        tables_raw(longer, 0, "cuda", kernel=kernel, **variant)


@pytest.mark.parametrize("kernel", KERNELS)
def test_counts_past_16_and_32_bits(kernel):
    key = np.array([0, 0, 1], np.uint64)
    some = Kmers(8, key, np.array([70_000, 3, 4_000_000_000], np.uint32), np.array([0, 1, 3]))
    found = tables_exact(some, 1, "cuda", kernel=kernel)
    assert found[0].tolist() == [[4_900_000_000, 210_000], [0, 9 + 16 * 10**18]]


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_sequence_and_an_empty_one(kernel):
    for texts in (("ACGTACGTAC",), ("",), ("NNNNNN", "AC")):
        found = tables_exact(kmers(texts, 4), 2, "cuda", kernel=kernel)
        assert np.array_equal(found, upper(exact(texts, 4, 2)))


def test_memory_that_does_not_suffice_is_one_line(monkeypatch):
    import cupy

    def none(*arguments):
        raise cupy.cuda.memory.OutOfMemoryError(1 << 40, 0, 0)

    some = kmers(hostile(), 8)
    monkeypatch.setattr(cupy, "zeros", none)
    with pytest.raises(MachineError, match=r"the GPU has too little memory .* GB free"):
        tables_raw(some, 1, "cuda")
