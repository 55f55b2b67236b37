"""The law of the carriers of a sequence: which donors they are, given their number, if nothing is associated with it.

Donor i with n_i recombinations has a sequence of probability p with π_i = 1 - exp(-x n_i), x = θ p, whatever its
label.  Given m carriers, the probability of a set of m donors is proportional to the product of their odds
w_i = exp(x n_i) - 1, with x such that Σ π_i = m (the conditional Bernoulli law: Chen and Liu, Statistica Sinica 7:875,
1997).  So m alone fixes the law, and a table of N + 1 rows serves all sequences.  The probability of a cases among the
carriers is proportional to PB_cases(a) PB_controls(m - a), where PB is a Poisson-binomial distribution.  All terms are
positive and at most 1, so nothing overflows or cancels.  With equal n_i the law is the hypergeometric distribution of
Fisher's exact test.

Each stratum has a law, given its number of carriers.  The law of the sum is the convolution of these.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hpcvdj.chance.p_values import Bools, Counts, Floats
from hpcvdj.kernels.carriers import numbers_of_carriers, sums_of_levels

LEVELS = 20
"""Classes of donors by the rank of a number, of equal size; the statistic of a trend is the sum over the carriers."""

TAIL = 0.025
"""The probability on each side of a 95 % interval."""

_MOST_STEPS = 1000


def rates(sizes: Floats, carriers: Counts) -> Floats:
    """The x with Σ 1 - exp(-x n_i) = m, float64 [carriers]; 0 if m is 0, and infinite if all donors are carriers.

    sizes     float64 [donors]: n_i; donors with 0 cannot be carriers
    carriers  int64 [carriers]: m
    """
    sizes = np.sort(sizes[sizes > 0])
    wanted = carriers.astype(np.float64)
    x = wanted / max(float(sizes.sum()), 1e-300)
    between = (carriers > 0) & (carriers < len(sizes))
    x[carriers >= len(sizes)] = np.where(carriers[carriers >= len(sizes)] > 0, np.inf, 0.0)
    # The sum is concave in x, so Newton's method from below never overshoots.
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
    """The probability that k donors have a sequence, float64 [x, donors + 1]."""
    chance = np.zeros((len(x), len(sizes) + 1))
    numbers_of_carriers(np.where(np.isfinite(x), x, 0.0), np.sort(sizes), chance)
    chance[~np.isfinite(x)] = np.arange(len(sizes) + 1) == (sizes > 0).sum()
    return chance


Law = tuple[int, Floats]
"""The smallest value of an integer statistic, and the probabilities of this value, the next one, …"""


def laws_of_cases(sizes: Floats, case: Bools, carriers: Counts) -> list[Law]:
    """The laws of the number of cases among the carriers, for each number of carriers.

    sizes     float64 [donors]: recombinations
    case      bool [donors]
    carriers  int64 [laws]
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
    """The laws of the sum of the levels of the carriers, for each number of carriers.

    sizes     float64 [donors]: recombinations
    level     int64 [donors], from 0
    carriers  int64 [laws]
    """
    has_any = sizes > 0
    lengths = carriers * int(level[has_any].max(initial=0)) + 1
    ends = np.cumsum(lengths)
    mass = np.zeros(int(lengths.sum()))
    sums_of_levels(rates(sizes, carriers), carriers, sizes[has_any], level[has_any], ends - lengths, mass)
    return [_possible(part) for part in np.split(mass, ends[:-1])] if len(ends) else []


def _possible(mass: Floats) -> Law:
    """The law of a mass from 0 on, without the impossible values at its ends, which no p-value can reach."""
    possible = np.flatnonzero(mass)
    mass = mass[possible[0] : possible[-1] + 1]
    return int(possible[0]), mass / mass.sum()


def levels_of(values: Floats) -> Counts:
    """The level of each donor: its class of `LEVELS` by the rank of its number.  Equal numbers have equal levels."""
    from scipy.stats import rankdata

    return np.asarray(LEVELS * (rankdata(values) - 0.5) / max(len(values), 1)).astype(np.int64)


