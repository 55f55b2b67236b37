"""The law of the carriers of a sequence: which donors they are, given how many, if nothing goes with the sequence.

Donor i of n_i recombinations has a sequence of probability p with π_i = 1 - exp(-x n_i), x = θ p, whatever its label.
Given m carriers, a set of donors is that of the carriers with a probability in proportion to the product of its odds
w_i = exp(x n_i) - 1 (the conditional Bernoulli law: Chen and Liu, Statistica Sinica 7:875, 1997), where x is such that
Σ π_i = m.  So m alone fixes the law, and one table of N + 1 rows serves all sequences.  The number of cases among the
carriers has the mass PB_cases(a) PB_controls(m - a), of Poisson-binomial distributions whose terms are all positive and
at most 1: nothing overflows or cancels.  With equal n_i it is the hypergeometric distribution, Fisher's exact test.

Strata have a law each, given the carriers of each; that of the sum is their convolution.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcvdj.chance.p_values import Bools, Counts, Floats
from hpcvdj.kernels.carriers import numbers_of_carriers
from hpcvdj.kernels.levels import sums_of_levels

LEVELS = 20
"""Classes of donors, of equal size by the rank of a number, whose sum over carriers is the statistic of a trend."""

TAIL = 0.025
"""On each side of an interval of odds ratios."""

_MOST_STEPS = 1000
_HALVINGS = 80
_LARGEST_LOG_RATIO = 700.0


def rates(sizes: Floats, carriers: Counts) -> Floats:
    """x with Σ 1 - exp(-x n_i) = m, float64 [carriers]; 0 for none, infinite for all donors of any recombination.

    sizes  float64 [donors]: n_i
    """
    sizes = np.sort(sizes[sizes > 0])
    wanted = carriers.astype(np.float64)
    x = wanted / max(float(sizes.sum()), 1e-300)
    between = (carriers > 0) & (carriers < len(sizes))
    x[carriers >= len(sizes)] = np.where(carriers[carriers >= len(sizes)] > 0, np.inf, 0.0)
    # The sum is concave in x, so Newton's steps from below never go too far.
    for _ in range(_MOST_STEPS):
        rows = np.flatnonzero(between)
        if not len(rows):
            break
        lacks = np.exp(-np.multiply.outer(x[rows], sizes))
        missing = wanted[rows] - (1 - lacks).sum(axis=1)
        x[rows] += np.maximum(missing, 0.0) / (lacks * sizes).sum(axis=1)
        between[rows[missing <= 1e-14 * wanted[rows]]] = False
    return x


def _numbers(x: Floats, sizes: Floats) -> Floats:
    """P(k donors have it), float64 [x, donors + 1]."""
    chance = np.zeros((len(x), len(sizes) + 1))
    numbers_of_carriers(np.where(np.isfinite(x), x, 0.0), np.sort(sizes), chance)
    chance[~np.isfinite(x)] = np.arange(len(sizes) + 1) == (sizes > 0).sum()
    return chance


Law = tuple[int, Floats]
"""The smallest value of an integer statistic, and the probabilities of it, the next one, …"""


def laws_of_cases(sizes: Floats, case: Bools, carriers: Counts) -> list[Law]:
    """The number of cases among so many carriers, for each number of carriers.

    sizes  float64 [donors]
    case   bool [donors]
    """
    x = rates(sizes, carriers)
    of_cases, of_controls = _numbers(x, sizes[case]), _numbers(x, sizes[~case])
    most_cases, most_controls = ((sizes[side] > 0).sum() for side in (case, ~case))
    laws = []
    for row, m in enumerate(carriers.tolist()):
        cases = np.arange(max(0, m - most_controls), min(m, most_cases) + 1)
        mass = of_cases[row, cases] * of_controls[row, m - cases]
        laws.append((int(cases[0]), mass / mass.sum()))
    return laws


def laws_of_levels(sizes: Floats, level: Counts, carriers: Counts) -> list[Law]:
    """The sum of the levels of so many carriers, for each number of carriers.

    level  int64 [donors], from 0
    """
    has_any = sizes > 0
    lengths = carriers * int(level[has_any].max(initial=0)) + 1
    ends = np.cumsum(lengths)
    mass = np.zeros(int(lengths.sum()))
    sums_of_levels(rates(sizes, carriers), carriers, sizes[has_any], level[has_any], ends - lengths, mass)
    return [(0, part / part.sum()) for part in np.split(mass, ends[:-1])] if len(ends) else []


def levels_of(values: Floats) -> Counts:
    """The level of each donor, of `LEVELS` classes by the rank of its number; equal numbers have equal levels."""
    from scipy.stats import rankdata

    return np.asarray(LEVELS * (rankdata(values) - 0.5) / max(len(values), 1)).astype(np.int64)


@dataclass(frozen=True)
class Laws:
    """The laws of a statistic of many sequences, of which those with as many carriers in each stratum have one.

    of       int64 [sequences]: the law of each
    lowest   int64 [laws]: the smallest value
    begins   int64 [laws + 1]: a law's probabilities are mass[begins[k]:begins[k + 1]]
    mass     float64: of `lowest`, the next value, …
    """

    of: Counts
    lowest: Counts
    begins: Counts
    mass: Floats

    @staticmethod
    def given(carriers: Counts, of_stratum: Callable[[int, Counts], list[Law]]) -> "Laws":
        """Those of sequences with so many carriers, int64 [sequences, strata].

        of_stratum  the laws of a stratum for numbers of carriers
        """
        distinct, of = np.unique(carriers, axis=0, return_inverse=True)
        laws: list[Law] = [(0, np.ones(1))] * len(distinct)
        for stratum in range(carriers.shape[1]):
            numbers, row = np.unique(distinct[:, stratum], return_inverse=True)
            own = of_stratum(stratum, numbers)
            laws = [(law[0] + own[k][0], np.convolve(law[1], own[k][1])) for law, k in zip(laws, row, strict=True)]
        begins = np.concatenate([[0], np.cumsum([len(mass) for _, mass in laws])]).astype(np.int64)
        mass = np.concatenate([mass for _, mass in laws]) if laws else np.empty(0)
        return Laws(of.reshape(-1), np.array([first for first, _ in laws], dtype=np.int64), begins, mass)

    def _each(self, change: Callable[[Floats], Floats]) -> Floats:
        parts = [change(self.mass[a:b]) for a, b in zip(self.begins[:-1], self.begins[1:], strict=True)]
        return np.minimum(np.concatenate(parts), 1.0) if parts else self.mass

    @cached_property
    def _at_least(self) -> Floats:
        return self._each(lambda mass: np.cumsum(mass[::-1])[::-1])

    @cached_property
    def _at_most(self) -> Floats:
        return self._each(np.cumsum)

    def tails(self, value: Counts, *, upper: bool = True) -> tuple[Floats, Floats]:
        """P(S >= value) and P(S > value), of each sequence; or P(S <= value) and P(S < value)."""
        at = self.begins[self.of] + value - self.lowest[self.of]
        reached = (self._at_least if upper else self._at_most)[at]
        beyond = at + 1 if upper else at - 1
        inside = (beyond < self.begins[self.of + 1]) & (beyond >= self.begins[self.of])
        tail = self._at_least if upper else self._at_most
        return reached, np.where(inside, tail[np.where(inside, beyond, 0)], 0.0)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        mean, variance = np.empty(len(self.lowest)), np.empty(len(self.lowest))
        for k, (a, b) in enumerate(zip(self.begins[:-1], self.begins[1:], strict=True)):
            values = self.lowest[k] + np.arange(b - a)
            mean[k] = (values * self.mass[a:b]).sum()
            variance[k] = ((values - mean[k]) ** 2 * self.mass[a:b]).sum()
        return mean, variance

    @property
    def mean(self) -> Floats:
        """Of each sequence."""
        return self._moments[0][self.of]

    @property
    def deviation(self) -> Floats:
        """The standard deviation, of each sequence."""
        return np.asarray(np.sqrt(self._moments[1])[self.of])

    @property
    def least(self) -> Floats:
        """The smallest probability of a tail that a sequence can have: that of the largest value."""
        return np.asarray(self.mass[self.begins[1:] - 1])[self.of]

    @property
    def least_of_both(self) -> Floats:
        """Twice the smaller probability of both ends."""
        return np.asarray(np.minimum(2 * np.minimum(self.least, self.mass[self.begins[:-1]][self.of]), 1.0))

    def odds_ratio(self, sequence: int, value: int) -> tuple[float, float, float]:
        """The odds ratio ψ of cases by conditional maximum likelihood, and its exact 95 % interval.

        The number of cases has then a mass in proportion to ψ^a times that of the law (Cornfield, 1956).  0 and
        infinity where a carrier is missing on one side.
        """
        k = int(self.of[sequence])
        mass, at = self.mass[self.begins[k] : self.begins[k + 1]], value - int(self.lowest[k])
        last = len(mass) - 1
        with np.errstate(divide="ignore"):
            log_mass, cases = np.log(mass), np.arange(len(mass))

        def tilted(log_ratio: float) -> Floats:
            logs = log_mass + log_ratio * cases
            weights = np.exp(logs - logs.max())
            return np.asarray(weights / weights.sum())

        mean = -np.inf if at == 0 else np.inf
        if 0 < at < last:
            mean = _solved(lambda t: float((tilted(t) * cases).sum()) - at)
        low = _solved(lambda t: float(tilted(t)[at:].sum()) - TAIL) if at > 0 else -np.inf
        high = _solved(lambda t: TAIL - float(tilted(t)[: at + 1].sum())) if at < last else np.inf
        if last == 0:
            return float("nan"), 0.0, float("inf")
        ratio, least, most = (float(np.exp(log)) for log in (mean, low, high))
        return ratio, least, most


def _solved(increasing: Callable[[float], float]) -> float:
    """The root of a function that increases, by halving."""
    low, high = -_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < 0 else (low, middle)
    return (low + high) / 2


def fisher(cases: Counts, carriers: Counts, donors: int, most_cases: int) -> tuple[Floats, Floats]:
    """Fisher's P(A >= cases) and P(A > cases), which takes all donors to be equally deep."""
    from scipy.stats import hypergeom

    return tuple(np.asarray(hypergeom.sf(cases - k, donors, most_cases, carriers)) for k in (1, 0))  # type: ignore[return-value]
