"""Diversity of samples of different depth: Hill numbers that they are expected to have at an equal number of reads.

If m of the n reads of a sample are drawn without replacement, a clonotype of x reads keeps k of them with a
hypergeometric probability.  This gives the expected number of clonotypes with k reads, and from these the Hill numbers
of order 0 (clonotypes), 1 (exp of Shannon's entropy) and 2 (the inverse of Simpson's index), as A. Chao, N. Gotelli, T.
Hsieh and others estimate them (Ecological Monographs 84:45, 2014).

Each Hill number is a function of a sum over clonotypes.  The interval is that of the paper's bootstrap, which draws n
reads again from an estimated assemblage: observed clonotypes with adjusted shares, and clonotypes that were not seen.
Its variance is computed here instead of drawn: the reads of clonotypes are independent Poisson numbers, given that
their sum is n.
"""

import math

import numpy as np
from scipy.special import gammaln, xlogy

from hpcvdj.chance.clone_sizes import CloneSizes
from hpcvdj.chance.p_values import Counts, Estimate, Floats

ORDERS = (0, 1, 2)

NORMAL = 1.96
"""The number of standard deviations on each side of the 95 % interval of a normal distribution."""

_FEW = 400
"""The Poisson distribution of a clonotype with more reads is approximated by a normal one."""

_MANY = 1000.0
"""The logarithm of a number of reads with a larger mean is expanded around this mean."""


def clonality(sizes: CloneSizes) -> float | None:
    """Return 1 - Shannon's entropy of the reads / its largest value; None for fewer than two clonotypes.

    This is 0 if all clonotypes have one size, and near 1 if one clonotype has nearly all reads.
    """
    clonotypes, total = int(sizes.clonotypes.sum()), sizes.total
    if clonotypes < 2:
        return None
    share = sizes.reads / total
    return max(0.0, 1 + float(sizes.clonotypes @ xlogy(share, share)) / math.log(clonotypes))


def hill_number(sizes: CloneSizes, order: int, depth: int) -> Estimate:
    """Estimate the Hill number of an order in `depth` reads of a sample, which has at least so many reads."""
    total = sizes.total
    expected = float(sizes.clonotypes @ _terms(order, sizes.reads, total, depth))
    value = _number(order, expected)
    mean, variance = _drawn_again(sizes, order, depth)
    # The derivative of the Hill number with respect to the sum, in samples that are drawn again.
    again = _number(order, mean)
    slope = {0: 1.0, 1: again, 2: again**2}[order]
    width = NORMAL * slope * math.sqrt(variance)
    return Estimate(value, max(1.0, value - width), value + width)


def _number(order: int, expected: float) -> float:
    """Return the Hill number of an order, from the sum over clonotypes."""
    return {0: lambda: expected, 1: lambda: math.exp(expected), 2: lambda: 1 / expected}[order]()


def _terms(order: int, reads: Counts, total: int, depth: int) -> Floats:
    """Return the terms of clonotypes in the sum of a Hill number, float64; `reads` are at most `total`.

    For order 0, a term is the probability that a clonotype is among the reads that are drawn; for order 1, it is the
    expected -s ln s of its share s; for order 2, the expected s².
    """
    x, n, m = reads.astype(np.float64), float(total), float(depth)
    if order == 0:
        left = np.maximum(n - x - m, 0)
        none = gammaln(n - x + 1) - gammaln(left + 1) + gammaln(n - m + 1) - gammaln(n + 1)
        return np.where(n - x < m, 1.0, -np.expm1(np.minimum(none, 0)))
    if order == 1:
        # The mean weighted by the share is that over a drawn read and the other reads of its clonotype.
        return x / n * (math.log(m) - _log_of_more(np.maximum(x - 1, 0), n - 1, m - 1))
    return x / (n * m) + (x * (x - 1) / (n * (n - 1)) * (m - 1) / m if total > 1 else 0.0)


