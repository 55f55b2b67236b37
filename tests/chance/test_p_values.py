"""hpcvdj.chance.p_values against libraries and the obvious loops."""

import numpy as np
import pytest
from scipy import stats

from hpcvdj.chance.p_values import MEDIAN_OF_SQUARE, ascending, benjamini_hochberg, poisson_tail, quantiles, randomised


def q_by_loop(p_values, tests):
    """The smallest rate at which the step-up procedure rejects each."""
    ordered = sorted(p_values)
    return [
        min([1.0] + [ordered[k] * tests / (k + 1) for k in range(len(ordered)) if ordered[k] >= p]) for p in p_values
    ]


@pytest.mark.parametrize("tests", [20, 21, 5000])
def test_benjamini_hochberg(tests):
    p_values = np.random.default_rng(1).random(20) ** 3
    p_values[3] = p_values[7]
    np.testing.assert_allclose(benjamini_hochberg(p_values, tests), q_by_loop(p_values.tolist(), tests), rtol=1e-15)
    library = stats.false_discovery_control(np.concatenate([p_values, np.ones(tests - 20)]))[:20]
    np.testing.assert_allclose(benjamini_hochberg(p_values, tests), library, rtol=1e-15)
    assert benjamini_hochberg(np.empty(0), 5).tolist() == []


@pytest.mark.parametrize("values", [0, 3, 1000])
def test_the_order_of_numbers_is_stable(values):
    numbers = np.random.default_rng(2).integers(0, max(values, 1), 300) / 7
    assert ascending(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()
    assert ascending(numbers[:1]).tolist() == [0]
    assert ascending(numbers[:0]).tolist() == []


def test_poisson_tail():
    means = np.array([1e-9, 0.1, 1.0, 30.0])
    for neighbours in (0, 1, 2, 25):
        expected = stats.poisson.sf(neighbours - 1, means)
        np.testing.assert_allclose(poisson_tail(np.full(4, neighbours), means), expected, rtol=1e-12)


def test_randomised_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(7)
    expected = rng.gamma(0.5, 0.2, 50_000)
    neighbours = rng.poisson(expected)
    at_least, more = poisson_tail(neighbours, expected), poisson_tail(neighbours + 1, expected)
    found = randomised(at_least, more, seed=1)
    assert ((more <= found) & (found <= at_least)).all()
    assert stats.kstest(found, "uniform").pvalue > 1e-3
    assert stats.kstest(at_least, "uniform").pvalue < 1e-6, "as they are, they are not"
    assert (randomised(at_least, more, 1) == found).all()
    assert (randomised(at_least, more, 2) != found).any()


def test_the_median_of_a_square():
    assert stats.chi2(1).median() == pytest.approx(MEDIAN_OF_SQUARE, abs=1e-7)


def test_quantiles():
    rng = np.random.default_rng(8)
    p_values = rng.random(20_000)
    found = {name: np.array(values) for name, values in quantiles(p_values).items()}
    ranks = (found["expected"] * 20_001).round().astype(int)
    assert ranks[0] == 1
    assert ranks[-1] == 20_000
    np.testing.assert_array_equal(found["observed"], np.sort(p_values)[ranks - 1])
    # A rank is rounded by up to a half, of at least 300.
    steps = np.diff(np.log(ranks))[ranks[1:] > 300]
    np.testing.assert_allclose(steps, np.log(20_000) / 199, atol=1 / 300)
    assert steps.mean() == pytest.approx(np.log(20_000) / 199, abs=1 / 300 / len(steps))
    # Of 300 sets of uniform p-values, as many are inside the band at each rank as it says: within 4 standard errors.
    inside = np.zeros(len(quantiles(p_values[:500])["low"]))
    for _ in range(300):
        own = quantiles(rng.random(500))
        inside += (np.array(own["low"]) <= own["observed"]) & (own["observed"] <= np.array(own["high"]))
    assert (abs(inside / 300 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 300)).all()
    assert quantiles(np.array([0.3]))["observed"] == [0.3]
    assert quantiles(np.empty(0))["observed"] == []
