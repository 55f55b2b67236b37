"""How many individuals have a sequence, and their levels: Poisson-binomial distributions for many probabilities."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.threads import on_threads, parts_of, turns_of

_LEAST = 1e-300
"""Smaller probabilities count as 0: numbers with fewer digits take a hundred times as long."""

_ROWS_AT_ONCE = 16


def numbers_of_carriers(p: NDArray[np.float64], sizes: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """P(m individuals have a sequence), into float64 [sequences, individuals + 1], which is 0.

    p      float64 [sequences]: probabilities of the sequences
    sizes  float64 [individuals]: an individual of n recombinations has a sequence with the probability 1 - exp(-n p)
    """
    on_threads(_carriers, parts_of(len(p), _ROWS_AT_ONCE), p, sizes, out)


@njit(cache=True, nogil=True)
def _carriers(part, p, sizes, out):  # type: ignore[no-untyped-def]
    for row in range(part[0], part[1]):
        chance = out[row]
        chance[0] = 1.0
        most = 0
        for number in range(len(sizes)):
            has = -np.expm1(-sizes[number] * p[row])
            lacks = np.exp(-sizes[number] * p[row])
            if chance[most] * has > _LEAST:
                most += 1
            for m in range(most, 0, -1):
                chance[m] = chance[m] * lacks + chance[m - 1] * has
            chance[0] *= lacks


def sums_of_levels(
    x: NDArray[np.float64], carriers: NDArray[np.int64], sizes: NDArray[np.float64], level: NDArray[np.int64],
    begins: NDArray[np.int64], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """P(m individuals have a sequence, and the sum of their levels is s), into out[begins[k] + s].

    x         float64 [numbers]: an individual of n recombinations has it with the probability 1 - exp(-n x)
    carriers  int64 [numbers]: m
    sizes, level  float64 and int64 [individuals]
    begins    int64 [numbers]
    out       float64: of each number one for each sum, up to m times the largest level
    """
    top = int(level.max(initial=0))
    on_threads(_sums, turns_of(len(x)), x, carriers, sizes, level, top, begins, out)


@njit(cache=True, nogil=True)
def _sums(part, x, carriers, sizes, level, top, begins, out):  # type: ignore[no-untyped-def]
    for row in range(part[0], part[1], part[2]):
        m = carriers[row]
        mass = np.zeros((m + 1, m * top + 1))
        mass[0, 0] = 1.0
        for number in range(len(sizes)):
            has, lacks = -np.expm1(-sizes[number] * x[row]), np.exp(-sizes[number] * x[row])
            level_of = level[number]
            # Of fewer carriers there are not enough individuals left to make m.
            fewest = max(0, m - (len(sizes) - number - 1))
            for count in range(min(number + 1, m), fewest - 1, -1):
                for total in range(count * top + 1):
                    value = mass[count, total] * lacks
                    if count > 0 and total >= level_of:
                        value += mass[count - 1, total - level_of] * has
                    mass[count, total] = value if value > _LEAST else 0.0
        out[begins[row] : begins[row] + m * top + 1] = mass[m]


def products_of_pairs(weights: NDArray[np.float64], values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """Σ of the weighted products of each two rows, into float64 [rows, rows], which is symmetric.

    weights  float64 [columns]
    values   float64 [rows, columns]
    """
    on_threads(_products, turns_of(len(values)), weights, values, out)


@njit(cache=True, nogil=True)
def _products(part, weights, values, out):  # type: ignore[no-untyped-def]
    columns = values.shape[1]
    for one in range(part[0], part[1], part[2]):
        for other in range(one + 1):
            # Four sums, of which none waits for the one before.
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            whole = columns // 4 * 4
            for k in range(0, whole, 4):
                a += weights[k] * values[one, k] * values[other, k]
                b += weights[k + 1] * values[one, k + 1] * values[other, k + 1]
                c += weights[k + 2] * values[one, k + 2] * values[other, k + 2]
                d += weights[k + 3] * values[one, k + 3] * values[other, k + 3]
            for k in range(whole, columns):
                a += weights[k] * values[one, k] * values[other, k]
            out[one, other] = out[other, one] = (a + b) + (c + d)
