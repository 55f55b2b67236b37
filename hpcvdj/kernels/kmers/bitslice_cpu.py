"""`bitslice`: all position pairs of two sequences, 32 at a time, whatever the sequences hold.

Two sequences are laid against each other in every shift; a bit per position says whether the bases differ.  Adding k
neighbouring bits, for many positions at once, with two bits and a sticky overflow for each sum, gives the distances of
all pairs of k-mers.  It shares nothing with the other methods, which makes it their independent check.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from hpcvdj.kernels.bits import popcount
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.runs.pacing import Pace
from hpcvdj.recombination.alphabet import INVALID

STEP = 32
"""A word holds 64 positions; the sums of its first 32 do not leave it, k being 32 at most."""


class Bitslice:
    """The columns' bases in bit planes."""

    def __init__(self, columns: Profile, d: int, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        self._d, self._k = d, columns.k
        self._columns, self._planes = columns, planes_of(columns)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        rows = self._columns.part(first or 0, len(self._columns) if last is None else last) if rows is None else rows
        mine, theirs = planes_of(rows), self._planes
        found = np.zeros((self._d + 1, mine.shape[0], theirs.shape[0]), dtype=np.uint32)
        positions = max(mine.shape[2], theirs.shape[2])
        moved = _pad(mine, positions, positions)
        words = words_of(_pad(theirs, 0, positions))
        for some in self._pace.pieces(len(moved), numba.get_num_threads()):
            _compare(moved, words, self._k, -1 if first is None else first, *some, found)
        return found


def _pad(bits: NDArray[np.uint8], before: int, positions: int) -> NDArray[np.uint8]:
    """`bits` after `before` zeros and filled up with zeros to 2 `positions` after them."""
    return np.pad(bits, ((0, 0), (0, 0), (before, 2 * positions - bits.shape[2])))


def words_of(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Bits [..., positions], positions a multiple of 32, as words [..., positions / 32 - 1]: word w has 32 w … + 63."""
    halves = np.packbits(bits, axis=-1, bitorder="little").view(np.uint32).astype(np.uint64)
    return np.ascontiguousarray(halves[..., :-1] | halves[..., 1:] << np.uint64(STEP))


def planes_of(some: Profile) -> NDArray[np.uint8]:
    """0 or 1, uint8 [sequences, 3, positions]: upper bits, lower bits, and whether a k-mer that counts begins there.

    Positions are filled up to a multiple of 64.  In distinct mode only a k-mer's first occurrence counts.
    """
    sequences, k = some.sequences, some.k
    positions = 64 * max(1, -(-int(sequences.lengths.max(initial=0)) // 64))
    bits = np.zeros((len(some), 3, positions), dtype=np.uint8)
    for i in range(len(some)):
        codes = sequences[i]
        bits[i, 0, : len(codes)] = codes >> 1 & 1
        bits[i, 1, : len(codes)] = codes & 1
        windows = len(codes) - k + 1
        if windows <= 0:
            continue
        bad = np.concatenate([[0], np.cumsum(codes == INVALID)])
        begins = bad[k:] == bad[:-k]
        if some.distinct:
            begins &= _first_occurrences(codes, k)
        bits[i, 2, :windows] = begins
    return bits


def _first_occurrences(codes: NDArray[np.uint8], k: int) -> NDArray[np.bool_]:
    windows = np.lib.stride_tricks.sliding_window_view(codes, k)
    first = np.zeros(len(windows), dtype=bool)
    first[np.unique(windows, axis=0, return_index=True)[1]] = True
    return first


@numba.njit(parallel=True, cache=True)
def _compare(moved, columns, k, first, begin, end, found):  # type: ignore[no-untyped-def]
    n, words = end - begin, columns.shape[2]
    positions = moved.shape[2] // 3
    for q in prange(n):
        # Ends in turn, so that a thread's run of rows has long and short ones.
        r = begin + (q // 2 if q % 2 == 0 else n - 1 - q // 2)
        mine = np.zeros((3, words), dtype=np.uint64)
        work = np.zeros((2, 3, words), dtype=np.uint64)
        own = first + r if first >= 0 else 0
        for shift in range(2 * positions):
            any_window = np.uint64(0)
            for plane in range(3):
                for w in range(words):
                    word = np.uint64(0)
                    for p in range(64):
                        at = shift + STEP * w + p
                        if at < 3 * positions and moved[r, plane, at]:
                            word |= np.uint64(1) << np.uint64(p)
                    mine[plane, w] = word
            for w in range(words):
                any_window |= mine[2, w]
            if any_window:
                for c in range(own, found.shape[2]):
                    _one_shift(mine, columns[c], k, work[0], work[1], found[:, r, c])


@numba.njit(cache=True)
def _one_shift(mine, theirs, k, power, total, found):  # type: ignore[no-untyped-def]
    """Add up the pairs of k-mers that begin at the same place of `mine` and `theirs`."""
    words = mine.shape[1]
    for w in range(words):
        power[0, w] = (mine[0, w] ^ theirs[0, w]) | (mine[1, w] ^ theirs[1, w])
        power[1, w] = power[2, w] = np.uint64(0)
        total[0, w] = total[1, w] = total[2, w] = np.uint64(0)
    # k in binary: sums of 1, 2, 4 … positions by doubling, and the sum of those whose bit is set.
    length, covered = 1, 0
    while True:
        if k & length:
            _add(total, power, np.uint64(covered))
            covered += length
        if covered == k:
            break
        _add(power, power, np.uint64(length))
        length *= 2
    for h in range(len(found)):
        low = np.uint64(0) if h & 1 else ~np.uint64(0)
        high = np.uint64(0) if h & 2 else ~np.uint64(0)
        pairs = 0
        for w in range(words):
            both = mine[2, w] & theirs[2, w] & ~total[2, w] & np.uint64(0xFFFFFFFF)
            pairs += popcount((total[0, w] ^ low) & (total[1, w] ^ high) & both)
        found[h] += np.uint32(pairs)


@numba.njit(cache=True)
def _add(a, b, distance):  # type: ignore[no-untyped-def]
    """a(p) += b(p + distance): bits 0 and 1 of the sum, and whether it is above 3."""
    for w in range(a.shape[1]):
        b0, b1, b2 = b[0, w] >> distance, b[1, w] >> distance, b[2, w] >> distance
        a0, a1 = a[0, w], a[1, w]
        carry = a0 & b0
        a[0, w] = a0 ^ b0
        a[1, w] = a1 ^ b1 ^ carry
        a[2, w] |= b2 | (a1 & b1) | ((a1 ^ b1) & carry)
