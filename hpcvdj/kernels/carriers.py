"""How many individuals have a sequence: the Poisson-binomial distribution for many probabilities, on CPU cores."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

_LEAST = 1e-300
"""Smaller probabilities count as 0: numbers with fewer digits take a hundred times as long."""


@njit(cache=True, nogil=True, parallel=True)
def numbers_of_carriers(p: NDArray[np.float64], sizes: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """P(m individuals have a sequence), into float64 [sequences, individuals + 1], which is 0.

    p      float64 [sequences]: probabilities of the sequences
    sizes  float64 [individuals]: an individual of n recombinations has a sequence with the probability 1 - exp(-n p)
    """
    for row in prange(len(p)):
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
