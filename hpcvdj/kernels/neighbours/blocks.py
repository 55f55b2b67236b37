"""Blocks: the sequences of one class and length, one block behind the other."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.threads import TAKEN_AT_ONCE, on_threads, parts_of, taken, turns_of

_MOST_BLOCKS = 4
"""Blocks that are counted, for each sequence: others are sorted."""


def blocks(
    lengths: NDArray[np.signedinteger[Any]], classes: NDArray[np.signedinteger[Any]]
) -> tuple[NDArray[np.int64] | slice, NDArray[np.int64]]:
    """What to index arrays of the sequences with to have them in blocks, and where each block begins.

    The last of the int64 [blocks + 1] beginnings is the number of sequences.  The index keeps the order of the
    sequences of a block; it is slice(None), which copies nothing, if they are in blocks already.
    """
    begins, unsorted = np.ones(len(lengths) + 1, dtype=bool), list[int]()

    def compare(part: tuple[int, int]) -> None:
        """Compare the sequences of a part with the one before each."""
        this = slice(max(1, part[0]), part[1])
        before = slice(this.start - 1, this.stop - 1)
        same = classes[this] == classes[before]
        begins[this] = ~(same & (lengths[this] == lengths[before]))
        if ((classes[this] < classes[before]) | (same & (lengths[this] < lengths[before]))).any():
            unsorted.append(this.start)

    on_threads(compare, parts_of(len(lengths), TAKEN_AT_ONCE))
    if not unsorted:
        return slice(None), np.flatnonzero(begins)
    low, least = int(lengths.min()), int(classes.min())
    width = int(lengths.max()) - low + 1
    number = (int(classes.max()) - least + 1) * width
    if number > _MOST_BLOCKS * len(lengths):
        order = np.lexsort((lengths, classes))
        return order, blocks(lengths[order], classes[order])[1]
    # 10^7 junctions by gene are counted in a tenth of the time of sorting.
    order, starts = np.empty(len(lengths), dtype=np.int64), np.zeros(number + 1, dtype=np.int64)
    fill((classes.astype(np.int64) - least) * width + (lengths - low), starts, order)
    return order, np.unique(starts)


@njit(cache=True, nogil=True)
def fill(bucket, starts, members):  # type: ignore[no-untyped-def]
    """List the sequences of each bucket, in their order.

    bucket   int64 [sequences]
    starts   int64 [buckets + 1], zeros: becomes the place in `members` where each bucket begins
    members  int64 [sequences]
    """
    for number in bucket:
        starts[number + 1] += 1
    for k in range(1, len(starts)):
        starts[k] += starts[k - 1]
    # Each place is moved to the end of its bucket, which is where the next one begins.
    for place in range(len(bucket)):
        members[starts[bucket[place]]] = place
        starts[bucket[place]] += 1
    for k in range(len(starts) - 1, 0, -1):
        starts[k] = starts[k - 1]
    starts[0] = 0


def equal_runs(words: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows with those of each block sorted, and the places in that order where a run of equal rows begins.

    words   uint64 [rows, columns]: sorted by the first word first; equal rows keep their order
    starts  int64 [blocks + 1]: as of `blocks`

    >>> words = np.array([[7], [5], [7], [7]], dtype=np.uint64)
    >>> order, first = equal_runs(words, np.array([0, 3, 4]))
    >>> order.tolist(), first.tolist()
    ([1, 0, 2, 3], [0, 1, 3])
    """
    order, begins = np.arange(len(words)), np.ones(len(words), dtype=bool)
    largest_first = np.argsort(-np.diff(starts), kind="stable")
    on_threads(_sort, turns_of(len(largest_first)), words, starts, largest_first, order, begins)
    return order, np.flatnonzero(begins)


@njit(cache=True, nogil=True)
def _sort(part, words, starts, blocks_in_turn, order, begins):  # type: ignore[no-untyped-def]
    for number in range(part[0], part[1], part[2]):
        first, stop = starts[blocks_in_turn[number]], starts[blocks_in_turn[number] + 1]
        chosen = order[first:stop]
        for column in range(words.shape[1] - 1, -1, -1):
            keys = words[chosen, column]
            if (keys != keys[0]).any():
                # As in `hpcvdj.kernels.sums`, assigning all at once would take longer to compile.
                for place, row in enumerate(chosen[np.argsort(keys, kind="mergesort")]):
                    chosen[place] = row
        for place in range(first + 1, stop):
            same = True
            for column in range(words.shape[1]):
                same &= words[order[place], column] == words[order[place - 1], column]
            begins[place] = not same


def groups(
    words: NDArray[np.uint64], lengths: NDArray[np.int64], classes: NDArray[np.signedinteger[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups of equal sequences, sorted by class, length and words: the first row of each, and each row's group.

    words    uint64 [rows, columns]
    lengths  int64 [rows]
    classes  signed integers [rows]

    Returns int64 [groups] and int64 [rows].

    >>> first, group = groups(np.array([[7], [5], [7]], dtype=np.uint64), np.array([1, 1, 1]), np.array([0, 0, 0]))
    >>> first.tolist(), group.tolist()
    ([1, 0], [1, 0, 1])
    """
    order, starts = blocks(lengths, classes)
    same, first = equal_runs(words if isinstance(order, slice) else taken(words, order), starts)
    same = same if isinstance(order, slice) else order[same]
    group = np.empty(len(words), dtype=np.int64)
    group[same] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(words))))
    return same[first], group
