"""Areas under the ROC curve against pairs counted one by one, and DeLong's interval against its definition."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.cohorts.ranking import auc, midranks, roc_curve


def psi(high, low):
    """1 for a pair in the right order, a half for a tie: float64 [positives, negatives], all pairs."""
    return (high[:, None] > low[None, :]) + 0.5 * (high[:, None] == low[None, :])


labelled = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40).filter(
    lambda items: len({positive for _, positive in items}) == 2
)


@given(labelled)
def test_the_area_is_that_of_all_pairs(items):
    scores, positive = np.array([item[0] for item in items]), np.array([item[1] for item in items])
    pairs = psi(scores[positive], scores[~positive])
    found = auc(scores, positive)
    assert found.area == pytest.approx(pairs.mean(), abs=1e-12)
    # By score, so that another order of items is the same to the last digit.
    assert found.above == pytest.approx(np.sort(pairs.mean(axis=1)), abs=1e-12)
    assert found.below == pytest.approx(-np.sort(-pairs.mean(axis=0)), abs=1e-12)
    assert auc(scores[::-1], positive[::-1]).area == found.area
    x, y = roc_curve(scores, positive)
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert len(x) == len(y) == len(set(scores.tolist())) + 1
    assert np.trapezoid(y, x) == pytest.approx(found.area, abs=1e-12)
    assert auc(-scores, positive).area == pytest.approx(1 - found.area, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_variances_are_delongs(seed):
    """Sums over pairs as the paper of 1988 has them, of each of two areas."""
    rng = np.random.default_rng(seed)
    positive = np.arange(60) < 23
    one, two = rng.integers(0, 9, 60) + 2 * positive, rng.integers(0, 9, 60) + positive
    parts = [psi(scores[positive], scores[~positive]) for scores in (one, two)]
    covariance = sum(
        np.cov([pairs.mean(axis=axis) for pairs in parts]) / len(parts[0].mean(axis=axis)) for axis in (0, 1)
    )
    for k, scores in enumerate((one, two)):
        assert auc(scores, positive).error ** 2 == pytest.approx(covariance[k, k])


def test_the_interval_covers_what_is_true():
    """Scores of two normal distributions, whose area is known."""
    rng = np.random.default_rng(11)
    positive = np.arange(150) < 60
    true = NormalDist().cdf(1 / 2**0.5)
    covered = 0
    for _ in range(600):
        low, high = auc(rng.normal(positive.astype(float)), positive).interval
        covered += low <= true <= high
    assert 0.92 < covered / 600 < 0.98


def test_edges():
    scores = np.array([1, 2, 3], dtype=np.uint64)
    assert auc(scores, np.array([True, True, True])) is None
    assert auc(scores, np.array([False, False, False])) is None
    alone = auc(scores, np.array([False, False, True]))
    assert alone.area == 1
    assert np.isnan(alone.interval[0])
    assert repr(alone) == "<AUC 1.000>"
    assert repr(auc(scores, np.array([False, True, True]))) == "<AUC 1.000>"
    assert np.isnan(auc(-scores.astype(int), np.array([True, True, False])).interval[0])
    # Of n independent pairs, all are in order with the probability p^n.
    for numbers in ((2, 2), (12, 30)):
        positive = np.repeat([True, False], numbers)
        low, high = auc(positive * 1.0, positive).interval
        assert (low ** min(numbers), high) == (pytest.approx(0.025), 1.0)
        assert auc(-1.0 * positive, positive).interval == (0.0, pytest.approx(1 - low))
    pairs = auc(np.array([1, 3, 2, 4]), np.array([False, False, True, True]))
    # Shares 1/2 and 1 for positives, 1 and 1/2 for negatives: each variance is 1/8, of a mean of two 1/16.
    assert pairs.error == pytest.approx((1 / 16 + 1 / 16) ** 0.5)
    assert midranks(np.array([3, 1, 3])).tolist() == [2.5, 1, 2.5]
    large = np.array([2**63, 2**63 + 1], dtype=np.uint64)  # equal as floats
    assert auc(large, np.array([False, True])).area == 1
