"""hpcvdj.chance.depth: recombinations from distinct junctions, against direct sums and draws."""

import numpy as np
import pytest

import hpcvdj
from hpcvdj.chance.depth import LOWEST, Draws, Holders, distinct_of, recombinations_of
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.igor import OLGA_FOLDERS, load_model, model_folders


def every_sequence(seed=0, sequences=2_000):
    """Probabilities of all sequences there are, as draws in which each stands for itself."""
    p = np.random.default_rng(seed).dirichlet(np.full(sequences, 0.2))
    p = p[p > 1e-30]
    # The mean over draws from p is the sum over sequences, each with its own probability as the weight.
    return p, Draws(np.log(p), p)


@pytest.mark.parametrize("recombinations", [1, 30, 1_000, 50_000])
def test_distinct_junctions_of_a_list(recombinations):
    p, draws = every_sequence()
    expected = -np.expm1(-recombinations * p).sum()
    # Linear between grid points 0.02 apart: (0.02)² / 8 of the second derivative.
    assert distinct_of(recombinations, draws.on_grid(0.0)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("q", [1.0, 0.2])
def test_solved(q):
    p, draws = every_sequence(1)
    weights = draws.on_grid(np.log(q))
    distinct = np.array([0, 1, 5, 50, 50, 150])
    found = recombinations_of(distinct, weights, list("abcdef"))
    assert found[0] == 0
    assert found[3] == found[4]
    for wanted, n in zip(distinct.tolist(), found.tolist(), strict=True):
        assert q * -np.expm1(-n * p / q).sum() == pytest.approx(wanted, rel=1e-4)


def test_more_than_there_are():
    _, draws = every_sequence(2, 100)
    with pytest.raises(InputError, match=r"^b: has 1,000 distinct junctions"):
        recombinations_of(np.array([5, 1_000]), draws.on_grid(0.0), ["a", "b"])


def test_how_many_individuals_have_a_junction():
    recombinations = np.array([5_000.0, 0.0, 70.0, 800.0])
    own = Holders.of(recombinations)
    assert own.recombinations == 5_870
    log_p = np.linspace(-30, 0, 77)
    direct = sum(-np.expm1(-n * np.exp(log_p)) for n in recombinations)
    log_number, slope = own.expected(log_p)
    # Linear between grid points 0.02 apart.
    np.testing.assert_allclose(log_number, np.log(direct), atol=1e-4)
    step = 1e-4
    growth = [np.log(sum(-np.expm1(-n * np.exp(log_p + sign * step)) for n in recombinations)) for sign in (-1, 1)]
    np.testing.assert_allclose(slope, (growth[1] - growth[0]) / (2 * step), atol=1e-4)
    for other in (recombinations[::-1], recombinations[[2, 0, 3, 1]]):
        assert (Holders.of(other).log_number == own.log_number).all()


def test_junctions_less_probable_than_the_grid():
    own = Holders.of(np.array([10.0, 20.0]))
    log_number, slope = own.expected(np.array([LOWEST - 600, LOWEST, LOWEST + 1]))
    np.testing.assert_allclose(log_number, np.log(30) + np.array([LOWEST - 600, LOWEST, LOWEST + 1]), rtol=1e-12)
    np.testing.assert_allclose(slope, 1, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["human_igk", "mouse_igl", "mouse_tra", "human_trb"])
def test_of_a_model(name):
    """Junctions that a model makes: as many recombinations as were drawn, within five standard errors."""
    if not OLGA_FOLDERS.keys() <= model_folders().keys():
        pytest.skip("olga is not installed")
    from hpcvdj.chance.draws import Chance
    from hpcvdj.runs.run import Run

    model, run, drawn = load_model(name), Run(), 20_000
    chance = Chance(model, 20_000, 1, AUTO, strict_binding=False)
    p = chance.among_productive(chance.drawn(run), ("pgen_nt",), run)[:, 0]
    rows = hpcvdj.generate(model, drawn, seed=2, productive=True)
    genes = [[call.partition("*")[0] for call in rows[f"{kind}_call"].to_pylist()] for kind in "vj"]
    distinct = len(set(zip(*genes, rows["junction"].to_pylist(), strict=True)))
    found = recombinations_of(np.array([distinct]), Draws(np.log(p), np.full(len(p), 1 / len(p))).on_grid(0.0), ["a"])
    # The summand (1 - exp(-n p)) / (n p) is between 0 and 1, for the draws as for the rows.
    slope = drawn * np.exp(-drawn * p).mean()
    error = drawn * np.std(-np.expm1(-drawn * p) / (drawn * p)) * np.sqrt(2 / len(p)) / max(slope, 1) * drawn
    assert found[0] == pytest.approx(drawn, abs=5 * max(error, 1))
