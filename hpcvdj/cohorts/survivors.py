"""The share of survivors q and the recombinations of each individual, which are fitted together.

The fewer sequences survive, the more recombinations individuals need for their junctions.
"""

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.depth import STEP, Draws, recombinations_of
from hpcvdj.chance.p_values import Counts, Floats
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.cohorts.expected import Numbers, survivors_share
from hpcvdj.errors import InputError, log, option

MOST_STEPS, FIRST_STEPS, SETTLED = 20, 5, 1e-6
"""The largest number of steps in which q and the recombinations are computed from each other, how many of them must
settle q, and the change of ln q that settles it.  After these, a tenth of the grid's step is enough."""

TYPICAL = 20
"""The largest number of individuals that say how much the recombinations grow when q becomes smaller."""


def recombinations(cohort: Cohort, junctions: Draws, log_q: float) -> Floats:
    """Return the recombinations of each individual at ln q, float64 [individuals]; errors of `recombinations_of`."""
    return recombinations_of(cohort.sizes, junctions.on_grid(log_q), cohort.names)


class Depth:
    """The recombinations of the individuals of a cohort at any ln q, and how much they grow.

    at  ln q of `sizes`, with which other values are compared
    """

    def __init__(self, cohort: Cohort, junctions: Draws) -> None:
        self._cohort, self._draws = cohort, junctions
        # Of many individuals, some of all sizes say how the recombinations grow.
        ascending = np.sort(cohort.sizes[cohort.sizes > 0])
        self._some = ascending[np.linspace(0, len(ascending) - 1, min(len(ascending), TYPICAL)).astype(int)]
        self._logs: dict[float, float] = {}
        self.at = 0.0

    def sizes(self) -> Floats:
        """Return the recombinations of each individual at ln q = `at`, float64 [individuals]."""
        return recombinations(self._cohort, self._draws, self.at)

    def deeper(self, log_q: float) -> float:
        """Return ln of the recombinations at ln q over those at `at`; infinity if no number makes the junctions."""
        return self._log(log_q) - self._log(self.at)

    def _log(self, log_q: float) -> float:
        if log_q not in self._logs:
            try:
                total = recombinations_of(self._some, self._draws.on_grid(log_q), [""] * len(self._some)).sum()
            except InputError:
                total = np.inf
            self._logs[log_q] = float(np.log(total))
        return self._logs[log_q]


def fitted_share(
    observed: Counts, individuals: NDArray[np.bool_], unit: Draws, depth: Depth, fixed_q: float | None
) -> tuple[float, bool, Floats]:
    """Fit q to the sequences of some individuals, and with it the recombinations of all.

    The likelihood of each q is that with the recombinations that belong to it.  With those of the step before, steps
    run away from the solution where few sequences are frequent.

    observed  int64: sequences that 0, 1, … of the `individuals` have, without likely copies
    unit      draws of these sequences
    depth     its `at` is then ln q of the recombinations that are returned
    fixed_q   the q that the user gives; None to fit it

    Returns q, whether it is at its upper bound, 1, and the recombinations, float64 [all individuals].
    """
    q, at_bound = fixed_q or 1.0, False
    for step in range(MOST_STEPS):
        depth.at = float(np.log(q))
        sizes = depth.sizes()
        if fixed_q is not None:
            return q, at_bound, sizes
        q, at_bound = survivors_share(observed, Numbers(sizes[individuals]), unit, depth.deeper)
        # On the grid of probabilities, steps may go to and fro by a thousandth.
        if abs(np.log(q) - depth.at) < (SETTLED if step < FIRST_STEPS else STEP / 10):
            return q, at_bound, sizes
    before = float(np.exp(depth.at))
    log.warning("the share of survivors is not settled: %.3g, then %.3g; %s sets it", before, q, option("q"))
    return before, at_bound, sizes
