"""The number of recombinations of an individual, from its number of distinct junctions.

Recombination makes some junctions again and again.  So n recombinations make Σ (1 - exp(-n p)) distinct junctions,
which are fewer than n: hardly fewer in human TRB, much fewer in loci with little diversity, such as IGK.  The sum over
all junctions is computed as a mean over junctions that are drawn.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.errors import InputError

LOWEST, HIGHEST, STEP = -80.0, 10.0, 0.02
"""The grid of log p' on which f_m is tabulated.  With linear interpolation, p-values of 17 individuals are accurate to
0.1 %."""

MOST_REPEATED = 1e3
"""The largest plausible ratio of recombinations to distinct junctions."""

_MOST_STEPS = 100


@dataclass(frozen=True)
class Draws:
    """Sequences drawn from a model.

    log_p   float64 [draws]: natural logarithm of p Q
    weight  float64 [draws]: Q / draws
    """

    log_p: Floats
    weight: Floats

    @staticmethod
    def of(p: Floats, log_factor: Floats) -> "Draws":
        """Return draws of these probabilities, with ln Q, float64 [draws] each."""
        return Draws(np.log(p) + log_factor, np.exp(log_factor) / len(p))

    def only(self, kept: NDArray[np.bool_]) -> "Draws":
        """Return the draws with no weight for those that are not `kept`, bool [draws]."""
        return Draws(self.log_p, np.where(kept, self.weight, 0.0))

    def on_grid(self, log_q: float) -> Floats:
        """Return the weights, float64 [grid], spread on the grid of log p' and divided by p'."""
        return next(self.drawn_again(log_q, [np.ones(len(self.log_p), dtype=np.int64)]))

    def drawn_again(self, log_q: float, numbers: Iterable[Counts]) -> Iterator[Floats]:
        """Yield these weights for several `numbers`, int64 [draws], of how often each draw counts."""
        below, share = on_grid(self.log_p - log_q)
        above, p = below + 1, np.exp(GRID)
        for times in numbers:
            weight = self.weight * times
            spread = np.bincount(below, weight * (1 - share), POINTS) + np.bincount(above, weight * share, POINTS)
            yield np.asarray(spread / p)


GRID: Floats = np.arange(LOWEST, HIGHEST + STEP / 2, STEP)
POINTS = len(GRID)


def on_grid(log_p: Floats) -> tuple[Counts, Floats]:
    """Return the index of the grid point below each value, and the fraction of the way to the next point."""
    steps = (np.clip(log_p, LOWEST, HIGHEST) - LOWEST) / STEP
    below = np.minimum(steps.astype(np.int64), POINTS - 2)
    return below, np.minimum(steps - below, 1.0)


@dataclass(frozen=True)
class Holders:
    """The expected number of individuals that have a junction: Σ (1 - exp(-n p)) over their recombinations n.

    recombinations  the sum over all individuals
    log_number      float64 [grid]: natural logarithm of the expected number, by log p
    slope           float64 [grid]: its derivative; 1 if p is small, 0 if all individuals have the junction
    """

    recombinations: float
    log_number: Floats
    slope: Floats

    @staticmethod
    def of(recombinations: Floats) -> "Holders":
        """Tabulate for individuals with so many recombinations, float64 [individuals], not all 0."""
        p = np.exp(GRID)
        number, growth = np.zeros(POINTS), np.zeros(POINTS)
        # Sorted, so that the order of individuals does not change a digit.
        for n in np.sort(recombinations):
            number -= np.expm1(-n * p)
            growth += n * p * np.exp(-n * p)
        return Holders(float(np.sort(recombinations).sum()), np.log(number), growth / number)

    def expected(self, log_p: Floats) -> tuple[Floats, Floats]:
        """Interpolate `log_number` and `slope` at any log p, float64 [junctions]."""
        below, share = on_grid(log_p)
        log_number, slope = (
            values[below] * (1 - share) + values[below + 1] * share for values in (self.log_number, self.slope)
        )
        return log_number + np.minimum(log_p - LOWEST, 0.0), slope


def distinct_of(recombinations: float, weights: Floats) -> float:
    """Return the number of distinct junctions of so many recombinations: Σ (1 - exp(-n p')).

    weights  of the draws on the grid, as `Draws.on_grid` returns them
    """
    return float(-(weights * np.expm1(-recombinations * np.exp(GRID))).sum())


def recombinations_of(distinct: Counts, weights: Floats, names: Sequence[str]) -> Floats:
    """Return the number of recombinations of each individual, float64 [individuals], from its distinct junctions.

    distinct  int64 [individuals]
    weights   of draws of junctions, in nucleotides and with their genes, on the grid
    names     of the individuals, for the error

    Raises InputError if the model makes too few different junctions.
    """
    p = np.exp(GRID)
    solved: dict[int, float] = {}
    for wanted, name in zip(distinct.tolist(), names, strict=True):
        if wanted in solved:
            continue
        n = float(wanted)
        # The number of distinct junctions is concave in n, so Newton's steps from below never overshoot.
        for _ in range(_MOST_STEPS):
            missing = wanted - distinct_of(n, weights)
            if missing <= 1e-9 * wanted:
                break
            slope = float((weights * p * np.exp(-n * p)).sum())
            n = n + missing / slope if slope else np.inf
            if not n <= MOST_REPEATED * max(wanted, 1):
                raise InputError(
                    f"{name}: has {wanted:,} distinct junctions, and the model hardly makes so many; is it the model "
                    "of the species and locus?"
                )
        solved[wanted] = n
    return np.array([solved[wanted] for wanted in distinct.tolist()])
