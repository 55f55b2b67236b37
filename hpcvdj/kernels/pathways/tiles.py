"""Runs of sequences of one V–J pair: what a block takes at a time."""

import numpy as np
from numpy.typing import NDArray


def split_pairs(
    offsets: NDArray[np.int64], first: int, last: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sequences `first` … `last`-1 in runs of one V–J pair and at most `most`: pair, first row and rows of each.

    `offsets` is int64 [pairs + 1], as in a Repertoire; runs are in row order.
    """
    low, high = np.clip(offsets[:-1], first, last), np.clip(offsets[1:], first, last)
    runs = -(-(high - low) // most)
    pair = np.repeat(np.arange(len(runs)), runs)
    within = np.arange(int(runs.sum())) - np.repeat(np.cumsum(runs) - runs, runs)
    row = low[pair] + within * most
    return pair, row, np.minimum(most, high[pair] - row)
