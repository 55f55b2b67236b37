"""hpcvdj.enrichment.statistics against libraries and the obvious loops."""

import numpy as np
import pytest
from scipy import stats

from hpcvdj.chance.p_values import two_rates_tail
from hpcvdj.enrichment.statistics import SMALLEST_KAPPA, clusters, selection_by_length, selection_factor
from hpcvdj.errors import InputError

ONE = np.ones(100_000, dtype=np.int64)
"""Junctions of clonotypes that have one each."""


def test_two_rates_tail():
    rng = np.random.default_rng(2)
    for _ in range(50):
        x, n, c, size = rng.integers(1, 9), rng.integers(9, 99), rng.integers(0, 9), rng.integers(9, 999)
        expected = stats.binomtest(x, x + c, n / (n + size), alternative="greater").pvalue
        found = two_rates_tail(*(np.array([value]) for value in (x, n, c, size)))
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    none = two_rates_tail(np.array([5, 0]), np.array([9, 9]), np.array([0, 3]), np.array([0, 9]))
    assert none.tolist() == [1, 1], "a class that the control lacks, and no neighbour"
    alone = two_rates_tail(np.array([1]), np.array([0]), np.array([0]), np.array([0]))
    assert alone.tolist() == [1], "nor has the sample others"
    one = two_rates_tail(np.array([2]), np.array([9]), np.array([0]), np.array([1]))
    np.testing.assert_allclose(one, 0.9**2, rtol=1e-12)


def test_the_selection_factor_is_found_again():
    rng = np.random.default_rng(3)
    expected = rng.gamma(0.5, 0.2, 100_000)
    lengths = rng.integers(10, 14, len(expected))
    truth = np.array([2.0, 3.0, 4.0, 5.0])[lengths - 10]
    neighbours = rng.poisson(truth * expected)
    _, by_length = selection_by_length(lengths, neighbours, expected, ONE[: len(lengths)])
    # Its standard error is some 1.3 %: of 25,000 clonotypes a quarter has neighbours.
    assert {length: round(kappa) for length, kappa in by_length.items()} == {10: 2, 11: 3, 12: 4, 13: 5}
    clustered = neighbours.copy()
    clustered[(neighbours > 0) & (rng.random(len(expected)) < 0.1)] += 50
    assert selection_factor(clustered, expected, ONE) == selection_factor(neighbours, expected, ONE), (
        "clusters do not change it"
    )


def test_the_selection_factor_counts_junctions_not_clonotypes():
    """Points on a line, neighbours within 1, some of them in one clonotype: kappa is that of the points."""
    rng = np.random.default_rng(8)
    length, within = 40_000, 0.8
    points = np.sort(rng.random(24_000)) * length
    below = np.searchsorted(points, points - within)
    neighbours = np.searchsorted(points, points + within) - below - 1
    expected = np.full(len(points), 2 * within * len(points) / length)
    # Points that are as near to the one before them as the junctions of a clonotype.
    first = np.flatnonzero(np.diff(points, prepend=-1.0) > 0.1)
    junctions = np.diff(np.append(first, len(points)))
    assert junctions.max() > 1
    assert (junctions[neighbours[first] == 0] == 1).all()
    found = selection_factor(neighbours[first], expected[first], junctions)
    of_points = selection_factor(neighbours, expected, ONE[: len(points)])
    # As exactly as the root of the equation is looked for.
    assert (found.value, found.low, found.high) == pytest.approx(
        (of_points.value, of_points.low, of_points.high), rel=1e-9
    )
    assert found.low < 1 < found.high
    assert selection_factor(neighbours[first], expected[first], ONE[: len(first)]).high < 1, "which clonotypes hide"


def test_a_length_with_few_clonotypes_has_the_common_factor():
    rng = np.random.default_rng(4)
    expected = np.full(1000, 0.3)
    neighbours, lengths = rng.poisson(expected), np.repeat([12, 20], [801, 199])
    common, by_length = selection_by_length(lengths, neighbours, expected, ONE[: len(lengths)])
    assert set(by_length) == {12}
    neighbours[lengths == 12] = np.arange(801) < 9
    assert selection_by_length(lengths, neighbours, expected, ONE[: len(lengths)])[1] == {}, (
        "fewer than ten with a neighbour"
    )
    assert common != 1


def test_the_fewest_clonotypes_of_a_length():
    """200, of which ten have a neighbour; lengths without are no reason to leave out those that follow."""
    lengths = np.repeat([11, 12, 13, 14], [199, 200, 200, 300])
    neighbours = np.zeros(len(lengths), dtype=np.int64)
    neighbours[lengths == 11] = 1
    for length, having in ((12, 10), (13, 9), (14, 10)):
        neighbours[np.flatnonzero(lengths == length)[:having]] = 1
    expected = np.full(len(lengths), 0.05)
    _, by_length = selection_by_length(lengths, neighbours, expected, ONE[: len(lengths)])
    assert set(by_length) == {12, 14}
    assert by_length[12] == pytest.approx(-np.log(190 / 200) / 0.05, rel=1e-9)
    # Of a length that no factor explains, none is given.
    neighbours[lengths == 12] = 1
    assert set(selection_by_length(lengths, neighbours, expected, ONE[: len(lengths)])[1]) == {14}
    assert selection_factor(neighbours[:200] * 0 + (np.arange(200) < 50), expected[:200], ONE[:200]).value > 0


