"""Hill numbers at equal depth: the expected numbers over all ways to draw reads, and the bootstrap, drawn."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from hpcvdj.chance import diversity
from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.diversity import NORMAL, ORDERS, assemblage_of, clonality, hill_number


def sizes_of(reads):
    return CloneSizes.of(np.array(reads, dtype=np.int64))


def estimated(order, frequencies, depth):
    """The estimator of Chao et al. 2014: the Hill number of expected numbers of clonotypes with k reads."""
    k, number = (np.array(own, dtype=float) for own in zip(*frequencies.items(), strict=True))
    share, number = k[k > 0] / depth, number[k > 0]
    if order == 1:
        return math.exp(-number @ (share * np.log(share)))
    return (number @ share**order) ** (1 / (1 - order))


def over_all_draws(reads, depth):
    """How many clonotypes have k reads, in the mean over all ways to draw reads."""
    owners = [clone for clone, number in enumerate(reads) for _ in range(number)]
    draws = list(combinations(owners, depth))
    found = Counter(k for draw in draws for k in Counter(draw).values())
    return {k: Fraction(number, len(draws)) for k, number in found.items()}


def exactly(reads, depth):
    """The same by the hypergeometric law, in fractions."""
    total, found = sum(reads), Counter()
    for own in reads:
        for k in range(1, min(own, depth) + 1):
            ways = math.comb(own, k) * math.comb(total - own, depth - k)
            found[k] += Fraction(ways, math.comb(total, depth))
    return found


@pytest.mark.parametrize("reads", [[1], [3], [1, 1, 1], [5, 1], [4, 3, 1, 1, 1], [2, 2, 2, 2]])
def test_all_ways_to_draw(reads):
    for depth in range(1, sum(reads) + 1):
        frequencies = over_all_draws(reads, depth)
        assert frequencies == {k: value for k, value in exactly(reads, depth).items() if value}
        for order in ORDERS:
            own = hill_number(sizes_of(reads), order, depth)
            assert own.value == pytest.approx(estimated(order, frequencies, depth), rel=1e-11)
            assert 1 <= own.low <= own.value * (1 + 1e-12) <= own.high * (1 + 2e-12)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.floats(0, 1))
def test_the_law_in_fractions(reads, share):
    depth = max(1, round(share * sum(reads)))
    frequencies = exactly(reads, depth)
    for order in ORDERS:
        # Logarithms of factorials of numbers up to 1,800; 5.7e-11 was the largest of 4,500 differences.
        assert hill_number(sizes_of(reads), order, depth).value == pytest.approx(
            estimated(order, frequencies, depth), rel=1e-9
        )


def test_large_clones():
    """Where ln k is expanded around its mean, and where the sum over k is cut off."""
    reads = [40_000, 9_000, 1_500, 1_200, 300, 40, 2, 1]
    for depth in (300, 5_000, sum(reads)):
        found = np.zeros(depth + 1)
        for own in reads:
            k = np.arange(min(own, depth) + 1)
            found[k] += hypergeom.pmf(k, sum(reads), own, depth)
        for order in ORDERS:
            assert hill_number(sizes_of(reads), order, depth).value == pytest.approx(
                estimated(order, dict(enumerate(found)), depth), rel=1e-8
            )


def test_all_reads_are_the_sample():
    reads = np.array([900, 30, 5, 2, 1, 1])
    share = reads / reads.sum()
    entropy = -(share * np.log(share)).sum()
    values = [hill_number(sizes_of(reads), order, int(reads.sum())).value for order in ORDERS]
    assert values == pytest.approx([6, math.exp(entropy), 1 / (share**2).sum()], rel=1e-12)
    assert clonality(sizes_of(reads)) == pytest.approx(1 - entropy / math.log(6), rel=1e-12)
    assert clonality(sizes_of([4, 4, 4])) == pytest.approx(0, abs=1e-15)
    assert clonality(sizes_of([12])) is None
    assert clonality(sizes_of([])) is None


def skewed(seed, clones, reads):
    """The reads of a sample of an individual whose clones are of very different size."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(reads, rng.dirichlet(rng.pareto(1.2, clones) + 0.02))
    return drawn[drawn > 0]


def values_of(samples, order, depth):
    """The Hill numbers of samples, without their intervals, which take longer."""
    with mock.patch.object(diversity, "_drawn_again", return_value=(1.0, 0.0)):
        return [hill_number(sample, order, depth).value for sample in samples]


@pytest.mark.parametrize("kind", ["skewed", "one large", "even"])
def test_the_interval_is_that_of_the_bootstrap(kind):
    """Its width, and so the variance, against samples that are drawn again from the assemblage."""
    reads = {"skewed": skewed(1, 3_000, 4_000), "one large": np.append(skewed(2, 800, 1_500), 2_500),
             "even": np.bincount(np.random.default_rng(3).integers(0, 900, 3_000))}[kind]  # fmt: skip
    reads = reads[reads > 0]
    sizes, rng = sizes_of(reads), np.random.default_rng(4)
    number, mean = assemblage_of(sizes)
    assert number @ mean == pytest.approx(sizes.total, rel=1e-9)
    p = np.repeat(mean, number.astype(int))
    samples = [sizes_of(drawn[drawn > 0]) for drawn in rng.multinomial(sizes.total, p / p.sum(), 600)]
    for order in ORDERS:
        for depth in (sizes.total // 10, sizes.total):
            estimate = hill_number(sizes, order, depth)
            # 600 samples tell a standard deviation to 3 %, by one of its own.
            drawn = np.std(values_of(samples, order, depth))
            assert (estimate.high - estimate.value) / NORMAL == pytest.approx(drawn, rel=0.1)


@pytest.mark.slow
def test_intervals_hold_the_truth():
    """At a tenth of the reads, of samples of an individual of which all is known."""
    rng, reads = np.random.default_rng(7), 5_000
    p = rng.dirichlet(rng.pareto(1.3, 4_000) + 0.05)
    depth = reads // 10
    expected = [(1 - (1 - p) ** depth).sum()]
    for order in (1, 2):
        samples = [sizes_of(drawn[drawn > 0]) for drawn in rng.multinomial(depth, p, 4_000)]
        expected.append(np.mean(values_of(samples, order, depth)))
    held = np.zeros(3)
    for drawn in rng.multinomial(reads, p, 200):
        estimates = [hill_number(sizes_of(drawn[drawn > 0]), order, depth) for order in ORDERS]
        held += [own.low <= value <= own.high for own, value in zip(estimates, expected, strict=True)]
    assert (held / 200 >= 0.9).all()
    assert (held / 200 <= 0.995).any()


def test_of_equal_depth_is_comparable():
    """A sample and a tenth of its reads have the same expected numbers, of different width."""
    reads = skewed(5, 5_000, 40_000)
    rng = np.random.default_rng(6)
    fewer = np.bincount(rng.choice(np.repeat(np.arange(len(reads)), reads), 4_000, replace=False))
    for order in ORDERS:
        deep, shallow = (hill_number(sizes_of(own[own > 0]), order, 4_000) for own in (reads, fewer))
        assert shallow.low < deep.value < shallow.high
        assert deep.high - deep.low < shallow.high - shallow.low
