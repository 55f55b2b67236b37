"""Every method of comparing against the definition, on the CPU."""

import csv
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcvdj.errors import InputError, MachineError, choices
from hpcvdj.kernels.kmers import masks, methods
from hpcvdj.kernels.kmers.kmers import MAX_K
from hpcvdj.kernels.kmers.methods import KmerMethod, best_blocks, choose, shards_of
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from tests.commands import refused, run, succeeded
from tests.conftest import ROOT
from tests.kernels.kmers.cases import exact, hostile, random_text
from tests.kernels.kmers.reference import exact_counters, opposite_strand_counters, raw_counters

METHODS = tuple(choices(KmerMethod))
SETTINGS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def loaded(method, texts, k, d, *, distinct=False, blocks=0):
    some = profile(sequence_set(texts), k, d, distinct=distinct)
    return choose(method, k, d, "cpu", blocks=blocks).load(some), some


def usable(method, k):
    return k <= choices(KmerMethod)[method].longest_k.get("cpu", 32)


@pytest.mark.slow_others("method", "k")
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize(("k", "d"), [(4, 3), (5, 0), (8, 2), (11, 1), (12, 2), (16, 3), (17, 2), (31, 1), (32, 3)])
@pytest.mark.parametrize("method", METHODS)
def test_hostile_sets(method, k, d, distinct):
    if not usable(method, k):
        pytest.skip("k is too long for the method")
    comparison, sequences = loaded(method, hostile(), k, d, distinct=distinct)
    expected = exact(hostile(), k, d, distinct=distinct)
    assert np.array_equal(comparison.counters(None), expected)
    assert np.array_equal(comparison.counters(sequences), expected)
    # Some rows, each of which needs only the columns from its own on.
    counters = comparison.counters(None, 3, 9)
    assert np.array_equal(np.triu(counters, 3), np.triu(expected[:, 3:9], 3))


@SETTINGS
@given(data=st.data())
def test_random_sets(data):
    letters = data.draw(st.sampled_from(["ACGT", "ACGTN", "AC", "A"]))
    texts = data.draw(st.lists(st.text(letters, max_size=40), min_size=1, max_size=6))
    k, d = data.draw(st.integers(4, 12)), data.draw(st.integers(0, 3))
    method = data.draw(st.sampled_from(METHODS))
    if not usable(method, k):
        return
    blocks = data.draw(st.integers(d + 1, k)) if method == "pigeonhole" else 0
    comparison, _ = loaded(method, texts, k, d, blocks=blocks)
    assert np.array_equal(comparison.counters(None), exact_counters(texts, k, d))


@pytest.mark.parametrize("method", METHODS)
def test_opposite_strands(method):
    texts = hostile()
    comparison, sequences = loaded(method, texts, 8, 2)
    reverse = choose(method, 8, 2, "cpu").load(sequences.reverse_complement())
    expected = opposite_strand_counters(texts, 8, 2)
    assert np.array_equal(reverse.counters(sequences), expected)
    assert np.array_equal(expected, expected.transpose(0, 2, 1))
    assert np.array_equal(np.triu(reverse.counters(sequences, 0)), np.triu(expected))
    assert not np.array_equal(comparison.counters(None), expected)


@pytest.mark.parametrize("method", METHODS)
def test_more_sequences_than_a_group(method):
    """Groups of 512 and tiles of 64: two and a part of each; against a method that shares nothing with this one."""
    rng = np.random.default_rng(5)
    texts = [random_text(rng, int(rng.integers(0, 40)), "ACGT"[: 2 + i % 3]) for i in range(1100)]
    comparison, sequences = loaded(method, texts, 8, 2)
    other = "pigeonhole" if method == "matrix" else "matrix"
    expected = choose(other, 8, 2, "cpu").load(sequences).counters(None)
    for first, last in ((0, 1100), (512, 1024), (1024, 1100), (100, 700)):
        counters = comparison.counters(None, first, last)
        assert np.array_equal(np.triu(counters, first), np.triu(expected[:, first:last], first))
    assert np.array_equal(comparison.counters(sequences.part(37, 661)), expected[:, 37:661])


def test_raw_counters_are_those_of_the_definition():
    comparison, _ = loaded("index", hostile(), 8, 2)
    assert np.array_equal(masks.raw_from_exact(comparison.counters(None), 8), raw_counters(hostile(), 8, 2))


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


def test_windows_without_an_ambiguous_base():
    for texts in (hostile(), ["ACG", "NACGT", "ACGTACGTN"], ["", "AC"], []):
        sequences = profile(sequence_set(texts), 4, 0)
        assert sequences.windows.tolist() == sequences.kmers.totals.tolist()
        windows = [text[p : p + 4] for text in texts for p in range(len(text) - 3)]
        assert sequences.skipped == sum("N" in window for window in windows)


