"""The tables by which `pigeonhole` and `index` join k-mers: which positions each keeps, and which pairs it counts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.kmers.kmers import MAX_D
from hpcvdj.kernels.kmers.masks import block_masks, wildcard_masks

HASH_FACTOR = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: Knuth's multiplicative hash (TAOCP 3, section 6.4)."""


@dataclass(frozen=True)
class JoinTables:
    """Tables of k-mers by some of their positions.

    A table finds the pairs of k-mers within distance d that agree on the positions of its mask.

    masks     the positions of each table
    left_out  uint64 [tables, MAX_D]: the runs of positions that it leaves out, zeros if there are fewer
    counts    uint32 [tables, 2^MAX_D]: 1 if it counts a pair, by the runs of `left_out` on which the pair differs:
              bit u of the index for run u
    plane     int64 [tables]: the counter that a table adds to; None if the distance of each pair says it
    """

    masks: list[int]
    left_out: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    plane: NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.masks)


def pigeonhole_tables(k: int, d: int, blocks: int) -> JoinTables:
    """Tables that keep all but d of `blocks` runs; each pair is counted, as D, by the first table that finds it.

    Two k-mers within distance d agree on all but d runs at least.
    """
    runs = block_masks(k, blocks)
    left_out = list(combinations(range(blocks), d))
    masks_out = np.zeros((len(left_out), MAX_D), dtype=np.uint64)
    counts = np.zeros((len(left_out), 1 << MAX_D), dtype=np.uint32)
    for t, out in enumerate(left_out):
        masks_out[t, :d] = [runs[r] for r in out]
        for pattern in range(1 << d):
            differing = [r for u, r in enumerate(out) if pattern >> u & 1]
            # The first table that leaves out the runs on which a pair differs leaves out the first others.
            others = [r for r in range(blocks) if r not in differing][: d - len(differing)]
            counts[t, pattern] = sorted(differing + others) == list(out)
    masks = [sum(runs) - sum(runs[r] for r in out) for out in left_out]
    return JoinTables(masks, masks_out, counts, None)


def index_tables(k: int, d: int) -> JoinTables:
    """A table for each wildcard configuration; each counts all pairs that it finds, as R."""
    masks = [wildcard_masks(k, m) for m in range(d + 1)]
    distances = np.repeat(np.arange(d + 1), [len(of_distance) for of_distance in masks])
    flat = [mask for of_distance in masks for mask in of_distance]
    return JoinTables(
        flat,
        np.zeros((len(flat), MAX_D), dtype=np.uint64),
        np.ones((len(flat), 1 << MAX_D), dtype=np.uint32),
        distances,
    )
