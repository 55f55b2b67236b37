"""Sequences that are one edit away from another one of the same kind: one base exchanged, inserted or deleted."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hpcvdj.recombination.alphabet import BASES_PER_WORD

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)


@njit(cache=True, nogil=True, inline="always")
def _code(words, k):  # type: ignore[no-untyped-def]
    return words[k // BASES_PER_WORD] >> np.uint64(62 - 2 * (k % BASES_PER_WORD)) & np.uint64(3)


@njit(cache=True, nogil=True, inline="always")
def _seed(kind):  # type: ignore[no-untyped-def]
    value = (np.uint64(kind) + np.uint64(1)) * _MIX
    return (value ^ (value >> np.uint64(29))) * _FACTOR


@njit(cache=True, nogil=True, parallel=True)
def hashes(words, lengths, kinds, out):  # type: ignore[no-untyped-def]
    """A 64-bit hash of each packed sequence and its kind, into uint64 [rows]; those of other sequences differ mostly.

    A sequence's hash is a polynomial, so that of an edited one follows from sums of its parts: see `largest_near`.
    """
    for row in prange(len(lengths)):
        value, power = _seed(kinds[row]) + np.uint64(lengths[row]), _FACTOR
        for k in range(lengths[row]):
            value += (_code(words[row], k) + np.uint64(1)) * power
            power *= _FACTOR
        out[row] = value


@njit(cache=True, nogil=True)
def _same(a, a_length, b, b_length, place, kind):  # type: ignore[no-untyped-def]
    """Whether `a`, with one edit of a kind at `place`, is `b`: 0 exchanges, 1 deletes, 2 inserts a base."""
    if b_length != a_length + (kind == 2) - (kind == 1):
        return False
    for k in range(b_length):
        if k == place and kind != 1:
            continue
        from_a = k + (k >= place) if kind == 1 else k - (k > place) if kind == 2 else k
        if _code(a, from_a) != _code(b, k):
            return False
    return True


@njit(cache=True, nogil=True)
def _largest(value, sorted_hashes, order, kinds, values, kind_of, words, lengths, row, place, edit):  # type: ignore[no-untyped-def]
    """The largest value of the rows with a hash that are `row` with an edit; 0 if there is none."""
    found = np.int64(0)
    at = np.searchsorted(sorted_hashes, value)
    while at < len(sorted_hashes) and sorted_hashes[at] == value:
        other = order[at]
        if (
            values[other] > found
            and kinds[other] == kind_of
            and _same(words[row], np.int64(lengths[row]), words[other], np.int64(lengths[other]), place, edit)
        ):
            found = values[other]
        at += 1
    return found


@njit(cache=True, nogil=True, parallel=True)
def largest_near(words, lengths, kinds, values, rows, sorted_hashes, order, exchanged, out):  # type: ignore[no-untyped-def]
    """The largest value of the sequences near each of some rows, of its kind, into int64 [len(rows)]; 0 without any.

    words, lengths, kinds, values  of all sequences; values are above 0
    rows                           those that are asked about
    sorted_hashes, order           `hashes` of the sequences that are looked at, ascending, and their rows
    exchanged                      near: one base exchanged; otherwise one base inserted or deleted
    """
    for number in prange(len(rows)):
        row = rows[number]
        length = np.int64(lengths[row])
        kind = kinds[row]
        base = _seed(kind)
        best = np.int64(0)
        # Sums of what comes before a place, and after it, as it is and moved by one.
        before, power = np.uint64(0), _FACTOR
        total = np.uint64(0)
        for k in range(length):
            total += (_code(words[row], k) + np.uint64(1)) * power
            power *= _FACTOR
        moved_left, moved_right = np.uint64(0), total * _FACTOR
        power = np.uint64(1)
        for k in range(length):
            moved_left += (_code(words[row], k) + np.uint64(1)) * power
            power *= _FACTOR
        left_power, power = np.uint64(1), _FACTOR
        for place in range(length + 1):
            own = _code(words[row], place) + np.uint64(1) if place < length else np.uint64(0)
            if exchanged:
                for code in range(4):
                    other = np.uint64(code) + np.uint64(1)
                    if place < length and other != own:
                        value = base + np.uint64(length) + total + (other - own) * power
                        best = max(
                            best,
                            _largest(value, sorted_hashes, order, kinds, values, kind, words, lengths, row, place, 0),
                        )
            else:
                if place < length:
                    # Without the base at `place`: those after it are moved to the left.
                    value = base + np.uint64(length - 1) + before + moved_left - own * left_power
                    best = max(
                        best, _largest(value, sorted_hashes, order, kinds, values, kind, words, lengths, row, place, 1)
                    )
                for code in range(4):
                    value = (
                        base + np.uint64(length + 1) + before + (np.uint64(code) + np.uint64(1)) * power + moved_right
                    )
                    best = max(
                        best, _largest(value, sorted_hashes, order, kinds, values, kind, words, lengths, row, place, 2)
                    )
            before += own * power
            moved_left -= own * left_power
            moved_right -= own * power * _FACTOR
            left_power = power
            power *= _FACTOR
        out[number] = best


def sorted_by_hash(
    all_hashes: NDArray[np.uint64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The hashes of some rows, ascending, and these rows in that order."""
    order = rows[np.argsort(all_hashes[rows], kind="stable")]
    return all_hashes[order], order
