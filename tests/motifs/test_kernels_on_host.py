"""Every method's CUDA kernels and host code executed on the CPU, against the definition; a comparison from end to end.

g++ compiles the kernels, a stand-in for cupy carries the rest (tests/backends/host).  tests/gpu/test_motifs.py is for
what only a GPU shows.
"""

import importlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcvdj.cli import motifs_compare
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.costs import Choice
from hpcvdj.motifs.edges import Selection
from hpcvdj.kernels.kmers.methods import LONGEST_K, load
from hpcvdj.motifs.reference import opposite_strand_counters
from hpcvdj.motifs.sequences import sequence_set
from tests.backends.host import fake_cupy
from tests.motifs.tables import on_host
from tests.motifs.tables.cases import exact, hostile, random_text, raw
from tests.motifs.test_run import EXACT, TEXTS, compare, content

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")

METHODS = ("pigeonhole", "index", "matrix", "bitslice")
SETTINGS = settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A folder of compiled kernels."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def host(kernels, monkeypatch):
    """The CUDA backend on the host."""
    fake = on_host.begin(kernels, monkeypatch)
    backend = importlib.import_module("hpcvdj.kernels.cuda")
    monkeypatch.setattr(backend.CudaBackend, "uuid", "GPU-host")
    yield fake
    on_host.forget()


def loaded(method, texts, k, d, *, distinct=False, blocks=0, wide=False):
    """The method with the columns; `wide` if they have counts that `matrix` leaves to another method."""
    some = profile(sequence_set(texts), k, d, distinct=distinct)
    comparison = load(Choice(method, 0.0, blocks), some, d, "cuda")
    assert method != "matrix" or (comparison._tables is None) == wide
    return comparison, some


def usable(method, k):
    return k <= LONGEST_K.get(method, {}).get("cuda", 32)


def require_all(comparison, some, expected, parts=()):
    """Both kinds of call, the latter for some runs of rows as well, of which only columns from each row's own on."""
    assert np.array_equal(comparison.counters(some).get(), expected)
    assert np.array_equal(comparison.counters(None).get(), expected)
    for first, last in parts:
        found = comparison.counters(None, first, last).get()
        assert np.array_equal(np.triu(found, first), np.triu(expected[:, first:last], first))
        assert np.array_equal(comparison.counters(some.part(first, last)).get(), expected[:, first:last])


@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@pytest.mark.parametrize(("k", "d"), [(4, 3), (5, 0), (8, 2), (9, 1), (16, 1), (17, 1), (32, 1)])
@pytest.mark.parametrize("method", METHODS)
def test_hostile_sets_in_every_order(host, method, k, d, order):
    if not usable(method, k):
        pytest.skip("k is too long for the method")
    host.order = order
    comparison, some = loaded(method, hostile(), k, d)
    require_all(comparison, some, exact(hostile(), k, d), [(3, 9)])


@pytest.mark.parametrize(("method", "k"), [("pigeonhole", 20), ("bitslice", 31), ("matrix", 9), ("index", 7)])
def test_three_mismatches_and_distinct_k_mers(host, method, k):
    texts = hostile()
    expected = exact(texts, k, 3)
    comparison, some = loaded(method, texts, k, 3)
    assert np.array_equal(comparison.counters(None).get(), expected)
    comparison, some = loaded(method, texts, k, 3, distinct=True)
    cpu = load(Choice("bitslice", 0.0), some, 3, "cpu").counters(None)
    assert not np.array_equal(cpu, expected)
    assert np.array_equal(comparison.counters(None).get(), cpu)


@SETTINGS
@given(data=st.data())
def test_random_sets(host, data):
    letters = data.draw(st.sampled_from(["ACGT", "ACGTN", "AC", "A"]))
    texts = tuple(data.draw(st.lists(st.text(letters, max_size=30), min_size=1, max_size=5)))
    k, d = data.draw(st.integers(4, 9)), data.draw(st.integers(0, 3))
    method = data.draw(st.sampled_from(METHODS))
    blocks = data.draw(st.integers(d + 1, k)) if method == "pigeonhole" else 0
    host.order = data.draw(st.sampled_from(list(fake_cupy.ORDERS)))
    comparison, some = loaded(method, texts, k, d, blocks=blocks)
    first = data.draw(st.integers(0, len(texts) - 1))
    require_all(comparison, some, exact(texts, k, d), [(first, data.draw(st.integers(first, len(texts))))])


