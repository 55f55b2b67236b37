"""Drawing scenarios on CPU cores."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hpcvdj.kernels.generation.tables import BASE_BLOCK, EVENTS, FIRST_BASE, PAIR, DrawTables
from hpcvdj.kernels.threads import on_threads, parts_of
from hpcvdj.recombination.alphabet import BASES_PER_WORD

CHUNK = 1024
"""Sequences that a thread takes at a time."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


class Drawn(NamedTuple):
    """Sequences that were drawn.

    words    uint64 [sequences, width]: the junctions, packed
    lengths  uint16 [sequences]: their bases
    events   int16 [sequences, EVENTS]: their scenarios
    """

    words: NDArray[np.uint64]
    lengths: NDArray[np.uint16]
    events: NDArray[np.int16]

    @staticmethod
    def empty(sequences: int, width: int, xp: Any = np) -> "Drawn":
        """Room for some sequences, in arrays of NumPy or cupy."""
        return Drawn(
            xp.empty((sequences, width), dtype=np.uint64),
            xp.empty(sequences, dtype=np.uint16),
            xp.empty((sequences, len(EVENTS)), dtype=np.int16),
        )


class Sampler:
    """Draws from a model; sequence i is a function of (seed, i) alone."""

    def __init__(self, tables: DrawTables) -> None:
        self._tables = tables

    def __call__(self, first: int, count: int, seed: int) -> Drawn:
        """Sequences first … first+count-1."""
        drawn = Drawn.empty(count, self._tables.width)
        on_threads(draw_rows, parts_of(count, CHUNK), np.uint64(first), np.uint64(seed), self._tables, *drawn)
        return drawn


@njit(cache=True, nogil=True)
def philox(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    """Philox4x32-10 (Salmon et al. 2011): the four 32-bit numbers of a counter and a key; all are uint64 below 2^32."""
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = b >> HALF ^ c1 ^ k0, b & LOW, a >> HALF ^ c3 ^ k1, a & LOW
        k0, k1 = k0 + np.uint64(0x9E3779B9) & LOW, k1 + np.uint64(0xBB67AE85) & LOW
    return c0, c1, c2, c3


@njit(cache=True, nogil=True)
def pick(high, low, distribution, slots, first):  # type: ignore[no-untyped-def]
    """The outcome of a distribution for the random number 2^32 high + low."""
    size = np.uint64(first[distribution + 1] - first[distribution])
    below = low * size
    product = high * size + (below >> HALF)
    slot = first[distribution] + np.int64(product >> HALF)
    remainder = product << HALF | below & LOW
    outcomes = slots[slot, 1]
    return np.int64(outcomes & LOW if remainder < slots[slot, 0] else outcomes >> HALF)


@njit(cache=True, nogil=True)
def draw_rows(part, begin, seed, tables, words, lengths, events):  # type: ignore[no-untyped-def]
    """Draw the rows of a part (first, end) of the sequences from `begin` on.

    Into `words` [rows, width], `lengths` [rows] and `events` [rows, EVENTS].
    """
    slots, first, choices, bases, text, text_first, v_alleles, d_alleles, _ = tables
    width = words.shape[1]
    k0, k1 = seed & LOW, seed >> HALF
    lengths_of = len(first) - 3
    codes = np.zeros(width * BASES_PER_WORD, dtype=np.uint8)
    numbers = np.empty(4, dtype=np.uint64)
    for row in range(part[0], part[1]):
        index = begin + np.uint64(row)
        i0, i1, zero = index & LOW, index >> HALF, np.uint64(0)
        a, b, c, e = philox(i0, i1, zero, zero, k0, k1)
        choice = pick(a, b, 0, slots, first)
        v, d, j = np.int64(choices[choice, 0]), np.int64(choices[choice, 1]), np.int64(choices[choice, 2])
        v_deleted = pick(c, e, 1 + v, slots, first)
        d_text, j_text = v_alleles + d, v_alleles + d_alleles + j
        a, b, c, e = philox(i0, i1, np.uint64(1), zero, k0, k1)
        d_deleted = pick(a, b, 1 + d_text, slots, first)
        j_deleted = pick(c, e, 1 + j_text, slots, first)
        a, b, c, e = philox(i0, i1, np.uint64(2), zero, k0, k1)
        n1, n2 = pick(a, b, lengths_of, slots, first), pick(c, e, lengths_of + 1, slots, first)
        left, right = d_deleted // PAIR, d_deleted % PAIR

        size = 0
        for k in range(text_first[v], text_first[v + 1] - v_deleted):
            codes[size] = text[k]
            size += 1
        d_size = text_first[d_text + 1] - text_first[d_text] - left - right
        end = size + n1 + d_size + n2
        last = FIRST_BASE
        for k in range(n1 + n2):
            if k % 4 == 0:
                block = np.uint64(BASE_BLOCK + k // 4)
                numbers[0], numbers[1], numbers[2], numbers[3] = philox(i0, i1, block, zero, k0, k1)
            number, insertion = numbers[k % 4], np.int64(k >= n1)
            if k == n1:
                last = FIRST_BASE
            below = bases[insertion, last]
            base = int(number >= below[0]) + int(number >= below[1]) + int(number >= below[2])
            last = base
            # The second insertion is read from J leftwards.
            codes[size + k if k < n1 else end - 1 - (k - n1)] = base
        size += n1
        for k in range(text_first[d_text] + left, text_first[d_text + 1] - right):
            codes[size] = text[k]
            size += 1
        size = end
        for k in range(text_first[j_text] + j_deleted, text_first[j_text + 1]):
            codes[size] = text[k]
            size += 1

        for place in range(width):
            word = np.uint64(0)
            for k in range(place * BASES_PER_WORD, min(size, (place + 1) * BASES_PER_WORD)):
                word |= np.uint64(codes[k]) << np.uint64(62 - 2 * (k % BASES_PER_WORD))
            words[row, place] = word
        lengths[row] = size
        events[row, 0], events[row, 1], events[row, 2], events[row, 3] = v, d, j, v_deleted
        events[row, 4], events[row, 5], events[row, 6], events[row, 7] = left, right, j_deleted, n1
        events[row, 8] = n2
