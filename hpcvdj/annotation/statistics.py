"""The statistics of hits: κ, dispersion, p-values, and false discovery rates."""

from dataclasses import dataclass

import numpy as np

from hpcvdj.chance.p_values import MEDIAN_OF_SQUARE, Bools, Counts, Floats, poisson_tail

LARGEST_P = 1 - 1e-12
"""Of a sequence among those of its genes, so that its logarithm is finite."""

SMALLEST_KAPPA, LARGEST_KAPPA = 1e-3, 1e3

FEWEST_EXPECTED = 2.0
"""Hits that chance must make of an epitope for its ratio of hits found and expected to say something of κ."""

FEWEST_EPITOPES = 10
"""Such epitopes from which on their median is κ, and from which on dispersion is estimated."""

FEWEST_HITS = 10
"""Hits that decoys, or all records, must have to say something of κ."""

EXACT = 0.01
"""From this share of the squares on, sums of indicators are not taken for Poisson; and probabilities above it are
summed exactly."""

FEWEST_IN_CLASS = 5.0
"""Hits that chance must make of a class, in a test of whether κ differs; classes with fewer are taken together."""

UNLIKELY = 0.01
"""Below this probability, so many of the called hits are not of decoys by chance."""

TAIL = 0.025
"""On each side of an interval."""


@dataclass(frozen=True)
class Kappa:
    """By how much hits are more common than the model says.

    low, high  the ends of the 95 % interval; of a given value it has none
    source     `given`, `decoys`, `epitopes`: the median of their ratios, `samples`: of the samples of the run, for one
               with too few hits, or `records`: all of them, of the sample or, if it has too few hits, of all samples;
               `none`: too few, and nothing is called
    """

    value: float
    low: float | None = None
    high: float | None = None
    source: str = "given"


def times_made(n: Floats, p: Floats) -> Floats:
    """λ with which 1 - exp(-λ) is 1 - (1 - p)^n: the probability that one of n recombinations or more is a sequence."""
    return np.asarray(-n * np.log1p(-np.minimum(p, LARGEST_P)))


def chance_of(expected: Floats, kappa: float) -> Floats:
    """π: the probability that a sequence is in a sample, with λ as of `times_made`."""
    return np.asarray(-np.expm1(-kappa * expected))


def interval(found: Counts) -> tuple[Floats, Floats]:
    """The exact 95 % interval of the mean of a Poisson number (Garwood, Biometrika 28, 1936)."""
    from scipy.special import gammaincinv

    low = np.where(found > 0, gammaincinv(np.maximum(found, 1), TAIL), 0.0)
    return low, gammaincinv(found + 1.0, 1 - TAIL)


def kappa_of_sum(found: float, expected: Floats) -> float:
    """κ with which Σ (1 - exp(-κ λ)) is the number that was found; within its bounds."""
    from scipy.optimize import brentq

    def surplus(log_kappa: float) -> float:
        return float(chance_of(expected, np.exp(log_kappa)).sum()) - found

    low, high = np.log(SMALLEST_KAPPA), np.log(LARGEST_KAPPA)
    if surplus(low) >= 0:
        return SMALLEST_KAPPA
    return LARGEST_KAPPA if surplus(high) <= 0 else float(np.exp(brentq(surplus, low, high, xtol=1e-10)))


def kappa_of_members(found: Counts, expected: Floats, source: str) -> Kappa | None:
    """κ of sequences, int64 and float64 [sequences], of which some were found; None if these are too few."""
    number = int(found.sum())
    if number < FEWEST_HITS:
        return None
    low, high = (float(end[0]) for end in interval(np.array([number])))
    value, of_low, of_high = (kappa_of_sum(of, expected) for of in (number, low, high))
    return Kappa(value, of_low, of_high, source)


def kappa_of_epitopes(found: Counts, expected: Floats) -> Kappa | None:
    """κ as the median of hits found over hits expected, of epitopes of which chance makes enough."""
    enough = expected >= FEWEST_EXPECTED
    if enough.sum() < FEWEST_EPITOPES:
        return None
    # The median of a Poisson number, as if it were spread over the integer's width, is its mean less a sixth.
    ratios = np.sort((found[enough] + 1 / 6) / expected[enough])
    half = 0.98 * np.sqrt(len(ratios))
    ends = [int(np.clip(round(len(ratios) / 2 + side * half), 0, len(ratios) - 1)) for side in (-1, 1)]
    return Kappa(float(np.median(ratios)), float(ratios[ends[0]]), float(ratios[ends[1]]), "epitopes")


def dispersion(found: Counts, expected: Floats, *, null: bool) -> float:
    """φ: the variance of the numbers of hits over their mean, at least 1; 1 if there are too few epitopes.

    null  all epitopes are without hits other than by chance; else a median tells, of those that chance often hits
    """
    if not null:
        enough = expected >= FEWEST_EXPECTED
        found, expected = found[enough], expected[enough]
    if len(found) < FEWEST_EPITOPES or not expected.sum():
        return 1.0
    squares = (found - expected) ** 2
    value = squares.sum() / expected.sum() if null else np.median(squares / expected) / MEDIAN_OF_SQUARE
    return max(1.0, float(value))


