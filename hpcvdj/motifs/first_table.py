"""Which of the tables that find a pair of k-mers counts it: the first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def run_bits(runs: list[int]) -> NDArray[np.uint64]:
    """By bit of a key: the bit of the run that it lies in, uint64 [64]."""
    return np.array([sum(1 << r for r, run in enumerate(runs) if run >> bit & 1) for bit in range(64)], np.uint64)


def first_tables(runs: list[int], masks: list[int]) -> NDArray[np.int16]:
    """The first table that finds a pair of k-mers, int16 [2^runs], by the runs that they differ on; -1 for none."""
    first = np.full(1 << len(runs), -1, dtype=np.int16)
    for differing in range(len(first)):
        mask = sum(run for r, run in enumerate(runs) if differing >> r & 1)
        first[differing] = next((t for t, kept in enumerate(masks) if not kept & mask), -1)
    return first
