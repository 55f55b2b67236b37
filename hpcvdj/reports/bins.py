"""Histograms of numbers of pathways and of scores: one bin for 0, then bins of equal ratio, from the bits of floats.

Bins are kept `FINE` to a doubling, and shown one to a doubling.
"""

import math

import numpy as np
from numpy.typing import NDArray

BITS = 7
FINE = 1 << BITS
DOUBLINGS = 65
FINE_BINS = 1 + DOUBLINGS * FINE
"""Enough for all 64-bit numbers, as floats."""

EXACT = 1 << 20
"""Numbers of pathways below this are kept value by value for quantiles."""

_SHIFT = 52 - BITS
_BIN_OF_1 = 1023 << BITS


def log_bins(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The fine bin of each value, int64: 0 for the value 0, 1 from the value 1 on."""
    bins: NDArray[np.int64] = np.maximum(0, (values.astype(np.float64).view(np.int64) >> _SHIFT) - _BIN_OF_1 + 1)
    return bins


def bin_start(index: int) -> int:
    """The smallest integer from which on `log_bins` gives this bin."""
    return math.ceil(np.int64((index - 1 + _BIN_OF_1) << _SHIFT).view(np.float64)) if index else 0


def doublings(histogram: NDArray[np.int64]) -> NDArray[np.int64]:
    """A fine histogram, int64 [FINE_BINS], as it is shown, int64 [1 + DOUBLINGS].

    Bin 0 is of no pathway, bin k of 2^(k−1) to 2^k − 1 pathways.
    """
    return np.concatenate([histogram[:1], histogram[1:].reshape(DOUBLINGS, FINE).sum(axis=1)])


def median(histogram: NDArray[np.int64]) -> int | None:
    """The lower median of a fine histogram, exact below 256, else within 1 %; None if it is empty."""
    ends = np.cumsum(histogram)
    return bin_start(int(np.searchsorted(ends, (ends[-1] + 1) // 2))) if ends[-1] else None


class Quantiles:
    """How many junctions have how many pathways, for quantiles that are exact below `EXACT` and within 1 % above."""

    def __init__(self) -> None:
        self._beyond = EXACT - int(log_bins(np.full(1, EXACT, np.uint64))[0])
        self._counts = np.zeros(self._beyond + FINE_BINS, np.int64)

    def add(self, pathways: NDArray[np.uint64]) -> None:
        """Count the pathways of some junctions, uint64 [rows]."""
        self._counts += np.bincount(self.bins(pathways), minlength=len(self._counts))

    def bins(self, pathways: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The bin of each number of pathways, int64: itself below `EXACT`."""
        return np.where(pathways < EXACT, pathways.astype(np.int64), self._beyond + log_bins(pathways))

    def quantile(self, share: float) -> tuple[float, bool]:
        """The quantile as NumPy defines it by default, and whether it is exact; there must be junctions."""
        rank = share * (self._counts.sum() - 1)
        low, high = (self._bin(k) for k in (math.floor(rank), math.ceil(rank)))
        first, last = (k if k < EXACT else bin_start(k - self._beyond) for k in (low, high))
        return first + (rank % 1) * (last - first), high < EXACT

    def _bin(self, rank: int) -> int:
        return int(np.searchsorted(np.cumsum(self._counts), rank, side="right"))


class Scores:
    """Counts of junctions by their score, a float >= 0, for a median within 1 %."""

    def __init__(self) -> None:
        self._counts = np.zeros(1 << 11 + BITS, np.int64)

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count the scores of some junctions, float64 [rows]; NaN, no score, is not counted."""
        self._counts += np.bincount(self.bins(scores[scores >= 0]), minlength=len(self._counts))

    @staticmethod
    def bins(scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bin of each score, int64: 0 for 0, negative for NaN."""
        bins: NDArray[np.int64] = np.where(scores >= 0, scores.view(np.int64) >> _SHIFT, -1)
        return bins

    def median(self) -> float | None:
        """The lower median of all scores, or the largest number below it that begins a bin; None without scores."""
        ends = np.cumsum(self._counts)
        middle = np.searchsorted(ends, (ends[-1] + 1) // 2)
        return float(np.int64(middle << _SHIFT).view(np.float64)) if ends[-1] else None

    def typical(self) -> int:
        """The bin of the lower median of the scores above 0; there must be one."""
        ends = np.cumsum(self._counts[1:])
        return 1 + int(np.searchsorted(ends, (ends[-1] + 1) // 2))
