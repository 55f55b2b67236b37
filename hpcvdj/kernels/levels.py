"""The sum of levels of the carriers of a sequence, for many numbers of carriers, on CPU cores."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.threads import on_threads, turns_of

_LEAST = 1e-300
"""Smaller probabilities count as 0: numbers with fewer digits take a hundred times as long."""


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
