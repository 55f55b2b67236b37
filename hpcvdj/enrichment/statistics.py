"""The statistics of neighbourhoods: selection, p-values, and false discovery rates."""

from contextlib import suppress
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Counts, Estimate, Floats
from hpcvdj.errors import InputError, TooFewError, option
from hpcvdj.kernels.neighbours.exchanged_pairs import within_one_exchange

FEWEST = 200
"""How many clonotypes an estimate of κ needs."""

FEWEST_WITH_NEIGHBOURS = 10
"""How many clonotypes with a neighbour the estimate for one length needs."""

SMALLEST_KAPPA, LARGEST_KAPPA = 1e-3, 1e4

TAIL = 0.025
"""Probability outside the interval of κ, on each side."""


def selection_factor(neighbours: Counts, expected: Floats, junctions: Counts, share: float = 1.0) -> Estimate:
    """Estimate κ, the factor of the expected numbers of neighbours that explains how many junctions have no neighbour.

    neighbours  int64 [clonotypes]: the number of neighbours
    expected    float64 [clonotypes]: λ, the expected number with κ = 1
    junctions   int64 [clonotypes]: the number of junctions; those of one clonotype are neighbours of each other
    share       the share that these clonotypes are of all clonotypes that can be neighbours

    κ solves Σ exp(-κ λ) = the number of junctions without neighbours.  Clusters hardly change this number.  The
    equation counts junctions, as a clonotype of several junctions would count once, though none of them is without
    neighbours.  If no clonotype has a neighbour, κ is the largest value for which this has a probability of `TAIL`.
    The interval assumes that pairs of clonotypes are independent.
    InputError if there are fewer than `FEWEST` clonotypes, or if κ would be at a bound.
    """
    if len(neighbours) < FEWEST:
        raise TooFewError(
            f"{len(neighbours):,} clonotypes, too few to estimate selection (at least {FEWEST}); give more rows, or "
            f"{option('kappa')}"
        )
    alone = int((neighbours == 0).sum())
    if alone < len(neighbours):
        value = _factor_of(alone, expected, junctions)
    else:
        # `expected` counts each pair among these clonotypes twice.
        pairs = (1 - share / 2) * float(expected.sum())
        value = -np.log(TAIL) / pairs if pairs else LARGEST_KAPPA
    if not SMALLEST_KAPPA < value < LARGEST_KAPPA:
        raise InputError(
            f"{alone:,} of {len(neighbours):,} clonotypes have no neighbour, which no selection factor explains; is "
            f"the model that of the species and locus? {option('kappa')} gives a factor"
        )
    if alone == len(neighbours):
        return Estimate(value, 0.0, value)
    without = np.exp(-value * expected)
    # Neighbours are mutual: cov(i alone, j alone) = P(neither has a neighbour) P(i and j are neighbours).  The sum of
    # P(i and j are neighbours) over all j is κ λ of i.
    variance = (junctions * (without * (1 - without) + share * without**2 * value * expected)).sum()
    error = -NormalDist().inv_cdf(TAIL) * np.sqrt(variance)
    return Estimate(value, *(_factor_of(number, expected, junctions) for number in (alone + error, alone - error)))


def _factor_of(alone: float, expected: Floats, junctions: Counts) -> float:
    """κ with which `alone` junctions have no neighbour, at most `LARGEST_KAPPA`; 0 if it is below `SMALLEST_KAPPA`."""
    from scipy.optimize import brentq

    def surplus(log_kappa: float) -> float:
        return float((junctions * np.exp(-np.exp(log_kappa) * expected)).sum()) - alone

    low, high = np.log(SMALLEST_KAPPA), np.log(LARGEST_KAPPA)
    if surplus(low) <= 0:
        return 0.0
    return LARGEST_KAPPA if surplus(high) >= 0 else float(np.exp(brentq(surplus, low, high, xtol=1e-10)))


def selection_by_length(
    lengths: Counts, neighbours: Counts, expected: Floats, junctions: Counts, share: float = 1.0
) -> tuple[Estimate, dict[int, float]]:
    """κ of all clonotypes, and of each length that has enough of them; other arguments as of `selection_factor`."""
    common, by_length = selection_factor(neighbours, expected, junctions, share), dict[int, float]()
    for length in np.unique(lengths).tolist():
        rows = lengths == length
        if rows.sum() < FEWEST or (neighbours[rows] > 0).sum() < FEWEST_WITH_NEIGHBOURS:
            continue
        with suppress(InputError):
            by_length[length] = selection_factor(neighbours[rows], expected[rows], junctions[rows]).value
    return common, by_length


def clusters(letters: NDArray[np.uint8], lengths: Counts, classes: Counts) -> Counts:
    """The number of each sequence's cluster, int64, from 1 for the largest.

    letters, lengths, classes  as of `hpcvdj.kernels.neighbours.exchanged_pairs.within_one_exchange`

    Single exchanges of a residue connect the sequences of a cluster, which are of one class.
    """
    from scipy.sparse.csgraph import connected_components

    _, label = connected_components(within_one_exchange(letters, lengths, classes), directed=False)
    _, first, sizes = np.unique(label, return_index=True, return_counts=True)
    rank = np.argsort(np.lexsort((first, -sizes))) + 1
    return np.asarray(rank[label])
