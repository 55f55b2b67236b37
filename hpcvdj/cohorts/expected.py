"""How many sequences chance puts into 1, 2, … of several individuals.

An individual of n distinct junctions has a sequence of probability p with π = 1 - exp(-n p).  The number of individuals
that have it is Poisson-binomial; f_m(p) is its probability of m.  Selection lets a share q of all sequences survive, in
everybody, whose probabilities become p / q; a factor Q makes sequences more or less frequent: p' = p Q / q.  The
expected number of sequences in exactly m individuals is a mean over draws from p (Elhanati et al., Immunological
Reviews 284:167, 2018):

    M_m = Σ q f_m(p') = E[Q f_m(p') / p']
"""

from functools import cached_property

import numpy as np

from hpcvdj.chance.depth import GRID, POINTS, Counts, Draws, Floats, on_grid
from hpcvdj.cohorts.settings import SMALLEST_Q
from hpcvdj.errors import InputError, option
from hpcvdj.kernels.carriers import numbers_of_carriers, products_of_pairs, weighted_sums

BOOTSTRAPS = 200

_MOST_STEPS = 200


class Numbers:
    """The number of individuals that have a sequence, by its probability."""

    def __init__(self, sizes: Floats) -> None:
        # Sorted, so that the order of individuals does not change a digit.
        self._own = np.asarray(sizes, dtype=np.float64)
        self.individuals = len(sizes)
        chance = np.zeros((POINTS, self.individuals + 1))
        numbers_of_carriers(np.exp(GRID), np.sort(self._own), chance)
        self.chance: Floats = chance
        """f_m, float64 [grid, individuals + 1]."""

    def spectrum(self, weights: Floats) -> Floats:
        """M_0, M_1, … from the weights of draws on the grid, float64 [individuals + 1]."""
        return np.asarray(self.spectra(weights[np.newaxis])[0])

    def spectra(self, weights: Floats) -> Floats:
        """The same of several sets of weights, float64 [sets, grid]: float64 [sets, individuals + 1]."""
        found = np.zeros((len(weights), self.individuals + 1))
        weighted_sums(weights, self.chance, found)
        return found

    def overlap(self, weights: Floats) -> Floats:
        """Expected sequences that each two individuals have, [individuals, individuals]; on the diagonal each one."""
        used = weights != 0
        has = -np.expm1(-np.exp(GRID[used]) * self._own[:, np.newaxis])
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
        # Below the smallest number of float64: exp of it is 0, and it can be multiplied by 0.
        return np.concatenate([np.zeros((POINTS, 1)), np.maximum(log_tail, -1e4)], axis=1)

    def p_values(self, log_p: Floats, holders: Counts) -> Floats:
        """P(at least so many individuals have it | at least one has), for each sequence."""
        place, share = on_grid(log_p)
        tail = self._log_tail
        return np.exp(tail[place, holders] * (1 - share) + tail[place + 1, holders] * share)

    def expected(self, log_p: Floats) -> Floats:
        """Σ π: the expected number of individuals that have each sequence."""
        p, total = np.exp(log_p), np.zeros(len(log_p))
        for size in np.sort(self._own):
            total -= np.expm1(-size * p)
        return total

    def log_p_of_holders(self) -> Floats:
        """log of the probability with which 0, 1, … individuals are expected, float64 [individuals + 1].

        For all individuals, for which there is none, that of half an individual less: a lower bound.
        """
        held = int((self._own > 0).sum())
        found = np.full(self.individuals + 1, np.nan)
        if held:
            wanted = np.minimum(np.arange(1, held + 1), held - 0.5)
            # From below, where the expected number is at most wanted, Newton's steps in log p do not go too far.
            log_p = np.log(wanted / self._own.sum())
            for _ in range(_MOST_STEPS):
                missing = wanted - self.expected(log_p)
                if (missing <= 1e-12 * wanted).all():
                    break
                log_p += missing / self._slope(log_p)
            found[1 : held + 1] = log_p
        return found

    def _slope(self, log_p: Floats) -> Floats:
        """The derivative of `expected` by log p."""
        p, total = np.exp(log_p), np.zeros(len(log_p))
        for size in np.sort(self._own):
            total += size * p * np.exp(-size * p)
        return total


def survivors_share(observed: Counts, numbers: Numbers, draws: Draws) -> tuple[float, bool]:
    """q by the Poisson likelihood of the numbers of sequences in 2, 3, … individuals; and whether it is 1, its largest.

    observed  int64 [individuals + 1]

    InputError if q would be at its smallest.
    """
    from scipy.optimize import minimize_scalar

    if not observed[2:].any():
        return 1.0, True

    def deficit(log_q: float) -> float:
        expected = np.maximum(numbers.spectrum(draws.on_grid(log_q))[2:], 1e-300)
        return float((expected - observed[2:] * np.log(expected)).sum())

    tried = np.linspace(np.log(SMALLEST_Q), 0.0, 41)
    values = [deficit(log_q) for log_q in tried]
    best = int(np.argmin(values))
    if best == 0:
        raise InputError(
            f"more sequences are shared than selection explains, even if it left only {SMALLEST_Q:g} of all sequences: "
            "are the cells sorted by what they bind, is the model that of the species and locus, is each individual "
            f"given once? {option('q')} sets the share, and then tests against it"
        )
    low, high = tried[max(0, best - 1)], tried[min(len(tried) - 1, best + 1)]
    found = minimize_scalar(deficit, bounds=(low, high), method="bounded", options={"xatol": 1e-7})
    at_bound = values[-1] <= found.fun
    return (1.0, True) if at_bound else (float(np.exp(found.x)), False)


def band(numbers: Numbers, draws: Draws, log_q: float, seed: int) -> tuple[Floats, Floats]:
    """The 95 % interval of the spectrum for the draws that were made, by drawing again from them (bootstrap)."""
    rng = np.random.default_rng([seed, 2])
    size = len(draws.log_p)
    times = (np.bincount(rng.integers(0, size, size), minlength=size) for _ in range(BOOTSTRAPS))
    weights = np.array(list(draws.drawn_again(log_q, times)))
    low, high = np.quantile(numbers.spectra(weights), [0.025, 0.975], axis=0)
    return low, high