def _log_of_more(marked: Floats, n: float, m: float) -> Floats:
    """Return the expected ln(1 + k) of k marked reads among m of n reads, float64, for each number of marked reads."""
    share = m / max(1.0, n)
    mean, variance = marked * share, marked * share * (1 - share) * (n - marked) / max(1.0, n - 1)
    # ln(1 + k) around its mean: the cumulants beyond the second are nearly those of a binomial distribution.
    centre = np.maximum(1 + mean, 1)
    third, fourth = variance * (1 - 2 * share), 3 * variance**2
    logs = np.log(centre) - variance / (2 * centre**2) + third / (3 * centre**3) - fourth / (4 * centre**4)
    exact = np.flatnonzero(mean <= _MANY)
    if len(exact):
        logs[exact] = _exact_logs(marked[exact], mean[exact], variance[exact], n, m)
    return np.asarray(logs)


def _exact_logs(marked: Floats, mean: Floats, variance: Floats, n: float, m: float) -> Floats:
    """Return the same by a sum over all k whose probability is not negligible."""
    reach = 10 * np.sqrt(variance) + 20
    least = np.maximum(0, np.maximum(m - (n - marked), np.floor(mean - reach)))
    most = np.minimum(np.minimum(m, marked), np.ceil(mean + reach))
    k = least[:, np.newaxis] + np.arange(int((most - least).max()) + 1)
    inside = k <= most[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        of_next = (marked[:, np.newaxis] - k) * (m - k) / ((k + 1) * (n - marked[:, np.newaxis] - m + k + 1))
        steps = np.where(inside[:, 1:], np.log(of_next[:, :-1]), 0)
    logs = np.concatenate([np.zeros((len(k), 1)), np.cumsum(steps, axis=1)], axis=1)
    logs[~inside] = -np.inf
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray((weight * np.log1p(k)).sum(axis=1) / weight.sum(axis=1))


def assemblage_of(sizes: CloneSizes) -> tuple[Floats, Floats]:
    """Estimate the assemblage: observed clonotypes with adjusted shares, then those that were not seen, if any.

    Returns the number of clonotypes in classes of equal size, and the mean reads of each of these clonotypes, float64
    [classes].  The reads of all clonotypes add up to those of the sample.
    """
    n = sizes.total
    once, twice = (int(sizes.clonotypes[sizes.reads == reads].sum()) for reads in (1, 2))
    if twice:
        unseen = (n - 1) / n * once**2 / (2 * twice)
        uncovered = once / n * (n - 1) * once / ((n - 1) * once + 2 * twice)
    else:
        unseen = (n - 1) / n * once * (once - 1) / 2
        uncovered = once / n * (n - 1) * (once - 1) / ((n - 1) * (once - 1) + 2) if once > 1 else 0.0
    share = sizes.reads / n
    missed = np.where(share < 1, np.exp(n * np.log1p(-np.minimum(share, 1 - 1e-16))), 0)
    weight = float(sizes.clonotypes @ (share * missed))
    adjusted = share * np.maximum(0, 1 - (uncovered / weight if weight else 0.0) * missed)
    if not uncovered:
        return sizes.clonotypes.astype(np.float64), n * adjusted
    number = math.ceil(unseen)
    return np.append(sizes.clonotypes, number).astype(np.float64), n * np.append(adjusted, uncovered / number)


def _drawn_again(sizes: CloneSizes, order: int, depth: int) -> tuple[float, float]:
    """Return the mean and variance of the sum of a Hill number if reads are drawn again from the assemblage."""
    (number, reads), n = assemblage_of(sizes), sizes.total
    expected, variance, covariance = np.zeros((3, len(number)))
    few = reads <= _FEW
    if few.any():
        mean = reads[few, np.newaxis]
        drawn = np.arange(math.ceil(mean.max() + 12 * math.sqrt(mean.max()) + 20))
        term = _terms(order, np.minimum(drawn, n), n, depth)
        chance = np.exp(xlogy(drawn, mean) - mean - gammaln(drawn + 1))
        expected[few] = chance @ term
        variance[few] = chance @ term**2 - expected[few] ** 2
        covariance[few] = chance @ (drawn * term) - expected[few] * reads[few]
    if not few.all():
        mean = reads[~few]
        near = [np.minimum(np.round(mean).astype(np.int64) + step, n) for step in (-1, 0, 1)]
        before, expected[~few], after = (_terms(order, of, n, depth) for of in near)
        slope = (after - before) / np.maximum(1, near[2] - near[0])
        variance[~few], covariance[~few] = slope**2 * mean, slope * mean
    # The sum of all reads is n, which does not vary.
    left = float(number @ variance) - float(number @ covariance) ** 2 / n
    return float(number @ expected), max(0.0, left)
