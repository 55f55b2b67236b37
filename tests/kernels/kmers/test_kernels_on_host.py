"""Every method's CUDA kernels and host code executed on the CPU, against the definition.

g++ compiles the kernels, a stand-in for cupy carries the rest (tests/kernels/host).  tests/gpu/test_motifs.py is for
what only a GPU shows.
"""

import importlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcvdj.errors import choices
from hpcvdj.kernels.kmers.methods import KmerMethod, choose
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from tests.kernels.host import fake_cupy
from tests.kernels.kmers import on_host
from tests.kernels.kmers.cases import exact, hostile, random_text
from tests.kernels.kmers.reference import opposite_strand_counters

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")

METHODS = tuple(choices(KmerMethod))
SETTINGS = settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def loaded(method, texts, k, d, *, distinct=False, blocks=0, wide=False):
    """The method with the columns; `wide` if they have counts that `matrix` leaves to another method."""
    sequences = profile(sequence_set(texts), k, d, distinct=distinct)
    comparison = choose(method, k, d, "cuda", blocks=blocks).load(sequences)
    assert method != "matrix" or (comparison._tables is None) == wide
    return comparison, sequences


def on_cpu(sequences, d, method="pigeonhole"):
    """The method on a CPU, loaded with a profile."""
    return choose(method, sequences.k, d, "cpu").load(sequences)


def usable(method, k):
    return k <= choices(KmerMethod)[method].longest_k.get("cuda", 32)


def require_all(comparison, sequences, expected, parts=()):
    """Both kinds of call, the latter for some runs of rows as well, of which only columns from each row's own on."""
    assert np.array_equal(comparison.counters(sequences).get(), expected)
    assert np.array_equal(comparison.counters(None).get(), expected)
    for first, last in parts:
        found = comparison.counters(None, first, last).get()
        assert np.array_equal(np.triu(found, first), np.triu(expected[:, first:last], first))
        assert np.array_equal(comparison.counters(sequences.part(first, last)).get(), expected[:, first:last])


@pytest.mark.slow
@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@pytest.mark.parametrize(("k", "d"), [(4, 3), (5, 0), (8, 2), (9, 1), (16, 1), (17, 1), (32, 1)])
@pytest.mark.parametrize("method", METHODS)
def test_hostile_sets_in_every_order(host, method, k, d, order):
    if not usable(method, k):
        pytest.skip("k is too long for the method")
    host.order = order
    comparison, sequences = loaded(method, hostile(), k, d)
    require_all(comparison, sequences, exact(hostile(), k, d), [(3, 9)])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "k"), [("pigeonhole", 20), ("pigeonhole", 31), ("matrix", 9), ("index", 7)])
def test_three_mismatches_and_distinct_k_mers(host, method, k):
    texts = hostile()
    expected = exact(texts, k, 3)
    comparison, _ = loaded(method, texts, k, 3)
    assert np.array_equal(comparison.counters(None).get(), expected)
    comparison, _ = loaded(method, texts, k, 3, distinct=True)
    once = exact(texts, k, 3, distinct=True)
    assert not np.array_equal(once, expected)
    assert np.array_equal(comparison.counters(None).get(), once)


@SETTINGS
@given(data=st.data())
@pytest.mark.slow
def test_random_sets(host, data):
    letters = data.draw(st.sampled_from(["ACGT", "ACGTN", "AC", "A"]))
    texts = tuple(data.draw(st.lists(st.text(letters, max_size=30), min_size=1, max_size=5)))
    k, d = data.draw(st.integers(4, 9)), data.draw(st.integers(0, 3))
    method = data.draw(st.sampled_from(METHODS))
    blocks = data.draw(st.integers(d + 1, k)) if method == "pigeonhole" else 0
    host.order = data.draw(st.sampled_from(list(fake_cupy.ORDERS)))
    comparison, sequences = loaded(method, texts, k, d, blocks=blocks)
    first = data.draw(st.integers(0, len(texts) - 1))
    require_all(comparison, sequences, exact(texts, k, d), [(first, data.draw(st.integers(first, len(texts))))])


@pytest.mark.parametrize("blocks", [3, 5, 8])
def test_any_number_of_blocks(host, blocks):
    comparison, _ = loaded("pigeonhole", hostile(), 12, 2, blocks=blocks)
    assert np.array_equal(comparison.counters(None).get(), exact(hostile(), 12, 2))


@pytest.mark.parametrize("method", METHODS)
def test_opposite_strands(host, method):
    _, sequences = loaded(method, hostile(), 8, 1)
    reverse = choose(method, 8, 1, "cuda").load(sequences.reverse_complement())
    expected = opposite_strand_counters(hostile(), 8, 1)
    assert np.array_equal(reverse.counters(sequences).get(), expected)
    assert np.array_equal(np.triu(reverse.counters(sequences, 0).get()), np.triu(expected))
    part = sequences.part(4, 11)
    assert np.array_equal(np.triu(reverse.counters(part, 4).get(), 4), np.triu(expected[:, 4:11], 4))


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", METHODS)
def test_many_sequences_in_small_pieces(host, method, monkeypatch):
    """Shards of the columns, pieces of the sort, panels of the product, blocks of one warp."""
    join, matrix = (importlib.import_module(f"hpcvdj.kernels.kmers.{name}_cuda") for name in ("join", "matrix"))
    for module in (join, matrix):
        monkeypatch.setattr(module, "_BLOCK", 32)
    monkeypatch.setattr(join, "widest_shard", lambda d: 14)
    monkeypatch.setattr(join, "_SORT_ENTRIES", 2000)
    monkeypatch.setattr(matrix, "_PANEL", 7)
    rng = np.random.default_rng(3)
    texts = tuple(random_text(rng, int(rng.integers(0, 60)), "ACGT"[: 2 + i % 3]) for i in range(40))
    comparison, sequences = loaded(method, texts, 7, 2)
    expected = on_cpu(sequences, 2).counters(None)
    require_all(comparison, sequences, expected, [(0, 40), (9, 31), (28, 40), (33, 33)])


