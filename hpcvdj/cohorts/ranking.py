"""The area under the ROC curve, which says how well a score ranks positives above negatives, with DeLong's interval.

The area is the probability that a random positive scores higher than a random negative; ties count half.  This is the
Mann–Whitney statistic.  Its variance is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 837–845, 1988),
computed in n log n steps from midranks (Sun and Xu, IEEE Signal Processing Letters 21, 1389–1393, 2014).
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

TAIL = 0.025
"""The probability beyond each end of a 95 % confidence interval."""

Z = NormalDist().inv_cdf(1 - TAIL)
"""The number of standard errors on each side of a 95 % confidence interval."""


@dataclass(frozen=True)
class Auc:
    """An area under the ROC curve, and the components of its variance.

    above  float64 [positives]: share of negatives that each positive scores higher than; ties count half
    below  float64 [negatives]: share of positives that each negative scores lower than; ties count half

    Both are in the order of the scores, so that the order of items does not change a digit.
    """

    above: NDArray[np.float64]
    below: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"<AUC {self.text}>"

    @property
    def text(self) -> str:
        """The area, and its interval if there is one."""
        low, high = self.interval
        return f"{self.area:.3f}" + (f", 95 % interval {low:.3f} to {high:.3f}" if low <= high else "")

    @property
    def area(self) -> float:
        """The area: 0.5 for a score without information, 1 for one that separates positives from negatives."""
        return float(self.above.mean())

    @property
    def error(self) -> float:
        """The standard error of the area; NaN with fewer than two positives or negatives."""
        if len(self.above) < 2 or len(self.below) < 2:
            return float("nan")
        variances = (scores.var(ddof=1) / len(scores) for scores in (self.above, self.below))
        return float(np.sqrt(sum(variances)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval: area ± 1.96 standard errors, limited to 0 … 1; NaN if the error is.

        If the score separates all positives from all negatives, the standard error says nothing.  Then it is the exact
        interval of as many independent pairs of a positive and a negative as there are, of which all are in order
        (Clopper and Pearson, Biometrika 26:404, 1934).
        """
        if self.area in (0.0, 1.0) and self.error == 0:
            bound = TAIL ** (1 / min(len(self.above), len(self.below)))
            return (bound, 1.0) if self.area else (0.0, 1 - bound)
        half = Z * self.error
        return float(np.clip(self.area - half, 0, 1)), float(np.clip(self.area + half, 0, 1))


def auc(scores: NDArray[Any], positive: NDArray[np.bool_]) -> Auc | None:
    """Return the area under the ROC curve of `scores`, numbers [items]; None without positives or without negatives.

    >>> auc(np.array([1, 2, 2, 3]), np.array([False, False, True, True])).area
    0.875
    """
    high, low = np.sort(scores[positive]), np.sort(scores[~positive])
    if not len(high) or not len(low):
        return None
    ranks = midranks(np.concatenate([high, low]))
    # The rank among all items, minus that among the same kind, is the number of the other kind that score lower.
    above = (ranks[: len(high)] - midranks(high)) / len(low)
    below = 1 - (ranks[len(high) :] - midranks(low)) / len(high)
    return Auc(above, below)


def midranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return ranks from 1, float64 [items]; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def roc_curve(scores: NDArray[Any], positive: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return false and true positive rates, float64 [distinct scores + 1], from (0, 0) to (1, 1)."""
    _, inverse = np.unique(scores, return_inverse=True)
    sizes = inverse.max() + 1
    hits = np.bincount(inverse[positive], minlength=sizes)[::-1].cumsum()
    misses = np.bincount(inverse[~positive], minlength=sizes)[::-1].cumsum()
    start = np.zeros(1)
    return np.concatenate((start, misses / misses[-1])), np.concatenate((start, hits / hits[-1]))
