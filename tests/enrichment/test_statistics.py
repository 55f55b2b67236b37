"""hpcvdj.enrichment.statistics against libraries and the obvious loops."""

import numpy as np
import pytest
from scipy import stats

from hpcvdj.enrichment.statistics import (
    benjamini_hochberg,
    clusters,
    poisson_tail,
    selection_by_length,
    selection_factor,
    two_rates_tail,
)
from hpcvdj.errors import InputError


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


def test_poisson_tail():
    means = np.array([1e-9, 0.1, 1.0, 30.0])
    for neighbours in (0, 1, 2, 25):
        expected = stats.poisson.sf(neighbours - 1, means)
        np.testing.assert_allclose(poisson_tail(np.full(4, neighbours), means), expected, rtol=1e-12)


def test_two_rates_tail():
    rng = np.random.default_rng(2)
    for _ in range(50):
        x, n, c, size = rng.integers(1, 9), rng.integers(9, 99), rng.integers(0, 9), rng.integers(9, 999)
        expected = stats.binomtest(x, x + c, n / (n + size), alternative="greater").pvalue
        found = two_rates_tail(*(np.array([value]) for value in (x, n, c, size)))
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    none = two_rates_tail(np.array([5, 0]), np.array([9, 9]), np.array([0, 3]), np.array([0, 9]))
    assert none.tolist() == [1, 1], "a class that the control lacks, and no neighbour"


def test_the_selection_factor_is_found_again():
    rng = np.random.default_rng(3)
    expected = rng.gamma(0.5, 0.2, 100_000)
    lengths = rng.integers(10, 14, len(expected))
    truth = np.array([2.0, 3.0, 4.0, 5.0])[lengths - 10]
    neighbours = rng.poisson(truth * expected)
    _, by_length = selection_by_length(lengths, neighbours, expected)
    # Its standard error is some 1.3 %: of 25,000 clonotypes a quarter has neighbours.
    assert {length: round(kappa) for length, kappa in by_length.items()} == {10: 2, 11: 3, 12: 4, 13: 5}
    clustered = neighbours.copy()
    clustered[(neighbours > 0) & (rng.random(len(expected)) < 0.1)] += 50
    assert selection_factor(clustered, expected) == selection_factor(neighbours, expected), "clusters do not change it"


def test_a_length_with_few_clonotypes_has_the_common_factor():
    rng = np.random.default_rng(4)
    expected = np.full(1000, 0.3)
    neighbours, lengths = rng.poisson(expected), np.repeat([12, 20], [801, 199])
    common, by_length = selection_by_length(lengths, neighbours, expected)
    assert set(by_length) == {12}
    neighbours[lengths == 12] = np.arange(801) < 9
    assert selection_by_length(lengths, neighbours, expected)[1] == {}, "fewer than ten with a neighbour"
    assert common != 1


@pytest.mark.parametrize("neighbours", [np.zeros(500), np.ones(500), np.zeros(199)])
def test_no_factor(neighbours):
    with pytest.raises(InputError, match="--kappa"):
        selection_factor(neighbours.astype(np.int64), np.full(len(neighbours), 1e-9))


def test_clusters():
    texts = ["CAAF", "CABF", "CBBF", "CXYF", "CAAF", "CABFF", "CZYF"]
    letters = np.zeros((len(texts), 8), dtype=np.uint8)
    for row, text in enumerate(texts):
        letters[row, : len(text)] = list(text.encode())
    lengths = np.array([len(text) for text in texts])
    found = clusters(letters, lengths, np.array([0, 0, 0, 0, 1, 0, 0]))
    assert found.tolist() == [1, 1, 1, 2, 3, 4, 2]
    assert clusters(letters[:0], lengths[:0], lengths[:0]).tolist() == []
