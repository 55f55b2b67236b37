"""The statistics of hits: κ, dispersion, p-values, and false discovery rates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from hpcvdj.chance.p_values import MEDIAN_OF_SQUARE, Bools, Counts, Floats, poisson_tail

LARGEST_P = 1 - 1e-12
"""The largest probability of a sequence among those of its genes, so that the logarithm of 1 - p is finite."""

SMALLEST_KAPPA, LARGEST_KAPPA = 1e-3, 1e3

FEWEST_EXPECTED = 2.0
"""Expected hits from which on the ratio of found and expected hits of an epitope informs κ."""

FEWEST_EPITOPES = 10
"""Such epitopes from which on their median is κ, and from which on the dispersion is estimated."""

MOST_UNSURE = 1 / 3
"""The largest variance of the dispersion of decoys, if it is 1, with which they tell it: that of ten decoys with 0.75
expected hits each."""

FEWEST_HITS = 10
"""Hits of decoys, or of all records, from which on they inform κ."""

EXACT = 0.01
"""A sum of indicators counts as Poisson if the sum of squared probabilities is below this share of the expected number.
Otherwise the probabilities above this value are summed exactly."""

FEWEST_IN_CLASS = 5.0
"""Expected hits of a class in a test of whether κ differs; classes with fewer are pooled."""

UNLIKELY = 0.01
"""The probability of as many called decoys below which they are not due to chance."""

TAIL = 0.025
"""The probability on each side of a 95 % interval."""


@dataclass(frozen=True)
class HitKappa:
    """The factor by which hits are more common than the model says.

    low, high  the ends of the 95 % interval; None if users give κ
    source     `given`: by users; `decoys`; `epitopes`: the median of their ratios; `samples`: the other samples of the
               run, for a sample with too few hits; `records`: all records, of the sample or, if it has too few hits, of
               all samples that have so few; `none`: there are too few hits, and nothing is called; `bound`: hits are so
               common that κ is at its upper bound, and nothing is called
    """

    value: float
    low: float | None = None
    high: float | None = None
    source: str = "given"

    def doubt(self, phi: float) -> float:
        """The variance of ln κ by its interval; 0 without one.

        phi  the variance of numbers of hits over their mean: the median of epitopes has it, other intervals are Poisson
        """
        if self.low is None or self.high is None:
            return 0.0
        spread = (math.log(self.high / self.low) / (2 * NormalDist().inv_cdf(1 - TAIL))) ** 2
        return spread if self.source == "epitopes" else phi * spread


def times_made(n: Floats, p: Floats) -> Floats:
    """λ, for which 1 - exp(-λ) = 1 - (1 - p)^n: the probability that n recombinations make a sequence at least once."""
    return np.asarray(-n * np.log1p(-np.minimum(p, LARGEST_P)))


def chance_of(expected: Floats, kappa: float) -> Floats:
    """π, the probability that a sequence is in a sample.

    expected  float64: λ as of `times_made`
    """
    return np.asarray(-np.expm1(-kappa * expected))


def interval(hits: Counts) -> tuple[Floats, Floats]:
    """The exact 95 % interval of the mean of a Poisson number (Garwood, Biometrika 28, 1936)."""
    from scipy.special import gammaincinv

    low = np.where(hits > 0, gammaincinv(np.maximum(hits, 1), TAIL), 0.0)
    return low, gammaincinv(hits + 1.0, 1 - TAIL)


def ratio_columns(hits: Counts, expected: Floats) -> dict[str, Any]:
    """The columns of hits, expected hits, and their ratio with its 95 % interval, [epitopes] each."""
    low, high = interval(hits)
    return {
        "found": hits, "expected": expected, "ratio": hits / expected, "ratio_low": low / expected,
        "ratio_high": high / expected,
    }  # fmt: skip


def kappa_of_sum(hits: float, expected: Floats) -> float:
    """The κ with which Σ (1 - exp(-κ λ)) equals the number of hits, within its bounds."""
    from scipy.optimize import brentq

    def surplus(log_kappa: float) -> float:
        return float(chance_of(expected, np.exp(log_kappa)).sum()) - hits

    low, high = np.log(SMALLEST_KAPPA), np.log(LARGEST_KAPPA)
    if surplus(low) >= 0:
        return SMALLEST_KAPPA
    return LARGEST_KAPPA if surplus(high) <= 0 else float(np.exp(brentq(surplus, low, high, xtol=1e-10)))


def kappa_of_members(seen: Counts, expected: Floats, source: str) -> HitKappa | None:
    """κ by the sequences that are in a sample; None if these are too few.

    seen      int64 [sequences]: 1 for a sequence in the sample, else 0
    expected  float64 [sequences]: λ as of `times_made`
    """
    number = int(seen.sum())
    if number < FEWEST_HITS:
        return None
    low, high = (float(end[0]) for end in interval(np.array([number])))
    value, of_low, of_high = (kappa_of_sum(of, expected) for of in (number, low, high))
    return HitKappa(value, of_low, of_high, source)


def kappa_of_ratio(hits: int, expected: float, source: str) -> HitKappa | None:
    """κ as the ratio of hits and expected hits; None if these are too few."""
    if hits < FEWEST_HITS or not expected:
        return None
    low, high = (float(end[0]) / expected for end in interval(np.array([hits])))
    return HitKappa(hits / expected, low, high, source)


def shared(kappas: Sequence[HitKappa], source: str) -> HitKappa:
    """The median κ of samples, for another one.  Its variance is the mean of theirs, and that between them."""
    values = np.array([kappa.value for kappa in kappas])
    differ = float(np.log(values).var(ddof=1)) if len(values) > 1 else 0.0
    error = math.sqrt(float(np.mean([kappa.doubt(1.0) for kappa in kappas])) + differ)
    value, factor = float(np.median(values)), math.exp(NormalDist().inv_cdf(1 - TAIL) * error)
    return HitKappa(value, value / factor, value * factor, source)


def kappa_of_epitopes(hits: Counts, expected: Floats) -> HitKappa | None:
    """κ as the median ratio of hits and expected hits, of epitopes with enough expected hits; None if these are few."""
    enough = expected >= FEWEST_EXPECTED
    if enough.sum() < FEWEST_EPITOPES:
        return None
    # The median of a Poisson number that is spread over the width of an integer is its mean less a sixth.
    ratios = np.sort((hits[enough] + 1 / 6) / expected[enough])
    half = 0.98 * np.sqrt(len(ratios))
    ends = [int(np.clip(round(len(ratios) / 2 + side * half), 0, len(ratios) - 1)) for side in (-1, 1)]
    return HitKappa(float(np.median(ratios)), float(ratios[ends[0]]), float(ratios[ends[1]]), "epitopes")


def dispersion(hits: Counts, expected: Floats, decoy: Bools) -> float:
    """φ, the variance of the numbers of hits over their mean, at least 1; 1 if too few epitopes tell it.

    decoy  bool [epitopes]: whether all hits are due to chance

    Decoys tell φ if chance hits enough of them; it is larger by its standard error.  If not, φ is a median over the
    epitopes that chance often hits, about their own median ratio: the error of κ is no dispersion.
    """
    enough, mean = expected >= FEWEST_EXPECTED, expected[decoy]
    if decoy.sum() >= FEWEST_EPITOPES and mean.sum():
        # Of the estimate, if numbers of hits were Poisson.
        variance = float((mean + 2 * mean**2).sum() / mean.sum() ** 2)
        if variance <= MOST_UNSURE:
            return max(1.0, float(((hits[decoy] - mean) ** 2).sum() / mean.sum()) * (1 + math.sqrt(variance)))
    of_epitopes = kappa_of_epitopes(hits, expected)
    if of_epitopes is None:
        return 1.0
    mean = of_epitopes.value * expected[enough]
    return max(1.0, float(np.median((hits[enough] - mean) ** 2 / mean) / MEDIAN_OF_SQUARE))


@dataclass(frozen=True)
class Difference:
    """A test of whether κ differs between classes of sequences: Pearson's χ² over the dispersion.

    p_value  1 if there are fewer than two classes
    """

    chi_square: float
    classes: int
    p_value: float


def difference(hits: Counts, expected: Floats, phi: float) -> Difference:
    """Test whether hits and expected hits, int64 and float64 [classes], have the same ratio in all classes."""
    from scipy.special import gammaincc

    means = expected * (hits.sum() / max(float(expected.sum()), 1e-300))
    few = means < FEWEST_IN_CLASS
    k, mean = (np.append(values[~few], values[few].sum()) for values in (hits, means))
    k, mean = (values[mean > 0] for values in (k, mean))
    square = float(((k - mean) ** 2 / mean).sum() / phi)
    freedom = len(k) - 1
    return Difference(square, len(k), float(gammaincc(freedom / 2, square / 2)) if freedom > 0 else 1.0)


def decoys_pass(called: int, of_decoys: int, max_q: float) -> bool:
    """Whether a false discovery rate of `max_q` allows so many decoys among the epitopes, or hits, that are called.

    Those of decoys are false, so their number is at most binomial.  The test fails if its tail is below `UNLIKELY`.  To
    refuse any excess would take the calls from a seventh of the samples with ten true epitopes, one of whose decoys is
    called by chance.
    """
    from scipy.special import bdtrc

    return of_decoys == 0 or float(bdtrc(of_decoys - 1, called, max_q)) >= UNLIKELY


def tail(
    hits: Counts, expected: Floats, phi: float, indicators: Sequence[Floats | None], doubt: float = 0.0
) -> tuple[Floats, Floats]:
    """P(K >= hits) and P(K > hits), where K is a sum of independent indicators, or negative binomial.

    phi         the variance of K over its mean; above 1, each is the larger of those of both laws
    indicators  the probabilities of each sum that is far from Poisson; None for the others
    doubt       the variance of ln κ, which is in all expected numbers and probabilities

    The dispersion is one for all epitopes, and a negative binomial number is more often 0 than a Poisson number of the
    same mean.  So it would make few hits of an epitope that chance hardly hits more surprising.  A Poisson number whose
    mean is uncertain by a gamma law is negative binomial.  So is a sum of indicators where κ is uncertain, with its
    variance for one κ and that of κ; or it is Poisson, if that is wider.
    """
    laws = [poisson_tail(hits + k, expected) for k in (0, 1)]
    wide, sums = phi + doubt * expected, np.array([p is not None for p in indicators], dtype=bool)
    exact = np.zeros((2, len(hits)))
    for row in np.flatnonzero(sums).tolist():
        p = np.asarray(indicators[row])
        exact[:, row] = _exact_tails(int(hits[row]), p)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_log_kappa = np.nan_to_num(-(1 - p) * np.log1p(-p)).sum()
        alone = phi if phi > 1 else float((p * (1 - p)).sum() / expected[row])
        wide[row] = alone + doubt * by_log_kappa**2 / expected[row]
    rows = np.flatnonzero(wide > 1)
    for k, law in enumerate(laws):
        widened = _negative_binomial_tail(hits[rows] + k, expected[rows], wide[rows])
        law[rows] = np.where(sums[rows], widened, np.maximum(law[rows], widened))
        # Where nothing widens a sum, its tail is exact.
        law[sums] = np.maximum(exact[k], law if doubt or phi > 1 else 0.0)[sums]
    return laws[0], laws[1]


def _negative_binomial_tail(hits: Counts, expected: Floats, phi: Floats) -> Floats:
    from scipy.special import betainc

    size = np.maximum(expected, 1e-300) / (phi - 1)
    return np.where(hits > 0, betainc(np.maximum(hits, 1), size, 1 - 1 / phi), 1.0)


def _exact_tails(hits: int, probabilities: Floats) -> tuple[float, float]:
    """P(K >= hits) and P(K > hits) of a sum of indicators, of which those with small probabilities count as Poisson."""
    from scipy.special import gammainc

    large = probabilities > EXACT
    of_large = np.zeros(hits + 2)
    of_large[0] = 1.0
    # The last entry is the probability of more than `hits`.
    for p in probabilities[large].tolist():
        moved = p * of_large
        of_large -= moved
        of_large[1:] += moved[:-1]
        of_large[-1] += moved[-1]
    rest = float(probabilities[~large].sum())
    missing = np.arange(hits + 1, -1, -1)
    of_rest = np.where(missing > 0, gammainc(np.maximum(missing, 1), rest), 1.0)
    # One less is missing to reach `hits`.
    return float(of_large[:-1] @ of_rest[1:] + of_large[-1]), float(of_large @ of_rest)


def false_discovery_rates(order_of_hits: Floats, order_of_all: Floats, chance: Floats) -> Floats:
    """The share of chance hits among the hits that come as early or earlier, float64 [hits], made monotone.

    order_of_hits  float64 [hits]: smaller is earlier
    order_of_all   float64 [sequences]: of all sequences that could be hits; those of the same order may be pooled
    chance         float64 [sequences]: π, or the sum of π of pooled sequences

    This is the target-decoy estimate of Elias and Gygi (Nature Methods 4:207, 2007), with the expected number of chance
    hits in the place of decoys.
    """
    sorted_hits = np.sort(order_of_hits)
    upto = np.cumsum(np.bincount(np.searchsorted(sorted_hits, order_of_all), chance, len(sorted_hits) + 1))[:-1]
    # Ties count together.
    last = np.searchsorted(sorted_hits, sorted_hits, side="right") - 1
    rates = np.minimum.accumulate((upto[last] / (last + 1))[::-1])[::-1]
    return np.asarray(np.minimum(rates, 1.0)[np.searchsorted(sorted_hits, order_of_hits)])
