"""Many tests at once."""

import numpy as np
import pytest
from scipy import stats

from hpcvdj.association.multiplicity import inflation, q_values, reachable, reaching, weights
from hpcvdj.chance.p_values import FEWEST_TESTS


def tarone_by_a_loop(least, level):
    number = 1
    while sum(own <= level / number for own in least) > number:
        number += 1
    return level / number


def test_what_cannot_reach_the_threshold_is_not_tested():
    rng = np.random.default_rng(0)
    cases = [10 ** rng.uniform(-5, 0, size).round(1) for size in (0, 1, 2, 5, 50, 300)]
    # As many as the threshold that they just reach allows, and one more.
    for least in (*cases, *(np.full(k + more, 0.05 / k) for k in (1, 3, 7) for more in (0, 1))):
        threshold = tarone_by_a_loop(least.tolist(), 0.05)
        if threshold < min(least, default=1) <= 0.05:
            threshold = min(least)
        assert reachable(*np.unique(least, return_counts=True), 0.05) == threshold
        assert reaching(least, 0.05).tolist() == (least <= threshold).tolist()


def test_hypotheses_that_are_hits_together_are_tested():
    """Seven of smallest p-value 0.0134 are above Tarone's threshold, 0.05 / 4, and below 0.05 as a family."""
    least = np.array([0.0134] * 7 + [0.2] * 9)
    assert tarone_by_a_loop(least.tolist(), 0.05) < 0.0134
    assert reaching(least, 0.05).tolist() == [True] * 7 + [False] * 9
    assert not reaching(np.array([0.06, 0.06]), 0.05).any()
    assert reaching(np.array([0.05, 0.05, 0.05]), 0.05).all()


def test_weights_are_learned_from_other_folds():
    rng = np.random.default_rng(1)
    number = 20_000
    carriers, log_p = rng.integers(5, 60, number), rng.uniform(-25, -10, number)
    heavy = (carriers > 45) & (log_p < -21)
    p = np.where(heavy & (rng.random(number) < 0.3), rng.random(number) ** 4, rng.random(number))
    weight = weights(p, carriers, log_p, seed=0)
    assert weight.mean() == pytest.approx(1, abs=1e-12)
    assert weight[heavy].mean() > 3 * weight[~heavy].mean()
    found, plain = ((q <= 0.05) for q in (q_values(p, weight), q_values(p)))
    assert found[heavy].sum() > 1.1 * plain[heavy].sum()
    np.testing.assert_array_equal(q_values(p, weight), stats.false_discovery_control(np.minimum(p / weight, 1)))
    # A p-value does not change the weight of its fold.
    changed = p.copy()
    changed[np.flatnonzero(heavy)[0]] = 1e-9
    assert (weights(changed, carriers, log_p, seed=0) == weight).sum() >= number / 5 - 200


def weights_by_loops(p, carriers, log_p, seed, family):
    """Four classes of each of two quantities, five folds of families; a class has its share of p < 0.001."""
    fold = np.random.default_rng([seed, 3]).integers(5, size=max(family) + 1)
    classes = [[sum(value > end for end in np.quantile(values, [0.25, 0.5, 0.75])) for value in values]
               for values in (carriers, log_p)]  # fmt: skip
    kind = list(zip(*classes, strict=True))
    weight = np.ones(len(p))
    for k in range(5):
        excess = {}
        for of in {*kind}:
            others = [p[i] for i in range(len(p)) if fold[family[i]] != k and kind[i] == of]
            excess[of] = max(sum(value < 0.001 for value in others) - 0.001 * len(others), 0) / max(len(others), 1)
        inside = [i for i in range(len(p)) if fold[family[i]] == k]
        mean = np.mean([excess[kind[i]] + 1e-4 for i in inside]) if inside else 1
        for i in inside:
            weight[i] = (excess[kind[i]] + 1e-4) / mean
    return weight


@pytest.mark.parametrize("number", [3, 40, 400])
def test_weights_are_those_of_loops(number):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        carriers, log_p = rng.integers(5, 12, number), rng.uniform(-25, -10, number).round()
        p = rng.random(number) ** rng.choice([1, 8], number)
        p[rng.random(number) < 0.05] = 0.001
        family = np.minimum(rng.permutation(number), number // 2)
        expected = weights_by_loops(p, carriers, log_p, seed, family)
        np.testing.assert_allclose(weights(p, carriers, log_p, seed, family), expected, rtol=1e-15)
        alone = weights_by_loops(p, carriers, log_p, seed, np.arange(number))
        np.testing.assert_allclose(weights(p, carriers, log_p, seed), alone, rtol=1e-15)


def test_few_tests_have_equal_weights():
    for number in range(1, 8):
        values = np.arange(number)
        assert weights(np.full(number, 0.5), values, values / 7, seed=number).tolist() == [1] * number


def test_without_weights_it_is_benjamini_and_hochberg():
    p = np.random.default_rng(2).random(100) ** 2
    np.testing.assert_array_equal(q_values(p), stats.false_discovery_control(p))
    assert len(q_values(np.empty(0))) == 0
    assert len(weights(np.empty(0), np.empty(0, int), np.empty(0), 0)) == 0


def test_uniform_p_values_are_not_inflated():
    uniform = (np.arange(1_001) + 0.5) / 1_001
    assert inflation(uniform) == pytest.approx(1, abs=1e-3)
    assert inflation(uniform**2) > 2
    assert inflation(np.empty(0)) is None


def test_few_tests_have_no_inflation():
    """Of one planted hit and a handful of others it was 21."""
    assert inflation(np.full(FEWEST_TESTS - 1, 0.01)) is None
    assert inflation(np.full(FEWEST_TESTS, 0.01)) > 10