@pytest.mark.parametrize("neighbours", [np.zeros(500), np.ones(500), np.zeros(199)])
def test_no_factor(neighbours):
    with pytest.raises(InputError, match="kappa"):
        selection_factor(neighbours.astype(np.int64), np.full(len(neighbours), 1e-9), ONE[: len(neighbours)])


def test_no_neighbour_is_possible():
    with pytest.raises(InputError, match=r"500 of 500 clonotypes have no neighbour.*; is the model that"):
        selection_factor(np.zeros(500, dtype=np.int64), np.zeros(500), ONE[:500])


@pytest.mark.parametrize("having", [3, 5, 40, 400])
def test_the_interval_of_clonotypes_that_are_alike(having):
    """Where all expect as many neighbours, kappa of a share without any is its logarithm."""
    expected, alone = 0.05, 1 - having / 1_000
    neighbours = (np.arange(1_000) < having).astype(np.int64)
    for share in (0.0, 0.3, 1.0):
        variance = alone * (1 - alone) - share * alone**2 * np.log(alone)
        error = stats.norm.isf(0.025) * np.sqrt(variance / 1_000)
        ends = [-np.log(min(1, end)) / expected for end in (alone, alone + error, alone - error)]
        ends = [end if end > SMALLEST_KAPPA else 0.0 for end in ends]
        found = selection_factor(neighbours, np.full(1_000, expected), ONE[:1_000], share)
        assert (found.value, found.low, found.high) == pytest.approx(ends, rel=1e-8)
    assert (found.value, found.low, found.high) == pytest.approx(ends, rel=1e-8)


@pytest.mark.parametrize(("kappa", "fits"), [(9.9e-4, False), (1.01e-3, True), (9_999, True), (10_000.5, False)])
def test_the_bounds_of_kappa(kappa, fits):
    neighbours, expected = np.arange(1_000) % 2, np.full(1_000, np.log(2) / kappa)
    if fits:
        assert selection_factor(neighbours, expected, ONE[:1_000]).value == pytest.approx(kappa, rel=1e-8)
    else:
        with pytest.raises(InputError, match="500 of 1,000 clonotypes have no neighbour, which no"):
            selection_factor(neighbours, expected, ONE[:1_000])


def test_an_interval_that_begins_at_nothing():
    """One clonotype of 500 with a neighbour: none is likely, too."""
    found = selection_factor((np.arange(500) == 7).astype(np.int64), np.full(500, 1e-3), ONE[:500])
    assert found.low == 0
    assert found.value == pytest.approx(-np.log(499 / 500) / 1e-3, rel=1e-9)
    assert found.high > found.value


def test_without_any_neighbour_kappa_is_the_largest_that_is_likely():
    expected = np.full(1000, 3e-3)
    for share in (0.0, 1.0):
        found = selection_factor(np.zeros(1000, dtype=np.int64), expected, ONE[:1000], share)
        assert (found.low, found.high) == (0, found.value)
        pairs = expected.sum() / 2 if share else expected.sum()
        assert np.exp(-found.value * pairs) == pytest.approx(0.025)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_interval_of_kappa_has_it_as_often_as_it_says(share):
    """Of pairs that are neighbours or not; some of the clonotypes are drawn."""
    rng, number = np.random.default_rng(6), 1_000
    weights = rng.gamma(0.7, 1.0, number)
    chance = np.triu(np.minimum(3e-4 * np.outer(weights, weights), 1.0), 1)
    expected = (chance + chance.T).sum(axis=1)
    drawn = np.arange(number) < share * number
    # Pairs below each, of as many as the factor 2.5 makes.
    below = np.cumsum(2.5 * chance)
    held = []
    for _ in range(400):
        # A Poisson number of hits; a pair that has some, with a chance of 1 - exp(-2.5 * chance), is neighbours.
        hits = below[-1] * rng.random(rng.poisson(below[-1]))
        i, j = np.divmod(np.unique(np.searchsorted(below, hits, side="right")), number)
        neighbours = np.bincount(np.concatenate([i, j]), minlength=number)
        for own in (share, 0.0):
            found = selection_factor(neighbours[drawn], expected[drawn], ONE[:number][drawn], own)
            held.append(found.low <= 2.5 <= found.high)
    pairs, alone = held[::2], held[1::2]
    # Within four standard errors of 95 %.
    assert abs(np.mean(pairs) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)
    if share == 1.0:
        assert np.mean(alone) < 0.9, "as if clonotypes were independent"


def test_clusters():
    texts = ["CAAF", "CABF", "CBBF", "CXYF", "CAAF", "CABFF", "CZYF"]
    letters = np.zeros((len(texts), 8), dtype=np.uint8)
    for row, text in enumerate(texts):
        letters[row, : len(text)] = list(text.encode())
    lengths = np.array([len(text) for text in texts])
    found = clusters(letters, lengths, np.array([0, 0, 0, 0, 1, 0, 0]))
    assert found.tolist() == [1, 1, 1, 2, 3, 4, 2]
    assert clusters(letters[:0], lengths[:0], lengths[:0]).tolist() == []
