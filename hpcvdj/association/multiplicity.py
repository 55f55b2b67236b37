"""Multiple testing: which hypotheses to test, q-values, weights of hypotheses, and the inflation of p-values."""

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import FEWEST_TESTS, MEDIAN_OF_SQUARE, Counts, Floats, benjamini_hochberg

FOLDS, CLASSES = 5, 4
"""Folds of the tests, each with weights learned from the other folds; classes by carriers, and by probability."""

SMALL_P = 1e-3
"""P-values below this count as small: a class with an excess of them gets a large weight."""

FLOOR = 1e-4
"""The smallest excess of a class, so that no weight is 0."""


def reachable(least: Floats, times: Counts, level: float) -> float:
    """The p-value that a hypothesis must be able to reach to be tested (Tarone, Biometrics 46:515, 1990).

    least  float64, ascending: the smallest p-values of hypotheses, which do not depend on who the cases are
    times  int64: how many hypotheses have each

    It is level / K, where K is the smallest number such that at most K hypotheses can reach level / K (Gilbert, Applied
    Statistics 54:143, 2005).  If none can, as where all have the same smallest p-value, it is the smallest of these, if
    that is at most the level: together, these hypotheses can still be hits.
    """
    left = np.concatenate([[0], np.cumsum(times)])
    lowest, highest = 1, max(int(left[-1]), 1)
    while lowest < highest:
        number = (lowest + highest) // 2
        if left[np.searchsorted(least, level / number, side="right")] <= number:
            highest = number
        else:
            lowest = number + 1
    threshold = level / lowest
    return float(least[0]) if len(least) and threshold < least[0] <= level else threshold


def reaching(least: Floats, level: float) -> NDArray[np.bool_]:
    """Which of all hypotheses are tested, bool [hypotheses]; `least` is in any order."""
    return np.asarray(least <= reachable(*np.unique(least, return_counts=True), level))


def q_values(p: Floats, weight: Floats | None = None) -> Floats:
    """The q-values of Benjamini and Hochberg, of p / weight if weighted (Genovese et al., Biometrika 93:509, 2006)."""
    return benjamini_hochberg(p if weight is None else np.minimum(p / weight, 1.0), len(p))


def weights(p: Floats, carriers: Counts, log_probability: Floats, seed: int, family: Counts | None = None) -> Floats:
    """Weights of mean 1, from the share of small p-values in classes of carriers and probability.

    Under the null hypothesis, neither the number of carriers nor the probability says which carriers are cases, so both
    are independent of the p-value.  The weights of a fold come from the other folds, as in IHW (Ignatiadis et al.,
    Nature Methods 13:577, 2016).

    family  int64 [hypotheses]: hypotheses of one family, whose p-values depend on each other, are in one fold
    """
    kind = _classes(carriers.astype(np.float64)) * CLASSES + _classes(log_probability)
    kinds = CLASSES**2
    family = np.arange(len(p)) if family is None else family
    fold = np.random.default_rng([seed, 3]).integers(FOLDS, size=int(family.max(initial=-1)) + 1)[family]
    weight = np.ones(len(p))
    for k in range(FOLDS):
        inside, others = fold == k, fold != k
        number = np.bincount(kind[others], minlength=kinds)
        small = np.bincount(kind[others & (p < SMALL_P)], minlength=kinds)
        excess = np.maximum(small - SMALL_P * number, 0) / np.maximum(number, 1) + FLOOR
        if inside.any():
            weight[inside] = excess[kind[inside]] / max(float(excess[kind[inside]].mean()), FLOOR)
    return weight


def _classes(values: Floats) -> Counts:
    """The quantile class of each value, from 0."""
    if not len(values):
        return np.empty(0, dtype=np.int64)
    ends = np.quantile(values, np.arange(1, CLASSES) / CLASSES)
    return np.asarray(np.searchsorted(ends, values), dtype=np.int64)


def inflation(uniform: Floats) -> float | None:
    """λ: the median χ² of p-values over its median under the null hypothesis; None if there are few tests.

    uniform  float64: p-values that are uniform under the null hypothesis
    """
    from scipy.special import ndtri

    if len(uniform) < FEWEST_TESTS:
        return None
    return float(ndtri(np.median(uniform) / 2) ** 2 / MEDIAN_OF_SQUARE)
