"""The number of sequences that chance puts into 1, 2, … of several individuals.

An individual with n recombinations has a sequence of probability p with the chance π = 1 - exp(-n p).  The number of
individuals that have the sequence is Poisson-binomial; f_m(p) is the probability that it is m.  Selection lets a share
q of all sequences survive, the same ones in all individuals, and their probabilities become p / q.  A factor Q makes
sequences more or less frequent: p' = p Q / q.  The expected number of sequences in exactly m individuals is a mean over
draws from p (Elhanati et al., Immunological Reviews 284:167, 2018):

    M_m = Σ q f_m(p') = E[Q f_m(p') / p']
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcvdj.chance.depth import GRID, POINTS, Draws, on_grid
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.ranking import Z
from hpcvdj.cohorts.settings import SMALLEST_Q
from hpcvdj.errors import InputError, option
from hpcvdj.kernels.carriers import numbers_of_carriers, products_of_pairs
from hpcvdj.kernels.sums import mixed

BOOTSTRAPS = 200

STEP_OF_Q = 0.01
"""By how much ln q differs where the growth of the expected numbers with q is measured."""

TRIED = 41
"""How many q are tried, from the smallest to 1, before the best is looked for between them."""

STEPS_TO_END = 100
"""In how many steps the end of an interval of q is looked for, from q to the largest or smallest q."""

MARGIN = 1e-6
"""By how much the bounds of a ln p are wider than they are without rounding."""

AS_LIKELY = 8.0
"""By how much −ln likelihood of the true q may be above that of another q; in 6 of 10^5 fits, it is more."""

_IMPOSSIBLE = 1e300
"""Finite, so that steps between this number and others are numbers."""

FEWEST_IN_CLASS = 5.0
"""The expected number of sequences in the last class of a fit of q, if all sequences survive."""


class Numbers:
    """The number of individuals that have a sequence, by its probability."""

    def __init__(self, sizes: Floats) -> None:
        self._sizes = np.asarray(sizes, dtype=np.float64)
        # Sorted, so that the order of individuals does not change a digit.
        self._ascending = np.sort(self._sizes)
        self.individuals = len(sizes)
        self.chance: Floats = np.zeros((POINTS, self.individuals + 1))
        """f_m, float64 [grid, individuals + 1]."""
        numbers_of_carriers(np.exp(GRID), self._ascending, self.chance)

    def spectrum(self, weights: Floats) -> Floats:
        """Return M_0, M_1, … from the weights of draws on the grid, float64 [individuals + 1]."""
        return np.asarray(self.spectra(weights[np.newaxis])[0])

    def spectra(self, weights: Floats) -> Floats:
        """Return the spectra of several sets of weights, float64 [sets, grid], as float64 [sets, individuals + 1]."""
        return mixed(weights, self.chance)

    def overlap(self, weights: Floats) -> Floats:
        """Return the expected number of sequences that two individuals share, float64 [individuals, individuals].

        The diagonal has the number of sequences of each individual.
        """
        used = weights != 0
        has = -np.expm1(-np.exp(GRID[used]) * self._sizes[:, np.newaxis])
        both = np.empty((self.individuals, self.individuals))
        products_of_pairs(weights[used], has, both)
        both[np.diag_indices(self.individuals)] = (has * weights[used]).sum(axis=1)
        return both

    @cached_property
    def _log_tail(self) -> Floats:
        """log P(at least m | at least 1), float64 [grid, individuals + 1]."""
        tail = np.cumsum(self.chance[:, :0:-1], axis=1)[:, ::-1]
        with np.errstate(divide="ignore"):
            log_tail = np.log(tail / tail[:, :1])
        # A finite number, whose exponential is 0: infinity must not be multiplied by 0.
        return np.concatenate([np.zeros((POINTS, 1)), np.maximum(log_tail, -1e4)], axis=1)

    def p_values(self, log_p: Floats, holders: Counts) -> Floats:
        """Return P(at least `holders` individuals have a sequence | at least one has it), float64 [sequences]."""
        below, share = on_grid(log_p)
        tail = self._log_tail
        return np.exp(tail[below, holders] * (1 - share) + tail[below + 1, holders] * share)

    def expected(self, log_p: Floats) -> Floats:
        """Return Σ π, the expected number of individuals that have each sequence."""
        p, total = np.exp(log_p), np.zeros(len(log_p))
        for size in self._ascending:
            total -= np.expm1(-size * p)
        return total

    def log_p_of_holders(self) -> Floats:
        """Return log p of a sequence that 0, 1, … individuals are expected to have, float64 [individuals + 1].

        No p makes all individuals have a sequence; the p for half an individual less is a lower bound.
        """
        # Slow to import.
        from scipy.optimize.elementwise import find_root

        sizes = self._sizes[self._sizes > 0]
        held, log_p_of = len(sizes), np.full(self.individuals + 1, np.nan)
        if held:
            wanted = np.minimum(np.arange(1, held + 1), held - 0.5)
            # Each individual has it with at most n p, and with at least the chance of the smallest individual.
            low, high = np.log(wanted / sizes.sum()), np.log(-np.log1p(-wanted / held) / sizes.min())
            ends = low - MARGIN, high + MARGIN
            log_p_of[1 : held + 1] = find_root(lambda log_p, n: self.expected(log_p) - n, ends, args=(wanted,)).x
        return log_p_of


def _deeper_spectrum(numbers: Numbers, draws: Draws, log_q: float, log_deeper: float) -> Floats:
    """Return the spectrum at ln q of individuals with so many times the recombinations of `numbers`."""
    # f_m depends on the products n p', so more recombinations are the same as larger probabilities.
    return np.asarray(numbers.spectrum(draws.on_grid(log_q - log_deeper)) * np.exp(log_deeper))


def _last_class(numbers: Numbers, draws: Draws) -> int:
    """Return the last of the classes 0, 1, … of a fit of q: sequences in 2, 3, … individuals.

    Large numbers of individuals are one class: a few sequences that an antigen made public, of which next to none are
    expected, would otherwise decide q, and hide themselves.
    """
    without = np.cumsum(numbers.spectrum(draws.on_grid(0.0))[:1:-1])[::-1]
    return max(0, int(np.searchsorted(-without, -FEWEST_IN_CLASS, side="right")) - 1)


def _in_classes(spectrum: Floats, last: int) -> Floats:
    return np.append(spectrum[2 : 2 + last], spectrum[2 + last :].sum())


def _deficit(
    observed: Counts, numbers: Numbers, draws: Draws, deeper: Callable[[float], float]
) -> Callable[[float], float]:
    """Return the negative Poisson log-likelihood of ln q, without a constant; `_IMPOSSIBLE` where q is impossible."""
    last = _last_class(numbers, draws)
    in_class = _in_classes(observed.astype(np.float64), last)

    def deficit(log_q: float) -> float:
        log_deeper = deeper(log_q)
        if not np.isfinite(log_deeper):
            return _IMPOSSIBLE
        expected = np.maximum(_in_classes(_deeper_spectrum(numbers, draws, log_q, log_deeper), last), 1e-300)
        return float((expected - in_class * np.log(expected)).sum())

    return deficit


def survivors_share(
    observed: Counts, numbers: Numbers, draws: Draws, deeper: Callable[[float], float]
) -> tuple[float, bool]:
    """Fit q by the Poisson likelihood of the numbers of sequences in 2, 3, … individuals.

    Where few sequences make much of all recombinations, two q may explain the number of sequences that two individuals
    share, one of them with far fewer sequences of one individual.  Of such q, the fit is the one that explains these
    best.  Otherwise they take no part: they are so many that small faults of the model would decide.

    observed  int64 [individuals + 1]
    deeper    the logarithm of how many times as many recombinations individuals have at a ln q, for the same number of
              distinct junctions, as `numbers` says; infinity if no number of recombinations makes so many

    Returns q, and whether it is at its upper bound, 1.  Raises InputError if it is at its lower bound.
    """
    from scipy.optimize import minimize_scalar

    if not observed[2:].any():
        return 1.0, True

    deficit = _deficit(observed, numbers, draws, deeper)
    tried = np.linspace(np.log(SMALLEST_Q), 0.0, TRIED)
    values = np.array([deficit(log_q) for log_q in tried])
    padded = np.pad(values, 1, constant_values=np.inf)
    fits: list[tuple[float, float, int]] = []
    for k in np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]) & (values < _IMPOSSIBLE)).tolist():
        low, high = tried[max(0, k - 1)], tried[min(len(tried) - 1, k + 1)]
        minimum = minimize_scalar(deficit, bounds=(low, high), method="bounded", options={"xatol": 1e-7})
        at_end = k == len(tried) - 1 and values[-1] <= minimum.fun
        fits.append((values[-1], 0.0, k) if at_end else (float(minimum.fun), float(minimum.x), k))
    likely = [fit for fit in fits if fit[0] <= min(fits)[0] + AS_LIKELY]

    def surplus(log_q: float) -> float:
        return float(abs(_deeper_spectrum(numbers, draws, log_q, deeper(log_q))[1] - observed[1]))

    _, log_q, k = min(likely, key=lambda fit: surplus(fit[1])) if len(likely) > 1 else likely[0]
    if k == 0:
        raise InputError(
            f"more sequences are shared than selection explains, even if it left only {SMALLEST_Q:g} of all sequences: "
            "are the cells sorted by what they bind, is the model that of the species and locus, is each individual "
            f"given once? {option('q')} sets the share, and then tests against it"
        )
    return float(np.exp(log_q)), log_q == 0.0


@dataclass(frozen=True)
class Lots:
    """How much a fitted ln q depends on which sequences survive, if each survives by lot, with the chance q.

    Where a few sequences make much of all recombinations, their lots change which junctions individuals have, which
    they share, and the share of recombinations that survives.

    squares  Σ h² over amino-acid sequences.  One that survives raises ln q, less that of the share which survives, by
             (1 / q - 1) h; one that does not lowers it by h
    counted  the part of Σ h² that the Poisson variance of ln q has already
    """

    squares: float
    counted: float

    def variance(self, q: float) -> float:
        """Return what lots add to the Poisson variance of ln q, if a share q survives."""
        return max(0.0, (1 / q - 1) * self.squares - self.counted)


def _effect_of_classes(
    numbers: Numbers, draws: Draws, at: float, deeper: Callable[[float], float], step: float
) -> tuple[Floats, Floats]:
    """Return the expected numbers of sequences in the classes at ln q = `at`, and by how much one more raises ln q.

    step  of ln q, to a q that is possible; otherwise nothing has an effect
    """
    last = _last_class(numbers, draws)
    here = np.maximum(_in_classes(_deeper_spectrum(numbers, draws, at, deeper(at)), last), 1e-300)
    if not np.isfinite(beyond := deeper(at + step)):
        return here, np.zeros_like(here)
    slope = _in_classes(_deeper_spectrum(numbers, draws, at + step, beyond), last) - here
    information = float((slope**2 / here).sum())
    return here, step * slope / here / information if information else np.zeros_like(here)


def lots_of(
    numbers: Numbers, unit: Draws, junctions: Draws, spelled: Counts, q: float, deeper: Callable[[float], float]
) -> Lots:
    """Return how much a fitted q depends on which sequences survive, to first order.

    numbers    with the recombinations of the individuals to which q is fitted
    unit       draws of the sequences that are compared
    junctions  the same draws, as junctions in nucleotides with their genes
    spelled    int64 [draws]: numbers of their amino-acid sequences, which survive, or not, with all genes
    deeper     as of `survivors_share`
    """
    at, people = float(np.log(q)), np.arange(numbers.individuals + 1)
    in_class, of_class = _effect_of_classes(numbers, unit, at, deeper, STEP_OF_Q)
    last = len(in_class) - 1
    if not of_class.any():
        return Lots(0.0, 0.0)
    deep = _in_classes(_deeper_spectrum(numbers, unit, at, deeper(at) + STEP_OF_Q), last)
    # By how much one more junction of an individual raises ln q.
    has, has_deep = (_deeper_spectrum(numbers, junctions, at, deeper(at) + step) @ people for step in (0.0, STEP_OF_Q))
    of_junction = -float(of_class @ (deep - in_class)) / float(has_deep - has)
    of_shared = numbers.chance @ np.append([0.0, 0.0], of_class[np.minimum(people[:-2], last)])
    h = -unit.weight / unit.weight.sum()
    shift, p = at - deeper(at), np.exp(GRID)
    for draws, effect in ((unit, of_shared), (junctions, of_junction * (numbers.chance @ people))):
        below, share = on_grid(draws.log_p - shift)
        scaled = np.exp(deeper(at)) * effect / p
        h = h + draws.weight * (scaled[below] * (1 - share) + scaled[below + 1] * share)
    # Two draws of a sequence estimate the square of its h without the bias that the square of one draw has.
    squares = float((np.bincount(spelled, h) ** 2 - np.bincount(spelled, h**2)).sum()) * len(h) / max(1, len(h) - 1)
    counted = float(np.exp(deeper(at)) * (unit.on_grid(shift) * of_shared**2).sum())
    return Lots(max(0.0, squares), counted)


def share_interval(
    observed: Counts, numbers: Numbers, draws: Draws, q: float, redrawn: Floats, deeper: Callable[[float], float],
    lots: Lots,
) -> tuple[float, float]:  # fmt: skip
    """Return the 95 % interval of a fitted q, by the likelihood ratio, by the error of the draws, and by lots.

    redrawn  the weights of other draws on the grid at q, as `bootstrapped` returns them
    deeper   as of `survivors_share`
    """
    from scipy.optimize import brentq

    deficit, at = _deficit(observed, numbers, draws, deeper), float(np.log(q))
    allowed = deficit(at) + Z**2 / 2

    def end(bound: float) -> float:
        """How far ln q can be from `at` towards a bound; what is as likely behind less likely ones does not count."""
        before, steps = at, int(TRIED * abs(bound - at) / -np.log(SMALLEST_Q))
        for log_q in np.linspace(at, bound, 2 + steps)[1:].tolist():
            if deficit(log_q) > allowed:
                return abs(float(brentq(lambda log_q: deficit(log_q) - allowed, log_q, before)) - at)
            before = log_q
        return abs(bound - at)

    # By how much the ln q that is fitted to the expected numbers differs between draws.
    in_class, of_class = _effect_of_classes(numbers, draws, at, deeper, -STEP_OF_Q)
    of_draws = np.array([_in_classes(spectrum, len(in_class) - 1) for spectrum in numbers.spectra(redrawn)])
    relative = of_draws / np.maximum(of_draws.mean(axis=0), 1e-300)
    spread = Z * float(np.std(relative @ (of_class * in_class)))

    def with_lots(bound: float) -> float:
        """The end of the interval towards a bound: the farthest share whose survivors could make this q."""
        likely = end(bound) ** 2 + spread**2

        def beyond(log_q: float) -> float:
            return float((log_q - at) ** 2 - likely - Z**2 * lots.variance(np.exp(log_q)))

        # Lots alone could make any q of a tiny share, so the interval ends where it does first.
        before = at
        for log_q in np.linspace(at, bound, STEPS_TO_END + 1)[1:].tolist():
            if beyond(log_q) > 0:
                return float(np.exp(brentq(beyond, log_q, before)))
            before = log_q
        return float(np.exp(bound))

    return with_lots(float(np.log(SMALLEST_Q))), with_lots(0.0)


def bootstrapped(draws: Draws, log_q: float, seed: int) -> Floats:
    """Return the weights on the grid of draws that are drawn again from the draws, float64 [BOOTSTRAPS, grid]."""
    rng = np.random.default_rng([seed, 2])
    size = len(draws.log_p)
    times = (np.bincount(rng.integers(0, size, size), minlength=size) for _ in range(BOOTSTRAPS))
    return np.array(list(draws.drawn_again(log_q, times)))


def band(numbers: Numbers, redrawn: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval of the spectrum from the weights that `bootstrapped` returns."""
    low, high = np.quantile(numbers.spectra(redrawn), [0.025, 0.975], axis=0)
    return low, high