@pytest.mark.parametrize("method", METHODS)
def test_sequences_longer_than_a_block_and_repeats_past_a_byte(host, method):
    texts = ("A" * 700, "A" * 300 + "C" * 300, "ACGT" * 20, random_text(np.random.default_rng(8), 330))
    comparison, sequences = loaded(method, texts, 8, 1, wide=True)
    assert comparison.counters(None).get()[0, 0, 0] == 693**2
    require_all(comparison, sequences, on_cpu(sequences, 1).counters(None))


def test_matrix_of_columns_that_fit_into_bytes_and_rows_that_do_not(host):
    comparison, sequences = loaded("matrix", ("ACGTACGTAC", "A" * 134), 8, 1)
    rows = profile(sequence_set(["A" * 135, "ACGT" * 20]), 8, 1)
    assert np.array_equal(comparison.counters(rows).get(), on_cpu(sequences, 1).counters(rows))
    loaded("matrix", ("A" * 135,), 8, 1, wide=True)
    loaded("matrix", ("AAAAAAAT" * 20,), 8, 1, wide=True)


@pytest.mark.parametrize("method", METHODS)
def test_one_sequence_none_and_no_k_mers(host, method):
    for texts in (("ACG",), ("NNNNNNNN", ""), ("ACG", "TTT", "A"), ("ACGTACGTAC",), ()):
        comparison, sequences = loaded(method, texts, 4, 2)
        expected = exact(texts, 4, 2)
        require_all(comparison, sequences, expected, [(0, 0), (len(texts), len(texts))])
        assert comparison.counters(profile(sequence_set(["ACGTA"]), 4, 2)).shape == (3, 1, len(texts))


@pytest.mark.slow
@pytest.mark.parametrize("barrier", [0, 1])
@pytest.mark.parametrize("method", ["pigeonhole", "matrix"])
def test_a_missing_barrier_shows(host, method, barrier):
    """Taken away, each changes the counters in some order of the threads."""
    texts = tuple(random_text(np.random.default_rng(7), 150, "ACG") for _ in range(5))
    _, sequences = loaded(method, texts, 5, 1)
    expected = on_cpu(sequences, 1).counters(None)
    changed = []
    for change in (fake_cupy.without_barrier(barrier), lambda code: code):
        # A module that is loaded keeps its kernels.
        on_host.forget()
        host.change = change
        same = []
        for order in fake_cupy.ORDERS:
            host.order = order
            comparison = choose(method, 5, 1, "cuda").load(sequences)
            narrow = getattr(comparison, "_tables", True) is not None
            same.append(narrow and np.array_equal(comparison.counters(None).get(), expected))
        changed.append(not all(same))
    assert changed == [True, False]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (threadIdx.x) place[threadIdx.x] = __ballot_sync(0xffffffffu, 1);", "wait for others that do not come"),
        ("if (threadIdx.x) __syncthreads(); else place[0] = __ballot_sync(0xffffffffu, 1);", "wait for others"),
        ("place[threadIdx.x] = __ballot_sync(0xffffu, 1);", "not for the thread itself"),
        (
            "unsigned half = 0xffffu << (threadIdx.x & 16); place[0] = __shfl_sync(half, 1, 31);",
            "a thread that is not in",
        ),
        ("__syncwarp(0xffffu << (threadIdx.x & 16)); __syncwarp(0xffffffffu);", "for different threads"),
        ("if (threadIdx.x) __syncwarp(0xfu << (threadIdx.x & 28));", "wait for others that do not come"),
        ("extern __shared__ unsigned some[]; some[threadIdx.x + 1] = 1;", "beyond the shared memory"),
        ("place[threadIdx.x + 1] = 1;", "beyond an array"),
        ("place[-1] = 1;", "beyond an array"),
    ],
)
def test_what_would_hang_or_overwrite_on_a_gpu_is_an_error(host, body, message):
    kernel = f'extern "C" __global__ void broken(unsigned *place) {{\n{body}\n}}'
    with pytest.raises(fake_cupy.CUDAError, match=message):
        fake_cupy.RawModule(kernel, ()).get_function("broken")(
            (1,), (64,), (fake_cupy.zeros(64, np.uint32),), shared_mem=256
        )


def test_arrays_do_not_mix_with_those_of_the_host(host):
    on_device, on_cpu = fake_cupy.asarray([1, 2]), np.array([1, 2])
    for mix in (lambda: on_device + on_cpu, lambda: on_cpu * on_device, lambda: np.asarray(on_device)):
        with pytest.raises(TypeError):
            mix()