@pytest.mark.parametrize("blocks", [3, 5, 8])
def test_any_number_of_blocks(host, blocks):
    comparison, _ = loaded("pigeonhole", hostile(), 12, 2, blocks=blocks)
    assert np.array_equal(comparison.counters(None).get(), exact(hostile(), 12, 2))


@pytest.mark.parametrize("method", METHODS)
def test_opposite_strands(host, method):
    _, some = loaded(method, hostile(), 8, 1)
    reverse = load(Choice(method, 0.0, 0), some.reverse_complement(), 1, "cuda")
    expected = opposite_strand_counters(hostile(), 8, 1)
    assert np.array_equal(reverse.counters(some).get(), expected)
    assert np.array_equal(np.triu(reverse.counters(some, 0).get()), np.triu(expected))
    part = some.part(4, 11)
    assert np.array_equal(np.triu(reverse.counters(part, 4).get(), 4), np.triu(expected[:, 4:11], 4))


def test_index_gives_the_raw_counters(host):
    comparison, _ = loaded("index", hostile(), 8, 2)
    assert np.array_equal(comparison.raw(None).get(), raw(hostile(), 8, 2))


@pytest.mark.parametrize("method", METHODS)
def test_many_sequences_in_small_pieces(host, method, monkeypatch):
    """Shards of the columns, pieces of the sort, panels of the product, launches of some rows; blocks of one warp."""
    cuda = {name: importlib.import_module(f"hpcvdj.motifs.cuda.{name}") for name in ("join", "matrix", "bitslice")}
    for module in cuda.values():
        monkeypatch.setattr(module, "_BLOCK", 32)
    monkeypatch.setattr(cuda["join"], "widest_shard", lambda d: 14)
    monkeypatch.setattr(cuda["join"], "_SORT_ENTRIES", 2000)
    monkeypatch.setattr(cuda["matrix"], "_PANEL", 7)
    monkeypatch.setattr(cuda["bitslice"], "_MOST_ROWS", 11)
    rng = np.random.default_rng(3)
    texts = tuple(random_text(rng, int(rng.integers(0, 60)), "ACGT"[: 2 + i % 3]) for i in range(40))
    comparison, some = loaded(method, texts, 7, 2)
    expected = load(Choice("pigeonhole", 0.0, 4), some, 2, "cpu").counters(None)
    require_all(comparison, some, expected, [(0, 40), (9, 31), (28, 40), (33, 33)])


@pytest.mark.parametrize("method", METHODS)
def test_sequences_longer_than_a_block_and_repeats_past_a_byte(host, method, monkeypatch):
    monkeypatch.setattr(importlib.import_module("hpcvdj.kernels.kmers.bitslice_cuda"), "_BLOCK", 32)
    texts = ("A" * 700, "A" * 300 + "C" * 300, "ACGT" * 20, random_text(np.random.default_rng(8), 330))
    comparison, some = loaded(method, texts, 8, 1, wide=True)
    assert comparison.counters(None).get()[0, 0, 0] == 693**2
    require_all(comparison, some, load(Choice("pigeonhole", 0.0, 3), some, 1, "cpu").counters(None))


def test_matrix_of_columns_that_fit_into_bytes_and_rows_that_do_not(host):
    comparison, some = loaded("matrix", ("ACGTACGTAC", "A" * 134), 8, 1)
    rows = profile(sequence_set(["A" * 135, "ACGT" * 20]), 8, 1)
    assert np.array_equal(comparison.counters(rows).get(), load(Choice("bitslice", 0.0), some, 1, "cpu").counters(rows))
    loaded("matrix", ("A" * 135,), 8, 1, wide=True)
    loaded("matrix", ("AAAAAAAT" * 20,), 8, 1, wide=True)


