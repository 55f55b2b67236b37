"""Independent programs, where they are installed: FastSK's kernel is the cosine of R_m, kmer-db counts D_0 of distinct
k-mers.  CONTRIBUTING.md says how to install them.
"""

import shutil
import subprocess
from functools import cache
from importlib import metadata
from math import comb

import numpy as np
import pytest

from hpcvdj.cli import motifs
from hpcvdj.errors import choices
from hpcvdj.kernels.kmers.masks import raw_from_exact
from hpcvdj.kernels.kmers.methods import KmerMethod, choose
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.kernels.kmers.sequences import sequence_set
from hpcvdj.motifs.scores import Scoring, make_score, terms_of
from hpcvdj.motifs.sequences import read_sequences
from tests.conftest import SMALL
from tests.kernels.kmers.cases import hostile, random_text

METHODS = tuple(choices(KmerMethod))


def loaded(method, some, d):
    """The method loaded with a profile."""
    if some.k > choices(KmerMethod)[method].longest_k.get("cpu", 32):
        pytest.skip("k is too long for the method")
    return choose(method, some.k, d, "cpu").load(some)


def raw(counters, k, m):
    """R_m, float64 [rows, columns]."""
    return raw_from_exact(counters.astype(np.uint64), k)[m].astype(np.float64)


# FastSK


@pytest.fixture(scope="module")
def kernel():
    """FastSK's exact kernel of `columns` with themselves, or of `rows` with `columns`; what we call k it calls g.

    What ends or hangs its process is kept from it: letters that are not 0, 1, … without a gap, sequences shorter than
    g, fewer k-mers in all than g - m, one sequence with two threads, g well above 20.  An N would be one more letter.
    """
    fastsk = pytest.importorskip("fastsk")

    @cache
    def kernel_of(columns, k, m, rows=(), threads=2):
        codes = {letter: code for code, letter in enumerate(sorted(set("".join(columns + rows))))}
        train, test = ([[codes[letter] for letter in text] for text in texts] for texts in (columns, rows))
        made = fastsk.FastSK(g=k, m=m, t=threads)
        if not rows:
            made.compute_train(train)
            return np.array(made.get_train_kernel())
        made.compute_kernel(train, test)
        return np.array(made.get_test_kernel())

    return kernel_of


def fit_for_fastsk(k):
    """Hostile and random sequences without N and none shorter than k."""
    rng = np.random.default_rng(k)
    some = [random_text(rng, int(rng.integers(k, 90)), letters) for letters in ("ACGT", "ACGT", "AT", "AAAC") * 5]
    repeats = ["A" * 300, "A" * 150 + "C" * 150, "ACGT" * 40, "T" * k]
    return tuple(text for text in (*hostile(), *repeats, *some) if len(text) >= k and "N" not in text)


def cosine(found, own_rows, own_columns):
    """The root of a product as FastSK takes it, so that the last bit is the same."""
    return found / np.sqrt(own_rows[:, None] * own_columns[None, :])


