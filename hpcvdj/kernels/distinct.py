"""Different numbers of many."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", np.int32, np.int64, np.uint64)


def distinct(numbers: NDArray[N]) -> NDArray[N]:
    """The different ones of integers, ascending.

    np.unique alone hashes them, which takes 50 times as long for 4·10⁶; to count them, it sorts.

    >>> distinct(np.array([3, 1, 3])).tolist(), distinct(np.empty(0, np.uint64)).tolist()
    ([1, 3], [])
    """
    return np.unique(numbers, return_counts=True)[0]
