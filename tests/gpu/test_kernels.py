"""The CUDA kernels against the CPU reference, to the bit.  Skipped without a GPU.

python -m pytest tests/gpu
"""

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcvdj.counting.verify import reference
from hpcvdj.kernels.backends import gpu_count
from hpcvdj.kernels.pathways.forms import padded_codes
from hpcvdj.recombination.alphabet import unpack
from hpcvdj.recombination.germline import from_sequences, read_germline
from hpcvdj.recombination.repertoire import PAPER_LONGEST_CDR3, Problem
from tests.conftest import SMALL, TABLES
from tests.problems import METHODS, cases, count_with, repertoire_of_file, repertoire_of_rows, sample

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")


def gpu(problem, method, **options):
    return count_with(problem, method, backend="cuda", **options)


@pytest.mark.parametrize("kind", ["paper", "distinct"])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(case=cases(), ranks=st.integers(1, 8))
def test_random_and_hostile_problems(method, kind, case, ranks):
    problem = case.problem(3, kind)
    assert gpu(problem, method, ranks=ranks).tolist() == reference(problem).tolist()


@pytest.mark.parametrize("threads", [32, 64, 96, 128, 256, 512, 1024])
@pytest.mark.parametrize("method", METHODS)
def test_block_sizes(paper_germline, method, threads):
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    problem = Problem(sample(whole, 40), paper_germline, 4)
    expected = reference(problem)
    assert gpu(problem, method, threads_per_block=threads).tolist() == expected.tolist()
    assert gpu(problem, method, threads_per_block=threads, ranks=3).tolist() == expected.tolist()