@pytest.mark.parametrize(("k", "m"), [(4, 3), (5, 0), (8, 2), (11, 1), (12, 2), (12, 3), (16, 3), (20, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_fastsk_gives_the_cosine_of_the_raw_counters(kernel, method, k, m):
    texts = fit_for_fastsk(k)
    found = raw(loaded(method, profile(sequence_set(texts), k, m), m).counters(None), k, m)
    expected = cosine(found, found.diagonal(), found.diagonal())
    assert np.array_equal(kernel(texts, k, m), expected)
    assert np.array_equal(kernel(texts, k, m, threads=1), expected)


@pytest.mark.parametrize("method", METHODS)
def test_fastsk_with_rows_of_their_own(kernel, method):
    k, m = 8, 2
    texts = fit_for_fastsk(k)
    every = profile(sequence_set(texts), k, m)
    own = raw(loaded("matrix", every, m).counters(None), k, m).diagonal()
    rows, columns = texts[::3], texts[1::3]
    found = loaded(method, profile(sequence_set(columns), k, m), m).counters(profile(sequence_set(rows), k, m))
    expected = cosine(raw(found, k, m), own[::3], own[1::3])
    assert np.array_equal(kernel(columns, k, m, rows), expected)


ROUNDING = 6.5 * 2**-53
"""A score divides by two roots (four roundings), FastSK by the root of a product (two and a half); 4.5e-16 is the most
that was measured.
"""


@pytest.mark.parametrize(("k", "m"), [(5, 0), (8, 2), (12, 2), (16, 3)])
def test_scores_are_fastsk_s_with_weights_that_make_r(kernel, k, m):
    texts = fit_for_fastsk(k)
    some = profile(sequence_set(texts), k, m)
    terms = terms_of(some, m, np.full(4, 0.25))
    weights = [float(comb(k - h, m - h)) for h in range(m + 1)]
    scoring = Scoring(make_score("cosine", weights, k, m), [terms])
    found = scoring.rectangle(loaded("pigeonhole", some, m).counters(None), 0, 0, 0)
    np.testing.assert_allclose(found, kernel(texts, k, m), rtol=ROUNDING, atol=0)


def test_the_commands_give_fastsk_s_kernel(kernel, run, tmp_path):
    """The example in docs/motifs.md."""
    sparse = pytest.importorskip("scipy.sparse")
    result, matrix = tmp_path / "small.h5", tmp_path / "small.npz"
    run(motifs.compare, SMALL, "-k", 12, "-d", 2, "--score", "cosine", "--weights", "66,11,1", "-o", result)
    run(motifs.export, result, "--min-score", 1e-9, "-o", matrix)
    junctions = read_sequences(SMALL)
    expected = kernel(tuple(junctions.text(i) for i in range(len(junctions))), 12, 2).copy()
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(sparse.load_npz(matrix).toarray(), expected, rtol=ROUNDING, atol=0)


# kmer-db


@pytest.fixture(scope="module")
def common_kmers(tmp_path_factory):
    """kmer-db's numbers of common k-mers of all pairs, and on the diagonal of each sequence's own."""
    try:
        carried = [file.locate() for file in metadata.files("vclust") or () if file.name == "kmer-db"]
    except metadata.PackageNotFoundError:
        carried = []
    program = next(iter(carried), None) or shutil.which("kmer-db")
    if program is None:
        pytest.skip("kmer-db is not installed")
    folder = tmp_path_factory.mktemp("kmer-db")

    def numbers(texts, k):
        (folder / "some.fasta").write_text("".join(f">{i}\n{text}\n" for i, text in enumerate(texts)))
        # Without -preserve-strand a k-mer and its reverse complement would be the same.
        build = ["build", "-k", str(k), "-multisample-fasta", "-preserve-strand", "-t", "2", "some.fasta", "some.db"]
        for arguments in (build, ["all2all", "-t", "2", "some.db", "some.csv"]):
            subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True)
        head, _, *lines = (line.strip(",").split(",") for line in (folder / "some.csv").read_text().splitlines())
        assert head[2:] == [line[0] for line in lines] == [str(i) for i in range(len(texts))]
        found = np.zeros((len(texts), len(texts)), dtype=np.int64)
        for i, (_, own, *common) in enumerate(lines):
            found[i, : i + 1] = [int(number) for number in (*common, own)]
        return found + np.tril(found, -1).T

    return numbers


# Not at k = 30, where it took more than 23 GB for 23 short sequences.
@pytest.mark.slow
@pytest.mark.parametrize("k", [4, 8, 11, 12, 16, 20])
@pytest.mark.parametrize("method", METHODS)
def test_kmer_db_gives_d0_of_distinct_k_mers(common_kmers, method, k):
    rng = np.random.default_rng(k)
    few = [random_text(rng, 80, letters) for letters in ("AC", "AT", "AAAAG") * 3]
    texts = (*hostile(), *few, *(random_text(rng, 400) for _ in range(10)))
    some = profile(sequence_set(texts), k, 1, distinct=True)
    flipped = some.reverse_complement()
    both = (*texts, *(flipped.sequences.text(i) for i in range(len(texts))))
    expected = common_kmers(both, k)[: len(texts)]
    assert np.array_equal(loaded(method, some, 1).counters(None)[0], expected[:, : len(texts)])
    assert np.array_equal(loaded(method, flipped, 1).counters(some)[0], expected[:, len(texts) :])