def test_wrong_parameters():
    with pytest.raises(InputError, match="method='matrix' has no kernel for backend='tpu'"):
        choose("matrix", 8, 2, "tpu")
    with pytest.raises(InputError, match=r"method='matrix' with backend='cpu' takes k up to 11, not 16"):
        choose("matrix", 16, 2, "cpu")
    with pytest.raises(InputError, match="method must be one of auto, matrix, pigeonhole, index"):
        choose("magic", 16, 2, "cpu")
    with pytest.raises(InputError, match=r"blocks=2: give a number from d \+ 1 = 3 to k = 16"):
        choose("pigeonhole", 16, 2, "cpu", blocks=2)
    with pytest.raises(InputError, match="k=33: a k-mer has 4 to 32 bases"):
        profile(sequence_set(["ACGT"]), 33, 2)
    with pytest.raises(InputError, match="d=4: the largest Hamming distance is 0 to 3"):
        profile(sequence_set(["ACGT"]), 8, 4)
    with pytest.raises(InputError, match="cut it into parts"):
        profile(sequence_set(["ACGT" * 20_000]), 8, 2).kmers.key.sum()


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_auto_chooses_what_the_backend_can_do(backend):
    for k in range(4, 33):
        for d in range(4):
            method = choose("auto", k, d, backend)
            assert k <= method.longest_k.get(backend, 32)
            assert method.blocks == (best_blocks(k, d) if method.name == "pigeonhole" else 0)
            assert d < best_blocks(k, d) <= k


def test_auto_is_what_was_fastest():
    """On the GPU of results/motifs_choice: at most a fifth slower than the fastest method and number of blocks."""
    times = {}
    for row in csv.DictReader((ROOT / "results" / "motifs_choice" / "h200.csv").read_text().splitlines()):
        seconds = float(row["load_s"]) + float(row["compare_s"])
        known = times.setdefault((int(row["k"]), int(row["d"])), {})
        method = row["method"], int(row["blocks"])
        known[method] = min(seconds, known.get(method, seconds))
    for (k, d), known in times.items():
        method = choose("auto", k, d, "cuda")
        assert known[method.name, method.blocks] <= 1.2 * min(known.values()), (k, d)


def test_raw_counters_wrap_without_a_warning():
    """In arithmetic modulo 2^32: 3 and 1 - 12 * 3, and back."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raw = np.array([3, 1], dtype=np.uint32)
        exact_of_raw = masks.exact_from_raw(raw, 12)
        assert exact_of_raw.tolist() == [3, (1 - 36) % 2**32]
        assert masks.raw_from_exact(exact_of_raw, 12).tolist() == [3, 1]


TOY = """
from hpcvdj.kernels.kmers import methods

class Toy(methods.Index):
    name = "toy"
    longest_k = {"cpu": 7}
"""


@pytest.mark.slow
def test_a_method_is_one_class(tmp_path):
    """A toy method is in the help, is checked, and works."""
    fasta = tmp_path / "some.fasta"
    fasta.write_text(">a\nACGTACGTAC\n>b\nACGTTTTTAC\n")

    def words(k, target):
        toy = "--backend", "cpu", "--method", "toy"
        return "motifs", "compare", fasta, "-k", k, *toy, "-o", tmp_path / target

    shown, compared, too_long = run(TOY, ("motifs", "compare", "--help-all"), words(6, "o.h5"), words(8, "p.h5"))
    assert "|toy" in succeeded(*shown)
    assert "method     toy on" in succeeded(*compared)
    assert "--method toy with --backend cpu takes k up to 7, not 8" in refused(*too_long)


def test_the_documentation_lists_the_methods():
    """With the longest k that each takes."""
    page = (ROOT / "docs" / "motifs.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", page.partition("| method | how |")[2], re.MULTILINE))
    for name, kind in choices(KmerMethod).items():
        assert rows[name] == (", ".join(f"{k} ({on})" for on, k in kind.longest_k.items()) or str(MAX_K))


def test_shards_have_entries_that_can_be_numbered(monkeypatch):
    """Indices of 32 bits wrapped beyond 2^32 entries."""
    starts = np.arange(0, 65537 * 400, 400)
    assert shards_of(starts, 10, 65536) == [0, 65536]
    edges = shards_of(starts, 350, 65536)
    assert (edges[0], edges[-1]) == (0, 65536)
    assert max(np.diff(starts[edges])) * 350 < 2**32
    assert shards_of(np.zeros(1, np.int64), 350, 65536) == []
    with pytest.raises(MachineError, match=r"4,999,999,950 k-mers in a table, and 4,294,967,295 can be numbered"):
        shards_of(np.array([0, 5, 5 * 10**8]), 10, 65536)
    monkeypatch.setattr(methods, "MOST_ENTRIES", 5)
    with pytest.raises(MachineError, match="can be numbered; compare fewer sequences"):
        loaded("index", ["ACGT" * 60, "GATTACA" * 40], 8, 1)
