"""Which of the tables that find a pair of k-mers counts it: the first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.kmers import MAX_D


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


def first_found(runs: list[int], masks: list[int], d: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The runs that each table leaves out, and 1 where it is the first to find a pair that differs on some of them.

    uint64 [tables, MAX_D], zeros after the d runs, and uint32 [tables, 2^MAX_D]: bit u of the second index stands for
    run u of those left out.
    """
    first = first_tables(runs, masks)
    left_out = np.zeros((len(masks), MAX_D), dtype=np.uint64)
    found = np.zeros((len(masks), 1 << MAX_D), dtype=np.uint32)
    for t, mask in enumerate(masks):
        some = [r for r, run in enumerate(runs) if not run & mask]
        left_out[t, :d] = [runs[r] for r in some]
        for pattern in range(1 << d):
            differing = sum(1 << r for u, r in enumerate(some) if pattern >> u & 1)
            found[t, pattern] = first[differing] == t
    return left_out, found