@dataclass(frozen=True)
class Laws:
    """The laws of a statistic of many sequences; sequences with equal carriers in each stratum share a law.

    of       int64 [sequences]: the law of each
    lowest   int64 [laws]: the smallest value
    begins   int64 [laws + 1]: the probabilities of law k are mass[begins[k]:begins[k + 1]]
    mass     float64: the probabilities of `lowest`, the next value, …
    """

    of: Counts
    lowest: Counts
    begins: Counts
    mass: Floats

    @staticmethod
    def given(carriers: Counts, of_stratum: Callable[[int, Counts], list[Law]]) -> "Laws":
        """The laws of sequences, given their numbers of carriers.

        carriers    int64 [sequences, strata]
        of_stratum  the laws of a stratum, for each of several numbers of carriers
        """
        distinct, of = np.unique(carriers, axis=0, return_inverse=True)
        laws: list[Law] = [(0, np.ones(1))] * len(distinct)
        for stratum in range(carriers.shape[1]):
            numbers, row = np.unique(distinct[:, stratum], return_inverse=True)
            further = of_stratum(stratum, numbers)
            laws = [(lowest + further[k][0], np.convolve(mass, further[k][1]))
                    for (lowest, mass), k in zip(laws, row, strict=True)]  # fmt: skip
        begins = np.concatenate([[0], np.cumsum([len(mass) for _, mass in laws])]).astype(np.int64)
        mass = np.concatenate([mass for _, mass in laws]) if laws else np.empty(0)
        return Laws(of.reshape(-1), np.array([first for first, _ in laws], dtype=np.int64), begins, mass)

    def _summed(self, direction: int) -> Floats:
        """The sums of the probabilities of each law, from its smallest value on (1) or from its largest on (-1)."""
        sums = [np.cumsum(self.mass[a:b][::direction])[::direction] for a, b in pairwise(self.begins)]
        return np.minimum(np.concatenate(sums), 1.0) if sums else self.mass

    @cached_property
    def _at_least(self) -> Floats:
        return self._summed(-1)

    def tails(self, value: Counts) -> tuple[Floats, Floats]:
        """P(S >= value) and P(S > value) of each sequence, float64 [sequences]; `value` is int64 [sequences]."""
        at_least, more = (self._sums(self._at_least, value + k, 1.0, 0.0) for k in (0, 1))
        return at_least, more

    def at_most(self, value: Counts) -> Floats:
        """P(S <= value) of each sequence, float64 [sequences]; `value` is int64 [sequences]."""
        return self._sums(self._summed(1), value, 0.0, 1.0)

    def _sums(self, sums: Floats, value: Counts, below: float, above: float) -> Floats:
        """The `sums` of the laws at values, and what they are below and above the values of the law.

        A possible value may be there, as the probability of a very improbable one is 0 in floating point.
        """
        of_first, of_last = self.begins[self.of], self.begins[self.of + 1] - 1
        index = of_first + value - self.lowest[self.of]
        inside = sums[np.clip(index, of_first, of_last)]
        return np.where(index < of_first, below, np.where(index > of_last, above, inside))

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        mean, variance = np.empty(len(self.lowest)), np.empty(len(self.lowest))
        for k, (a, b) in enumerate(pairwise(self.begins)):
            values = self.lowest[k] + np.arange(b - a)
            mean[k] = (values * self.mass[a:b]).sum()
            variance[k] = ((values - mean[k]) ** 2 * self.mass[a:b]).sum()
        return mean, variance

    @property
    def mean(self) -> Floats:
        """The mean of the statistic, float64 [sequences]."""
        return self._moments[0][self.of]

    @property
    def deviation(self) -> Floats:
        """The standard deviation of the statistic, float64 [sequences]."""
        return np.asarray(np.sqrt(self._moments[1])[self.of])

    @property
    def least(self) -> Floats:
        """The probability of the largest value, float64 [sequences]: no upper tail is smaller."""
        return np.asarray(self.mass[self.begins[1:] - 1])[self.of]

    @property
    def least_of_both(self) -> Floats:
        """Twice the smaller probability of the two extreme values, at most 1, float64 [sequences]."""
        return np.asarray(np.minimum(2 * np.minimum(self.least, self.mass[self.begins[:-1]][self.of]), 1.0))

    def needed(self, sequence: int, p: float) -> int | None:
        """The smallest value of a sequence whose upper tail is at most p; None if none is."""
        k = int(self.of[sequence])
        small = np.flatnonzero(self._at_least[self.begins[k] : self.begins[k + 1]] <= p)
        return int(self.lowest[k] + small[0]) if len(small) else None

    def odds_ratio(self, sequence: int, value: int) -> tuple[float, float, float]:
        """The odds ratio ψ of cases by conditional maximum likelihood, and its exact 95 % interval.

        With the odds ratio ψ, the probability of a cases is proportional to ψ^a times that of the law (Cornfield,
        1956).  ψ is 0 or infinite if `value` is the smallest or largest possible, and NaN if it is both.
        """
        k = int(self.of[sequence])
        mass, index = self.mass[self.begins[k] : self.begins[k + 1]], value - int(self.lowest[k])
        last = len(mass) - 1
        if last == 0:
            return float("nan"), 0.0, float("inf")
        with np.errstate(divide="ignore"):
            log_mass, cases = np.log(mass), np.arange(len(mass))

        def tilted(log_ratio: float) -> Floats:
            logs = log_mass + log_ratio * cases
            weights = np.exp(logs - logs.max())
            return np.asarray(weights / weights.sum())

        mean = -np.inf if index == 0 else np.inf
        if 0 < index < last:
            mean = _root(lambda t: (tilted(t) * cases).sum() - index)
        low = _root(lambda t: tilted(t)[index:].sum() - TAIL) if index > 0 else -np.inf
        high = _root(lambda t: TAIL - tilted(t)[: index + 1].sum()) if index < last else np.inf
        return float(np.exp(mean)), float(np.exp(low)), float(np.exp(high))


def _root(increasing: Callable[[float], float]) -> float:
    """The root of an increasing function of a logarithm, by halving its interval."""
    low, high = -700.0, 700.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < 0 else (low, middle)
    return (low + high) / 2


def fisher(cases: Counts, carriers: Counts, donors: int, most_cases: int) -> tuple[Floats, Floats]:
    """P(A >= cases) and P(A > cases) by Fisher's exact test, which ignores the depth of donors."""
    from scipy.stats import hypergeom

    at_least, more = (np.asarray(hypergeom.sf(cases - k, donors, most_cases, carriers)) for k in (1, 0))
    return at_least, more
