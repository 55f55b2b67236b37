"""The CUDA kernels of generation probabilities executed on the CPU, against the CPU kernels.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""

from contextlib import suppress
from itertools import product

import numpy as np
import pytest

from hpcvdj.errors import MachineError
from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.symbols import Alphabet
from tests.kernels.host import fake_cupy
from tests.kernels.pgen.problems import (
    OLGA_MODELS,
    amino_acids,
    hostile_problems,
    junctions,
    mixed_lengths_problem,
    olga_model,
    on_cpu,
    pgen_problem,
    require_same,
    require_same_selection,
    small_model,
    values_of,
    with_little_shared_memory,
)
from tests.loci import exhaustive_but

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")


def on_host(problem, threads=32, cuts=()):
    from hpcvdj.kernels.pgen import pgen_cuda

    return values_of(pgen_cuda.PgenKernel(problem, threads), problem, cuts)


@pytest.mark.slow
@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@pytest.mark.parametrize(
    "given", ["mixed", *(pytest.param(given, marks=pytest.mark.exhaustive) for given in ("both", "V", "none"))]
)
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_small_models(cuda_on_host, has_d, given, order):
    cuda_on_host.order = order
    for seed in range(3):
        model = small_model(seed, has_d=has_d)
        problem = pgen_problem(model, junctions(model, 60, 64, seed), given)
        expected = on_cpu(problem)
        assert (expected > 0).any(axis=0).all()
        require_same(on_host(problem), expected)


@pytest.mark.slow
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_amino_acid_sequences(cuda_on_host, has_d):
    """The same bits as of the nucleotides that they translate, in ranges and from the CPU for those that are long."""
    model = small_model(2, has_d=has_d)
    rows = [*junctions(model, 50, 64, 3), (0, 0, "TGT" + 41 * "GCA" + "TTT"), (0, 0, "TGT" + 30 * "GCA" + "TTT")]
    nucleotides = pgen_problem(model, rows, "mixed", PGEN_COLUMNS[1:])
    expected = on_host(nucleotides)
    problem = amino_acids(nucleotides)
    values = on_host(problem, cuts=(7, 20))
    assert values.tobytes() == expected[~np.isnan(expected[:, 0])].tobytes()
    assert (values > 0).any(axis=0).all()


@pytest.mark.slow
@pytest.mark.parametrize("order", fake_cupy.ORDERS)
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_ambiguous_symbols(cuda_on_host, has_d, order):
    cuda_on_host.order = order
    alphabet = Alphabet.of({"%": ["A", "TGT", "B"], "J": "L", "a": "X"})
    for seed in range(2):
        model = small_model(seed, has_d=has_d)
        problem = pgen_problem(model, junctions(model, 40, 100, seed), "mixed", PGEN_COLUMNS[1:])
        for letters, own in (("XBJZ", None), ("X%aJ", alphabet)):
            changed = amino_acids(problem, letters, own)
            expected = on_cpu(changed)
            assert (expected > 0).any(axis=0).all()
            require_same(on_host(changed), expected, changed.names)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(2, 12))])
def test_hostile_sequences(cuda_on_host, seed):
    cuda_on_host.order = "shuffled"
    for problem in hostile_problems(seed):
        values = on_host(problem)
        require_same(values, on_cpu(problem), problem.names)
        assert on_host(problem, 128, (1, 9)).tobytes() == values.tobytes()


@pytest.mark.slow
def test_amino_acid_sequences_of_three_widths(cuda_on_host):
    """Of up to 16, 32 and 64 symbols; a stop is one of them."""
    model = small_model(4)
    for codons in (16, 17, 32, 33, 43, 64):
        rows = [(0, 0, "TGT" + (codons - 2) * "GCA" + "TTT"), (0, 0, "TGTTAATTT")]
        problem = amino_acids(pgen_problem(model, rows, "both", PGEN_COLUMNS[1:]))
        require_same(on_host(problem), on_cpu(problem), problem.names)


@pytest.mark.exhaustive
@pytest.mark.parametrize("given", ["both", "none"])
@pytest.mark.parametrize("name", OLGA_MODELS)
def test_models_of_olga(cuda_on_host, name, given):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    longest = 128 if name == "human_igh" else 64
    problem = pgen_problem(model, junctions(model, 40 if given == "both" else 12, longest, 3), given)
    expected = on_cpu(problem)
    assert (expected > 0).any(axis=0).all()
    require_same(on_host(problem), expected)
    changed = amino_acids(problem, "XBJZ")
    require_same(on_host(changed), on_cpu(changed), changed.names)


@pytest.mark.slow
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_every_length(cuda_on_host, has_d):
    """Among them 1, 64 and 65, 126 and 128 bases: one more word, the most codons."""
    model = small_model(4, has_d=has_d)
    rng = np.random.default_rng(1)
    v, j = model.v[0].extended, model.j[0].extended
    rows = [(0, 0, "".join(rng.choice(list("ACGT"), length))) for length in range(1, 129)]
    rows += [(0, 0, (v + "ACGTTGCAACGT" * 9)[: length - len(j)] + j) for length in range(len(j) + 3, 129)]
    for given in ("both", "none"):
        problem = pgen_problem(model, rows, given)
        require_same(on_host(problem), on_cpu(problem))


@pytest.mark.slow
def test_ranges_and_blocks_do_not_change_a_bit(cuda_on_host, monkeypatch):
    model = small_model(2)
    problem = pgen_problem(model, junctions(model, 150, 64, 6), "mixed")
    expected = on_host(problem)
    for threads, cuts in product((32, 64, 256), ((), (1, 2, 70), (149,))):
        assert on_host(problem, threads, cuts).tobytes() == expected.tobytes()
    # A thread takes several in turn.
    monkeypatch.setattr("hpcvdj.kernels.pgen.nt_cuda.ROWS_OF_A_TURN", 40)
    assert on_host(problem).tobytes() == expected.tobytes()
    # Fewer at a time.
    monkeypatch.setattr("hpcvdj.kernels.pgen.pgen_cuda.ROWS", 37)
    assert on_host(problem).tobytes() == expected.tobytes()


@pytest.mark.parametrize("names", [("pgen_nt",), ("pgen_aa_1mm",), ("pgen_nt", "pgen_aa"), ()])
def test_columns_that_are_asked_for(cuda_on_host, names):
    model = small_model(3)
    rows = junctions(model, 40, 64, 7)
    everything = on_host(pgen_problem(model, rows))
    values = on_host(pgen_problem(model, rows, names=names))
    assert values.tobytes() == everything[:, [PGEN_COLUMNS.index(name) for name in names]].tobytes()


@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_genes_without_alleles_that_contribute(cuda_on_host, has_d):
    model = small_model(3, has_d=has_d)
    problem = pgen_problem(model, junctions(model, 40, 64, 7))
    pairs = problem.repertoire.pairs
    pairs[0], pairs[1] = (model.alleles("V", ()), pairs[0][1]), (pairs[1][0], model.alleles("J", ()))
    values = on_host(problem)
    assert not np.nan_to_num(values[: problem.repertoire.offsets[2]]).any()
    require_same(values, on_cpu(problem))


@pytest.mark.slow
def test_sequences_with_too_little_shared_memory_are_computed_by_the_cpu(cuda_on_host, monkeypatch):
    problem = mixed_lengths_problem()
    expected = on_cpu(problem)
    with_little_shared_memory(monkeypatch)
    made = []
    begin = PgenKernel.__init__
    monkeypatch.setattr(
        PgenKernel, "__init__", lambda self, own, *more: made.append(own.names) or begin(self, own, *more)
    )
    require_same(on_host(problem, cuts=tuple(range(1, len(problem.repertoire)))), expected)
    # The tables on the CPU are made once for each column, not for each range of rows.
    assert 0 < len(made) == len(set(made)) <= len(PGEN_COLUMNS)


def test_junctions_that_are_too_long_are_computed_by_the_cpu(cuda_on_host):
    model = small_model(4)
    v, j = model.v[0].extended, model.j[0].extended
    rows = [(0, 0, v + "ACGTTGCAACGT" * 9 + middle + j) for middle in ("", "ACG", "ACGTTGCAAC")]
    assert max(len(text) for *_, text in rows) > 128
    problem = pgen_problem(model, [(0, 0, v + "ACG" + j), *rows], "both")
    require_same(on_host(problem), on_cpu(problem))


@pytest.mark.slow
@pytest.mark.parametrize("names", exhaustive_but([("pgen_nt",), ("pgen_aa",), ("pgen_aa_1mm",)], ("pgen_nt",)))
def test_a_missing_barrier_shows(cuda_on_host, names):
    """Taken away one by one, each changes the values in some order of the threads."""
    model = small_model(2)
    problem = pgen_problem(model, junctions(model, 40, 64, 9), "none", names)
    expected = on_host(problem, 64)
    unseen = []
    barrier, count = BARRIERS[names[0]]
    for number in range(count):
        cuda_on_host.change = fake_cupy.without_barrier(number, barrier)
        same = []
        for order in fake_cupy.ORDERS:
            cuda_on_host.order = order
            # Lanes that read what is not written yet may also wait for others that do not come.
            with suppress(MachineError):
                same.append(np.array_equal(on_host(problem, 64), expected, equal_nan=True))
        if len(same) == len(fake_cupy.ORDERS) and all(same):
            unseen.append(number)
    assert unseen == UNSEEN[names[0]]


BARRIERS = {"pgen_nt": ("__syncthreads();", 2), "pgen_aa": ("lanes.wait();", 8), "pgen_aa_1mm": ("lanes.wait();", 8)}

UNSEEN: dict[str, list[int]] = {"pgen_nt": [], "pgen_aa": [0, 1, 3, 4, 5, 6], "pgen_aa_1mm": [1, 3, 4, 5, 6, 7]}
"""Lanes meet at shuffles and ballots soon after these: on a GPU, only a barrier says that what they wrote can be read.
The first two are of sums over one mismatch alone.  There, racecheck of compute-sanitizer looks for them."""


@pytest.mark.slow
def test_the_selection_factor(cuda_on_host):
    require_same_selection()