@dataclass(frozen=True)
class Difference:
    """Whether κ differs between classes of sequences: Pearson's χ² of hits found and expected, over the dispersion.

    p_value  1 if there are fewer than two classes
    """

    chi_square: float
    classes: int
    p_value: float


def difference(found: Counts, expected: Floats, phi: float) -> Difference:
    """Whether hits found and expected, int64 and float64 [classes], have the same ratio in all classes."""
    from scipy.special import gammaincc

    of_one = expected * (found.sum() / max(float(expected.sum()), 1e-300))
    few = of_one < FEWEST_IN_CLASS
    k, mean = (np.append(values[~few], values[few].sum()) for values in (found, of_one))
    k, mean = (values[mean > 0] for values in (k, mean))
    square = float(((k - mean) ** 2 / mean).sum() / phi)
    freedom = len(k) - 1
    return Difference(square, len(k), float(gammaincc(freedom / 2, square / 2)) if freedom > 0 else 1.0)


def decoys_pass(called: Bools, decoy: Bools, max_q: float) -> bool | None:
    """Whether decoys are called at their nominal share at most; None without decoys.

    called, decoy  bool [epitopes]
    """
    return bool((called & decoy).sum() <= max_q * called.sum()) if decoy.any() else None


def decoy_hits_pass(called: int, of_decoys: int, max_q: float) -> bool:
    """Whether of the hits that are called no more are of decoys than a false discovery rate of `max_q` allows.

    Decoys are among the false ones, so their number is at most binomial; it is doubted below `UNLIKELY`.
    """
    from scipy.special import bdtrc

    return of_decoys == 0 or float(bdtrc(of_decoys - 1, called, max_q)) >= UNLIKELY


def tail(found: Counts, expected: Floats, phi: float, many: list[Floats | None]) -> tuple[Floats, Floats]:
    """P(K >= found) and P(K > found).

    phi   of 1: sums of independent indicators.  More: negative binomial, of this variance over the mean
    many  the probabilities of each sum that is not nearly Poisson, else None
    """
    at_least, more = (_tail(found + k, expected, phi) for k in (0, 1))
    for row, probabilities in enumerate(many):
        if probabilities is not None and phi <= 1:
            at_least[row], more[row] = _exact_tails(int(found[row]), probabilities)
    return at_least, more


def _tail(found: Counts, expected: Floats, phi: float) -> Floats:
    if phi <= 1:
        return poisson_tail(found, expected)
    from scipy.special import betainc

    size = np.maximum(expected, 1e-300) / (phi - 1)
    return np.where(found > 0, betainc(np.maximum(found, 1), size, 1 - 1 / phi), 1.0)


def _exact_tails(found: int, probabilities: Floats) -> tuple[float, float]:
    """P(K >= found), P(K > found) of a sum of indicators: those with large probabilities one by one, others Poisson."""
    from scipy.special import gammainc

    large = probabilities > EXACT
    of_large = np.zeros(found + 2)
    of_large[0] = 1.0
    # The last entry is that of more than `found`.
    for p in probabilities[large].tolist():
        moved = p * of_large
        of_large -= moved
        of_large[1:] += moved[:-1]
        of_large[-1] += moved[-1]
    rest = float(probabilities[~large].sum())
    missing = np.arange(found + 1, -1, -1)
    of_rest = np.where(missing > 0, gammainc(np.maximum(missing, 1), rest), 1.0)
    # One less is missing to `found`.
    return float(of_large[:-1] @ of_rest[1:] + of_large[-1]), float(of_large @ of_rest)


def false_discovery_rates(order_of_hits: Floats, order_of_all: Floats, chance: Floats) -> Floats:
    """The share of hits by chance among those that come as early or earlier, float64 [hits], made monotone.

    order_of_hits  float64 [hits]: the smaller, the earlier
    order_of_all   float64 [sequences]: of all that could be hits; those of the same order may be one
    chance         float64 [sequences]: π, added up

    After the target-decoy estimate of Elias and Gygi (Nature Methods 4:207, 2007), with decoys replaced by their mean.
    """
    sorted_hits = np.sort(order_of_hits)
    upto = np.cumsum(np.bincount(np.searchsorted(sorted_hits, order_of_all), chance, len(sorted_hits) + 1))[:-1]
    # Those that come first at each hit: ties count together.
    last = np.searchsorted(sorted_hits, sorted_hits, side="right") - 1
    rates = np.minimum.accumulate((upto[last] / (last + 1))[::-1])[::-1]
    return np.asarray(np.minimum(rates, 1.0)[np.searchsorted(sorted_hits, order_of_hits)])
