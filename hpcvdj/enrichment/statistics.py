"""The statistics of neighbourhoods: selection, p-values, and false discovery rates."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, TooFewError, option

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

FEWEST = 200
"""Clonotypes from which a selection factor can be estimated."""

FEWEST_WITH_NEIGHBOURS = 10
"""Clonotypes with a neighbour that the estimate for one length needs."""

SMALLEST_KAPPA, LARGEST_KAPPA = 1e-3, 1e4

TAIL = 0.025
"""On each side of the interval of κ."""


def two_rates_tail(neighbours: Counts, others: Counts, of_control: Counts, size_of_control: Counts) -> Floats:
    """P(at least so many neighbours among `others`), if a control of another size has the same rate: an exact test.

    Given the sum of both counts, the neighbours are binomial with the share of `others` in both sizes (Przyborowski and
    Wilenski, Biometrika 31, 1940).  1 where the control has no sequence of the class.
    """
    from scipy.special import betainc

    share = others / np.maximum(others + size_of_control, 1)
    tail = betainc(np.maximum(neighbours, 1), of_control + 1, share)
    return np.where((neighbours > 0) & (size_of_control > 0), tail, 1.0)


@dataclass(frozen=True)
class Kappa:
    """By how much selection makes neighbourhoods denser than recombination alone.

    low, high  the ends of the 95 % interval, if pairs of clonotypes were independent of each other
    """

    value: float
    low: float
    high: float


def selection_factor(neighbours: Counts, expected: Floats, junctions: Counts, share: float = 1.0) -> Kappa:
    """κ: by how much the expected numbers of neighbours must be multiplied for the share of junctions without any.

    neighbours  of each clonotype
    expected    with κ = 1
    junctions   of each clonotype; those of one are neighbours of each other
    share       of all clonotypes, among which neighbours were looked for, that these are

    Solves Σ exp(-κ λ) = the number of junctions without neighbours, which clusters hardly change.  Clonotypes would
    not do: those of several junctions, none of which is without neighbours, would count once.  If no clonotype has a
    neighbour, κ is the largest with which that happens once in forty times.  InputError if there are fewer than
    `FEWEST` clonotypes, or if κ would be at a bound.
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
        # Pairs among them are counted for both.
        pairs = (1 - share / 2) * float(expected.sum())
        value = -np.log(TAIL) / pairs if pairs else LARGEST_KAPPA
    if not SMALLEST_KAPPA < value < LARGEST_KAPPA:
        raise InputError(
            f"{alone:,} of {len(neighbours):,} clonotypes have no neighbour, which no selection factor explains; is "
            f"the model that of the species and locus? {option('kappa')} gives a factor"
        )
    if alone == len(neighbours):
        return Kappa(value, 0.0, value)
    without = np.exp(-value * expected)
    # Two neighbours have each other: cov(i alone, j alone) = P(neither has one) P(i and j are neighbours), and the sum
    # of the latter over all j is κ λ of i.
    variance = (junctions * (without * (1 - without) + share * without**2 * value * expected)).sum()
    error = -NormalDist().inv_cdf(TAIL) * np.sqrt(variance)
    return Kappa(value, *(_factor_of(number, expected, junctions) for number in (alone + error, alone - error)))


def _factor_of(alone: float, expected: Floats, junctions: Counts) -> float:
    """κ with which so many junctions have no neighbour, at most `LARGEST_KAPPA`; 0 if it is below `SMALLEST_KAPPA`."""
    from scipy.optimize import brentq

    def surplus(log_kappa: float) -> float:
        return float((junctions * np.exp(-np.exp(log_kappa) * expected)).sum()) - alone

    low, high = np.log(SMALLEST_KAPPA), np.log(LARGEST_KAPPA)
    if surplus(low) <= 0:
        return 0.0
    return LARGEST_KAPPA if surplus(high) >= 0 else float(np.exp(brentq(surplus, low, high, xtol=1e-10)))


def selection_by_length(
    lengths: Counts, neighbours: Counts, expected: Floats, junctions: Counts, share: float = 1.0
) -> tuple[Kappa, dict[int, float]]:
    """κ of all clonotypes, and of each length that has enough of them; arguments as of `selection_factor`."""
    common, own = selection_factor(neighbours, expected, junctions, share), dict[int, float]()
    for length in np.unique(lengths).tolist():
        rows = lengths == length
        if rows.sum() < FEWEST or (neighbours[rows] > 0).sum() < FEWEST_WITH_NEIGHBOURS:
            continue
        try:
            own[length] = selection_factor(neighbours[rows], expected[rows], junctions[rows]).value
        except InputError:
            continue
    return common, own


def clusters(letters: NDArray[np.uint8], lengths: Counts, classes: Counts) -> Counts:
    """The cluster of each sequence, from 1, largest first: those that single exchanges connect in a class.

    letters, lengths, classes  as of `hpcvdj.kernels.neighbours.degrees_cpu.degrees`
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    order = np.lexsort((lengths, classes))
    edges: list[tuple[int, int]] = []
    masked: dict[tuple[Any, ...], int] = {}
    for row in order.tolist():
        text = letters[row, : lengths[row]].tobytes()
        for place in range(len(text)):
            key = (int(classes[row]), len(text), place, text[:place], text[place + 1 :])
            other = masked.setdefault(key, row)
            if other != row:
                edges.append((row, other))
    rows, others = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(rows)), (rows, others)), shape=(len(order), len(order)))
    _, label = connected_components(graph, directed=False)
    sizes = np.bincount(label)
    first = np.full(len(sizes), len(label))
    np.minimum.at(first, label, np.arange(len(label)))
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(1, len(sizes) + 1)
    return np.asarray(rank[label]) if len(label) else np.empty(0, dtype=np.int64)
