"""Tiles: runs of sequences of one V–J pair, what a block of a GPU takes at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TILE = np.dtype([("row", np.int64), ("rows", np.int32), ("pair", np.int32)])
"""The kernels' struct Tile."""


def split_pairs(offsets: NDArray[np.int64], first: int, last: int, most: int) -> NDArray[Any]:
    """Sequences `first` … `last`-1, numbered from 0, in tiles of at most `most`: TILE [tiles], in row order.

    `offsets` is int64 [pairs + 1], as in a Repertoire.
    """
    low, high = np.clip(offsets[:-1], first, last), np.clip(offsets[1:], first, last)
    runs = -(-(high - low) // most)
    pair = np.repeat(np.arange(len(runs)), runs)
    row = low[pair] + most * (np.arange(len(pair)) - np.repeat(np.cumsum(runs) - runs, runs))
    tiles = np.empty(len(pair), dtype=TILE)
    tiles["row"], tiles["rows"], tiles["pair"] = row - first, np.minimum(most, high[pair] - row), pair
    return tiles