@pytest.mark.parametrize("method", METHODS)
def test_one_sequence_none_and_no_k_mers(host, method):
    for texts in (("ACG",), ("NNNNNNNN", ""), ("ACG", "TTT", "A"), ("ACGTACGTAC",), ()):
        comparison, some = loaded(method, texts, 4, 2)
        expected = exact(texts, 4, 2)
        require_all(comparison, some, expected, [(0, 0), (len(texts), len(texts))])
        assert comparison.counters(profile(sequence_set(["ACGTA"]), 4, 2)).shape == (3, 1, len(texts))


KERNELS = {"join": "pigeonhole", "matrix": "matrix", "bitslice": "bitslice"}


@pytest.mark.parametrize("barrier", [0, 1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_missing_barrier_shows(host, kernel, barrier):
    """Taken away, each changes the counters in some order of the threads."""
    texts = tuple(random_text(np.random.default_rng(7), 150, "ACG") for _ in range(5))
    _, some = loaded(KERNELS[kernel], texts, 5, 1)
    expected = load(Choice("pigeonhole", 0.0, 3), some, 1, "cpu").counters(None)
    changed = []
    for change in (fake_cupy.without_barrier(barrier), lambda code: code):
        # A module that is loaded keeps its kernels.
        on_host.forget()
        host.change = change
        same = []
        for order in fake_cupy.ORDERS:
            host.order = order
            comparison = load(Choice(KERNELS[kernel], 0.0, 0), some, 1, "cuda")
            narrow = getattr(comparison, "_tables", True) is not None
            same.append(narrow and np.array_equal(comparison.counters(None).get(), expected))
        changed.append(not all(same))
    assert changed == [True, False]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (threadIdx.x) place[threadIdx.x] = __ballot_sync(0xffffffffu, 1);", "wait for others that do not come"),
        ("if (threadIdx.x) __syncthreads(); else place[0] = __ballot_sync(0xffffffffu, 1);", "wait for others"),
        ("place[threadIdx.x] = __ballot_sync(0xffffu, 1);", "not for all its threads"),
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


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "some.fasta"
    path.write_text("".join(f">s{i}\n{text}\n" for i, text in enumerate(TEXTS)))
    return path


@pytest.mark.parametrize("method", ["auto", *METHODS, "tables"])
def test_the_command_gives_all_pairs(host, fasta, tmp_path, run, method):
    out = tmp_path / "o.h5"
    options = ("-k", 6, "-d", 2, "--strands", "both", "--backend", "cuda", "--method", method)
    run(motifs_compare, fasta, *options, "-o", out)
    assert np.array_equal(content(out), EXACT)


@pytest.mark.parametrize("options", [("--min-score", 0.2), ("--top", 2), ("--min-score", 0.05, "--top", 3)])
@pytest.mark.parametrize("score", ["weights", "cosine", "background"])
def test_the_command_gives_the_edges_of_the_cpu(host, fasta, tmp_path, run, score, options):
    found = []
    for backend in ("cuda", "cpu"):
        out = tmp_path / f"{backend}.h5"
        chosen = ("-k", 6, "-d", 2, "--strands", "both", "--score", score, "--method", "pigeonhole", *options)
        run(motifs_compare, fasta, *chosen, "--backend", backend, "-o", out)
        found.append(content(out))
    assert found[0] == found[1]
    assert len(found[0]) > 10


@pytest.mark.parametrize("layout", [(7, 3), (100, 4)])
@pytest.mark.parametrize("selection", [None, Selection(0.2, None), Selection(None, 2)])
def test_tiles_on_a_gpu_and_on_the_cpu(host, fasta, tmp_path, monkeypatch, selection, layout):
    found = []
    for backend in ("cuda", "cpu"):
        out = tmp_path / f"{backend}.h5"
        options = {"layout": layout, "monkeypatch": monkeypatch, "strands": 2, "selection": selection}
        summary = compare(fasta, out, **options, backend=backend, method="bitslice", score="cosine")
        found.append((content(out), summary.pairs))
    assert found[0][1] == found[1][1]
    if selection is None:
        assert np.array_equal(found[0][0], EXACT)
    else:
        assert sorted(found[0][0]) == sorted(found[1][0])
