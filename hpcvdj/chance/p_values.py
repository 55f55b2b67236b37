"""P-values and q-values of numbers that are Poisson by chance, and their comparison with uniform p-values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]

QQ_POINTS = 200
"""The number of ranks at which observed p-values are compared with uniform ones."""

MEDIAN_OF_SQUARE = 0.4549364
"""The median of the square of a normal deviate."""

FEWEST_TESTS = 100
"""The number of tests from which on their inflation is reported: the median of few tests depends on the hits."""

BAND = 0.95
"""The share of sets of uniform p-values whose p-value of a rank is inside the band."""


@dataclass(frozen=True)
class Estimate:
    """An estimate, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def ascending(values: Floats) -> Counts:
    """Return the indices that sort numbers, of which none is NaN; equal numbers keep their order.

    With few equal numbers, that takes less than half of the time of a stable sort of all.
    """
    order = np.argsort(values)
    ranked = values[order]
    equal = ranked[1:] == ranked[:-1]
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    order[tied] = order[tied][np.lexsort((order[tied], ranked[tied]))]
    return order


def benjamini_hochberg(p_values: Floats, tests: int) -> Floats:
    """Return the q-values of a family of `tests` p-values; those that are not in `p_values` count as 1.

    Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995.
    """
    # Sorted p-values are hardly sorted again.
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * (tests / np.arange(1.0, len(p_values) + 1))
    q_values = np.empty(len(p_values))
    q_values[order] = np.minimum.accumulate(np.minimum(scaled, 1.0)[::-1])[::-1]
    return q_values


def poisson_tail(numbers: Counts | int, expected: Floats | float) -> Floats:
    """Return P(X >= numbers) of Poisson distributions with the means `expected`."""
    from scipy.special import gammainc

    return np.where(np.greater(numbers, 0), gammainc(np.maximum(numbers, 1), expected), 1.0)


def two_rates_tail(
    numbers: Counts | int, size: Counts | Floats | float, of_other: Counts | int, size_of_other: Counts | Floats | float
) -> Floats:
    """Return P(X >= numbers) if X and the number of another sample have the same rate: an exact test.

    size, size_of_other  what rates are of: junctions, or expected numbers

    Given the sum of both numbers, X is binomial with its share of both sizes (Przyborowski and Wilenski, Biometrika 31,
    1940).  The result is 1 where the size of the other sample is 0.
    """
    from scipy.special import betainc

    share = size / np.maximum(np.add(size, size_of_other), np.finfo(float).tiny)
    tail = betainc(np.maximum(numbers, 1), np.add(of_other, 1), share)
    return np.where(np.greater(numbers, 0) & np.greater(size_of_other, 0), tail, 1.0)


def randomised(at_least: Floats, more: Floats, seed: int) -> Floats:
    """Return P(X > x) + U P(X = x), with U uniform, which is uniform under the null hypothesis although X is discrete.

    at_least  P(X >= x)
    more      P(X > x)
    seed      of U
    """
    # Another stream than that of the clonotypes, which are drawn with the same seed.
    uniform = np.random.default_rng([seed, 1]).random(len(more))
    return more + uniform * (at_least - more)


def quantiles(p_values: Floats) -> dict[str, list[float]]:
    """Compare sorted p-values with uniform ones, at ranks whose logarithms are equally far apart.

    Returns lists of up to `QQ_POINTS` numbers: `expected`, the mean of the p-value of a rank if all are uniform;
    `observed`; `low` and `high`, the interval of a uniform p-value with the probability `BAND`.  The p-value k of n
    uniform ones has the distribution Beta(k, n + 1 - k).
    """
    from scipy.special import betaincinv

    tests = len(p_values)
    ranks = np.unique(np.geomspace(1, max(tests, 1), QQ_POINTS).round().astype(np.int64))[:tests]
    low, high = betaincinv(ranks, tests + 1 - ranks, np.array([[1 - BAND], [1 + BAND]]) / 2)
    columns = {"expected": ranks / (tests + 1), "observed": np.sort(p_values)[ranks - 1], "low": low, "high": high}
    return {name: values.tolist() for name, values in columns.items()}


def needs_text(needed: Sequence[Mapping[str, Any]]) -> str:
    """Say which numbers of carriers, and of cases among them, a hit needs: those of the fact `a_hit_needs`."""
    first, *more = needed
    others = "".join(f", or {need['cases']:,} among {need['carriers']:,}" for need in more)
    return f"{first['cases']:,} cases among {first['carriers']:,} carriers ({first['expected']:.1f} expected){others}"


def copies_text(tests: Sequence[Mapping[str, Any]]) -> str:
    """Say how many sequences with small q-values are no hits, as they are or may be copies; empty if there are none.

    tests  facts of tests
    """
    are, may_be = (sum(test.get(f"hits_that_{word}_copies") or 0 for test in tests) for word in ("are", "may_be"))
    texts = [f"{are:,} more {'is a likely copy' if are == 1 else 'are likely copies'}"] if are else []
    if may_be:
        what = "a copy" if may_be == 1 else "copies"
        texts.append(f"{may_be:,} more may be {what}, of one junction in donors that share others")
    return ", ".join(texts)
