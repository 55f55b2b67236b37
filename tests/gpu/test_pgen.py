"""Generation probabilities on a GPU against the CPU kernels.  Skipped without a GPU.

python -m pytest tests/gpu/test_pgen.py
"""

from itertools import product

import numpy as np
import pytest

from hpcvdj.kernels.backends import gpu_count
from hpcvdj.recombination.repertoire import PGEN_COLUMNS
from hpcvdj.recombination.symbols import Alphabet
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

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")


def on_gpu(problem, threads=256, cuts=()):
    from hpcvdj.kernels.pgen.pgen_cuda import PgenKernel

    return values_of(PgenKernel(problem, threads), problem, cuts)


@pytest.mark.parametrize("given", ["both", "V", "none", "mixed"])
@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_small_models(has_d, given):
    for seed in range(10):
        model = small_model(seed, has_d=has_d)
        problem = pgen_problem(model, junctions(model, 1000, 64, seed), given)
        require_same(on_gpu(problem), on_cpu(problem))


@pytest.mark.parametrize("given", ["both", "mixed", "none"])
@pytest.mark.parametrize("name", OLGA_MODELS)
def test_models_of_olga(name, given):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    problem = pgen_problem(model, junctions(model, 300 if name == "human_igh" else 3000, 128, 3), given)
    require_same(on_gpu(problem), on_cpu(problem))


@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_amino_acid_sequences(has_d):
    """The same bits as of the nucleotides that they translate; ambiguous symbols as on the CPU."""
    model = small_model(2, has_d=has_d)
    nucleotides = pgen_problem(model, junctions(model, 1000, 128, 3), "mixed", PGEN_COLUMNS[1:])
    expected = on_gpu(nucleotides)
    problem = amino_acids(nucleotides)
    assert on_gpu(problem, cuts=(7, 90)).tobytes() == expected[~np.isnan(expected[:, 0])].tobytes()
    alphabet = Alphabet.of({"%": ["A", "TGT", "B"], "J": "L", "a": "X"})
    for letters, own in (("XBJZ", None), ("X%aJ", alphabet)):
        changed = amino_acids(nucleotides, letters, own)
        require_same(on_gpu(changed), on_cpu(changed), changed.names)


@pytest.mark.parametrize("seed", range(1, 12))
def test_hostile_sequences(seed):
    for problem in hostile_problems(seed):
        values = on_gpu(problem)
        require_same(values, on_cpu(problem), problem.names)
        assert on_gpu(problem, 32, (1, 9)).tobytes() == values.tobytes()


@pytest.mark.parametrize("name", OLGA_MODELS)
def test_ambiguous_symbols_with_models_of_olga(name):
    model = olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    rows = junctions(model, 300 if name == "human_igh" else 3000, 128, 5)
    problem = amino_acids(pgen_problem(model, rows, "mixed", PGEN_COLUMNS[1:]), "XBJZ")
    require_same(on_gpu(problem), on_cpu(problem), problem.names)


@pytest.mark.parametrize("has_d", [True, False], ids=["VDJ", "VJ"])
def test_every_length(has_d):
    model = small_model(4, has_d=has_d)
    rng = np.random.default_rng(1)
    v, j = model.v[0].extended, model.j[0].extended
    rows = [(0, 0, "".join(rng.choice(list("ACGT"), length))) for length in range(1, 129)]
    rows += [(0, 0, (v + "ACGTTGCAACGT" * 9)[: length - len(j)] + j) for length in range(len(j) + 3, 129)]
    for given in ("both", "none"):
        problem = pgen_problem(model, rows, given)
        require_same(on_gpu(problem), on_cpu(problem))


@pytest.mark.parametrize("name", ["small", *OLGA_MODELS])
def test_ranges_and_blocks_do_not_change_a_bit(name):
    model = small_model(2) if name == "small" else olga_model(name)
    if model is None:
        pytest.skip("olga is not installed")
    problem = pgen_problem(model, junctions(model, 1000, 128, 6), "mixed")
    expected = on_gpu(problem)
    for threads, cuts in product((32, 64, 128, 1024), ((), (1, 2, 70), (999,))):
        assert on_gpu(problem, threads, cuts).tobytes() == expected.tobytes()


def test_sequences_with_too_little_shared_memory_are_computed_by_the_cpu(monkeypatch):
    problem = mixed_lengths_problem()
    with_little_shared_memory(monkeypatch)
    require_same(on_gpu(problem, cuts=(3, 40)), on_cpu(problem))


def test_short_memory_shrinks_the_batch(monkeypatch):
    import cupy

    from hpcvdj.kernels.pgen.pgen_cuda import PgenKernel

    model = small_model(1)
    problem = pgen_problem(model, junctions(model, 500, 64, 2))
    right = PgenKernel._compute

    def scarce(self, first, last, values):
        if last - first > 100:
            raise cupy.cuda.memory.OutOfMemoryError(1, 1)
        return right(self, first, last, values)

    monkeypatch.setattr(PgenKernel, "_compute", scarce)
    monkeypatch.setattr("hpcvdj.kernels.device.in_batches.__defaults__", (10,))
    require_same(on_gpu(problem), on_cpu(problem))


def test_the_selection_factor():
    require_same_selection()