def random_rows(germline, count, longest, seed):
    """Rows of random pairs: V, n-nucleotides, D, n-nucleotides, J, cut to every length up to `longest`."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        v, j = rng.choice(germline.of("V")), rng.choice(germline.of("J"))
        genes = germline.d_segments(v.locus)
        d = rng.choice(genes).sequence if genes else ""
        n = ["".join(rng.choice(list("ACGT"), rng.integers(6))) for _ in range(2)]
        text = v.sequence[: rng.integers(len(v.sequence) + 1)] + n[0] + d[rng.integers(len(d) + 1) :] + n[1]
        text += j.sequence[rng.integers(len(j.sequence) + 1) :]
        fill = "".join(rng.choice(list("ACGT"), longest))
        rows.append((v.allele, j.allele, (text + fill)[: k % (longest + 1)] if k % 2 else text[:longest]))
    return rows


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_locus_and_every_length(path):
    germline = read_germline(path)
    rows = random_rows(germline, 260, 128, 7)
    problem = Problem(repertoire_of_rows(germline, rows), germline, 128)
    assert np.array_equal(gpu(problem, "direct"), count_with(problem, "direct"))
    few = Problem(repertoire_of_rows(germline, rows[:40]), germline, 10, "distinct")
    assert np.array_equal(gpu(few, "direct"), reference(few))
    short = repertoire_of_rows(germline, random_rows(germline, 122, 60, 8), longest=PAPER_LONGEST_CDR3)
    for max_n in (0, 3):
        problem = Problem(short, germline, max_n)
        expected = count_with(problem, "direct")
        for method in ("bitwise", "baseline"):
            assert np.array_equal(gpu(problem, method), expected)


def test_all_short_n_lengths_on_the_small_example(paper_germline):
    problem = Problem(repertoire_of_file(SMALL, paper_germline, longest=60), paper_germline, 6)
    expected = count_with(problem, "direct")
    for method in METHODS:
        assert np.array_equal(gpu(problem, method, threads_per_block=64), expected)


def test_the_longest_n_lengths_on_a_sample(paper_germline):
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    problem = Problem(sample(whole, 24, 5), paper_germline, 10)
    expected = reference(problem)
    for method in METHODS:
        assert np.array_equal(gpu(problem, method, threads_per_block=128, ranks=5), expected)


def test_repeats_count_past_32_bits_of_work():
    """Poly-G with poly-G segments: every form matches everywhere."""
    germline = from_sequences(["G" * 30], ["G" * 40], ["G" * 30], max_p=4)
    rows = [("V1", "J1", "G" * k) for k in range(129)]
    problem = Problem(repertoire_of_rows(germline, rows), germline, 128)
    assert np.array_equal(gpu(problem, "direct"), count_with(problem, "direct"))


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_repertoire(method, paper_germline):
    assert gpu(Problem(repertoire_of_rows(paper_germline, []), paper_germline, 3), method).shape == (0, 4)


def test_short_memory_shrinks_the_batch(paper_germline, monkeypatch):
    import cupy

    from hpcvdj.kernels.pathways.direct_cuda import DirectKernel

    problem = Problem(repertoire_of_file(SMALL, paper_germline), paper_germline, 5)
    right = DirectKernel._count

    def scarce(self, first, last, counters):
        if last - first > 100:
            raise cupy.cuda.memory.OutOfMemoryError(1, 1)
        right(self, first, last, counters)

    monkeypatch.setattr(DirectKernel, "_count", scarce)
    monkeypatch.setattr("hpcvdj.kernels.device.in_batches.__defaults__", (10,))
    assert np.array_equal(gpu(problem, "direct"), count_with(problem, "direct"))


def test_memory_that_never_suffices_is_one_line(paper_germline, monkeypatch):
    import cupy

    from hpcvdj.errors import MachineError
    from hpcvdj.kernels.pathways.enumerating_cuda import BitwiseKernel

    def none(self):
        raise cupy.cuda.memory.OutOfMemoryError(1 << 40, 0)

    monkeypatch.setattr(BitwiseKernel, "_load_pairs", none)
    with pytest.raises(MachineError, match=r"the GPU has too little memory .* GB free"):
        gpu(Problem(repertoire_of_file(SMALL, paper_germline, longest=60), paper_germline, 1), "bitwise")


def test_what_lies_on_the_gpu(paper_germline):
    """Table III: 64 and 16 bytes a form and sequence, 60 a D form of the baseline."""
    from hpcvdj.kernels.backends import open_backend
    from hpcvdj.studies.memory import memory_rows

    problem = Problem(repertoire_of_file(SMALL, paper_germline, longest=60), paper_germline, 0)
    for row in memory_rows(problem, open_backend("cuda")):
        assert row.baseline_uploaded == (60 if row.kind == "D" else 64) * row.items
        assert row.bitwise_uploaded == 16 * row.items


@pytest.mark.parametrize("method", METHODS)
def test_page_locked_memory_is_used_again(paper_germline, method):
    """However many repertoires are counted one after another, as slices of a large one are."""
    import cupy

    pool = cupy.get_default_pinned_memory_pool()
    gc.collect()
    whole = repertoire_of_file(SMALL, paper_germline, longest=60)
    left = []
    for count in range(33, 65):
        gpu(Problem(sample(whole, count), paper_germline, 0), method)
        # A kernel is part of a circle, so its blocks are free when the collector has seen it, not before.
        gc.collect()
        left.append(pool.n_free_blocks())
    assert left[-1] == left[4]


def test_ranks_that_share_a_gpu_are_told(paper_germline, caplog):
    from hpcvdj.errors import MachineError
    from hpcvdj.runs.ranks import World
    from hpcvdj.runs.run import Run

    world = World()
    world.gather = lambda uuid: [uuid, uuid, "GPU-other"]
    run = Run(world)
    run.bind("cuda")
    assert "ranks 0, 1 share one GPU (GPU-" in caplog.text
    with pytest.raises(MachineError, match="ranks 0, 1 share one GPU"):
        run.bind("cuda", strict=True)
    with pytest.raises(MachineError, match="ranks 0, 1 share one GPU"):
        run.bind("cuda", strict=True, sharing_pays=True)
    caplog.clear()
    run.bind("cuda", sharing_pays=True)
    assert not caplog.text


def test_unpacked_and_packed_sequences_are_the_same(paper_germline):
    """The baseline's bytes are the bitwise method's words."""
    repertoire = repertoire_of_file(SMALL, paper_germline, longest=60)
    raw = padded_codes(repertoire)
    for row in range(0, len(repertoire), 50):
        length = int(repertoire.lengths[row])
        assert raw[row, :length].tolist() == unpack(repertoire.words[row], length).tolist()
        assert not raw[row, length:].any()
