"""How many sequences are within one exchanged letter of each sequence, on CPU cores.

Two sequences of equal length are within one exchange if they are equal outside some place.  For each place, a hash
table adds the weights of sequences that are equal outside it: a sequence with n letters is in n such sums, and in each
with itself, so the weight within one exchange is the sum of them less n - 1 times the weight of its equals.  The hash
without a place follows from that of the whole; what a slot holds is compared letter by letter, so counts are exact.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.neighbours.blocks import blocks
from hpcvdj.kernels.threads import on_threads, turns_of


@njit(cache=True, nogil=True, forceinline=True)
def mixed(value):  # type: ignore[no-untyped-def]
    """A 64-bit number of which every bit depends on every bit of `value`: the finaliser of splitmix64.

    Steele, Lea and Flood, OOPSLA 2014; the constants are Stafford's variant 13.
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@njit(cache=True, nogil=True, forceinline=True)
def _share(letter, place):  # type: ignore[no-untyped-def]
    """What a letter at a place adds to a sequence's hash."""
    return mixed((np.uint64(letter) << np.uint64(32)) + np.uint64(place) + np.uint64(0x9E3779B97F4A7C15))


@njit(cache=True, nogil=True, forceinline=True)
def _same_without(a, b, length, place):  # type: ignore[no-untyped-def]
    for k in range(length):
        if a[k] != b[k] and k != place:
            return False
    return True


@njit(cache=True, nogil=True)
def _slot(letters, length, place, key, row, shift, held, keys):  # type: ignore[no-untyped-def]
    """The slot of the sequences that are equal to `row` outside `place`: theirs, or an empty one."""
    last = np.uint64(len(held) - 1)
    slot = key >> shift
    while held[slot] >= 0 and not (
        keys[slot] == key and _same_without(letters[held[slot]], letters[row], length, place)
    ):
        slot = (slot + np.uint64(1)) & last
    return slot


@njit(cache=True, nogil=True)
def _count_block(letters, length, weights, first, stop, out):  # type: ignore[no-untyped-def]
    """The degrees of the rows first … stop - 1, which have `length` letters."""
    kinds = weights.shape[1]
    for row in range(first, stop):
        for kind in range(kinds):
            out[row, kind] = -(length - 1) * weights[row, kind]
    bits = 1
    while (1 << bits) < 2 * (stop - first):
        bits += 1
    shift = np.uint64(64 - bits)
    held, keys = np.empty(1 << bits, dtype=np.int64), np.empty(1 << bits, dtype=np.uint64)
    sums = np.zeros((1 << bits, kinds), dtype=np.int64)
    hashes = np.zeros(stop - first, dtype=np.uint64)
    for row in range(first, stop):
        for k in range(length):
            hashes[row - first] += _share(letters[row, k], k)
    for place in range(length):
        held[:] = -1
        for row in range(first, stop):
            key = mixed(hashes[row - first] - _share(letters[row, place], place))
            slot = _slot(letters, length, place, key, row, shift, held, keys)
            if held[slot] < 0:
                held[slot], keys[slot] = row, key
                sums[slot] = 0
            for kind in range(kinds):
                sums[slot, kind] += weights[row, kind]
        for row in range(first, stop):
            key = mixed(hashes[row - first] - _share(letters[row, place], place))
            slot = _slot(letters, length, place, key, row, shift, held, keys)
            for kind in range(kinds):
                out[row, kind] += sums[slot, kind]


@njit(cache=True, nogil=True)
def _count(part, letters, lengths, weights, starts, order, out):  # type: ignore[no-untyped-def]
    for number in range(part[0], part[1], part[2]):
        block = order[number]
        first, stop = starts[block], starts[block + 1]
        _count_block(letters, np.int64(lengths[first]), weights, first, stop, out)


def degrees(
    letters: NDArray[np.uint8], lengths: NDArray[np.int64], classes: NDArray[np.int64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The weight of the sequences of its class and length within one exchange of each sequence, itself included.

    letters  uint8 [sequences, width], different in each class
    lengths  int64 [sequences]: how many of the letters count
    classes  int64 [sequences]
    weights  int64 [sequences, kinds]

    Returns int64 [sequences, kinds].
    """
    order, starts = blocks(lengths, classes)
    found: NDArray[Any] = np.zeros(weights.shape, dtype=np.int64)
    largest_first = np.argsort(-np.diff(starts), kind="stable")
    arguments = letters[order], lengths[order], weights[order], starts, largest_first, found
    on_threads(_count, turns_of(len(largest_first)), *arguments)
    out = np.empty_like(found)
    out[order] = found
    return out
