"""How well a score ranks positives above negatives: the area under the ROC curve, exactly, with DeLong's interval.

The area is the probability that a random positive scores higher than a random negative, ties counting half: the
Mann–Whitney statistic.  Its variance is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 837–845, 1988), from
midranks as Sun and Xu show (IEEE Signal Processing Letters 21, 1389–1393, 2014): n log n, no pairs are formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95

_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


@dataclass(frozen=True)
class Auc:
    """An area under the ROC curve, and what its variance is made of.

    above   float64 [positives]  share of negatives that each positive scores higher than, ties half
    below   float64 [negatives]  share of positives that each negative scores lower than, ties half
    """

    above: NDArray[np.float64]
    below: NDArray[np.float64]

    @property
    def area(self) -> float:
        """The area: 0.5 for a score that says nothing, 1 for one that tells positives and negatives apart."""
        return float(self.above.mean())

    @property
    def error(self) -> float:
        """Standard error; not a number with fewer than two positives or negatives."""
        return _error(self.above, self.below)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval: area ± 1.96 standard errors, cut at 0 and 1."""
        half = _Z * self.error
        return float(np.clip(self.area - half, 0, 1)), float(np.clip(self.area + half, 0, 1))

    def less(self, other: Auc) -> tuple[float, tuple[float, float]]:
        """This area less that of another score of the same items, and the difference's 95 % interval (paired)."""
        difference = self.area - other.area
        half = _Z * _error(self.above - other.above, self.below - other.below)
        return difference, (difference - half, difference + half)


def _error(above: NDArray[np.float64], below: NDArray[np.float64]) -> float:
    if len(above) < 2 or len(below) < 2:
        return float("nan")
    return float(np.sqrt(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below)))


def auc(scores: NDArray[Any], positive: NDArray[np.bool_]) -> Auc | None:
    """The area under the ROC curve of `scores` (numbers [items]); None unless there are positives and negatives.

    >>> auc(np.array([1, 2, 2, 3]), np.array([False, False, True, True])).area
    0.875
    """
    high, low = scores[positive], scores[~positive]
    if not len(high) or not len(low):
        return None
    ranks = midranks(scores)
    # A rank among all less the rank among one's own kind is the number of the other kind that stands below.
    above = (ranks[positive] - midranks(high)) / len(low)
    below = 1 - (ranks[~positive] - midranks(low)) / len(high)
    return Auc(above, below)


def midranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1 on, float64 [items]; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])


def roc_curve(scores: NDArray[Any], positive: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """False and true positive rates, float64 [distinct scores + 1], from (0, 0) to (1, 1), highest scores first."""
    _, place = np.unique(scores, return_inverse=True)
    sizes = place.max() + 1
    hits = np.bincount(place[positive], minlength=sizes)[::-1].cumsum()
    misses = np.bincount(place[~positive], minlength=sizes)[::-1].cumsum()
    start = np.zeros(1)
    return np.concatenate((start, misses / misses[-1])), np.concatenate((start, hits / hits[-1]))
