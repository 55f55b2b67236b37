"""`index` and `pigeonhole`: the k-mers of two groups of sequences that lie in the same bucket are compared."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

from hpcvdj.kernels.bits import popcount
from hpcvdj.kernels.kmers.buckets import GROUP, Buckets, bucket_bits, make_buckets
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.first_table import first_found
from hpcvdj.kernels.kmers.masks import block_masks, exact_from_raw, wildcard_masks
from hpcvdj.runs.pacing import Pace

_PENDING = 4096
"""Pairs of k-mers found before they are counted: enough that the processor guesses the loop's end right."""


class _Join:
    """The columns in tables, and the tables of each rows they meet."""

    def __init__(self, columns: Profile, masks: list[int], pace: Pace | None) -> None:
        self._columns, self._masks, self._pace = columns, masks, pace or Pace()
        self._bits = bucket_bits(columns.kmers, masks)
        self._tables = self._make(columns)

    def _make(self, some: Profile) -> Buckets:
        return make_buckets(some.kmers, self._masks, self._bits, self._pace)

    def _rows(self, rows: Profile | None, first: int | None, last: int | None) -> tuple[Buckets, int, int]:
        """Tables that hold the rows, the group that the rows begin with, and their number."""
        if rows is not None:
            return self._make(rows), 0, len(rows)
        first, last = first or 0, len(self._columns) if last is None else last
        # Whole groups of the columns lie in their tables already.
        if first % GROUP == 0 and (last % GROUP == 0 or last == len(self._columns)):
            return self._tables, first // GROUP, last - first
        return self._make(self._columns.part(first, last)), 0, last - first

    def _pieces(self, rows: int, first: int | None) -> Iterator[tuple[NDArray[np.int64], int, int]]:
        """Pairs of groups to join, one for each thread at least, with runs of tables; all of them if that is quick."""
        groups, tables = -(-len(self._columns) // GROUP), len(self._masks)
        mine, theirs = np.divmod(np.arange(-(-rows // GROUP) * groups), max(1, groups))
        # Pairs that nobody asks for would cost nothing, and spoil what is expected of the next.
        asked = mine >= 0 if first is None else (theirs + 1) * GROUP > first + mine * GROUP
        cells = np.flatnonzero(asked)
        for begin, end in self._pace.pieces(len(cells), numba.get_num_threads()):
            step = max(1, int(tables * min(1.0, self._pace.share(end - begin))))
            for table in range(0, tables, step):
                if table:
                    self._pace.between()
                yield cells[begin:end], table, min(tables, table + step)


class Pigeonhole(_Join):
    """Candidates agree on all but d of `blocks` runs of positions; whole keys decide.

    A pair of k-mers is met in every table whose positions it agrees on, and counted in the first of them.
    """

    def __init__(self, columns: Profile, d: int, blocks: int, pace: Pace | None = None) -> None:
        runs, masks = block_masks(columns.k, d, blocks)
        super().__init__(columns, masks, pace)
        self._d = d
        self._left_out, self._first = first_found(runs, masks, d)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        mine, group, n = self._rows(rows, first, last)
        found = np.zeros((self._d + 1, n, len(self._columns)), dtype=np.uint32)
        t = self._tables
        for piece in self._pieces(n, first):
            _pigeonhole(
                mine.key, mine.sequence, mine.count, mine.offsets, group,
                t.masks, t.bits, t.offsets, t.longest, t.key, t.sequence, t.count,
                self._left_out, self._first, *piece, found,
            )  # fmt: skip
        return found


class Index(_Join):
    """For each wildcard configuration, the k-mers that are equal up to it: R, of which D follows."""

    def __init__(self, columns: Profile, d: int, pace: Pace | None = None) -> None:
        masks = [wildcard_masks(columns.k, m) for m in range(d + 1)]
        super().__init__(columns, [mask for some in masks for mask in some], pace)
        self._plane = np.repeat(np.arange(d + 1), [len(some) for some in masks])
        self._d = d

    def raw(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """R of `rows` against the columns modulo 2^32, of the shape of `counters`."""
        mine, group, n = self._rows(rows, first, last)
        found = np.zeros((self._d + 1, n, len(self._columns)), dtype=np.uint32)
        t = self._tables
        for piece in self._pieces(n, first):
            _index(
                mine.key, mine.sequence, mine.count, mine.offsets, group,
                t.masks, t.bits, t.offsets, t.key, t.sequence, t.count, self._plane, *piece, found,
            )  # fmt: skip
        return found

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        return exact_from_raw(self.raw(rows, first, last), self._columns.k)


@numba.njit(parallel=True, cache=True)
def _pigeonhole(  # type: ignore[no-untyped-def]
    row_key, row_sequence, row_count, row_offsets, row_group,
    masks, bits, offsets, longest, key, sequence, count, left_out, is_first,
    cells, begin_table, end_table, found,
):  # fmt: skip
    d = found.shape[0] - 1
    rows, columns = found.shape[1], found.shape[2]
    groups = (columns + GROUP - 1) // GROUP
    buckets = 1 << bits
    for cell in prange(len(cells)):
        i0, g = cells[cell] // groups, cells[cell] % groups
        counters = np.zeros((d + 1) * GROUP * GROUP, dtype=np.uint32)
        near = np.empty((2, _PENDING + longest.max() + 1), dtype=np.uint32)
        for t in range(begin_table, end_table):
            my_starts, their_starts = row_offsets[t, (row_group + i0) * buckets :], offsets[t, g * buckets :]
            _join_bucket_wise(
                buckets, my_starts, row_key[t], row_sequence[t], row_count[t], their_starts, key[t], sequence[t],
                count[t], np.uint64(d), masks[t], left_out[t], is_first[t], near[0], near[1], counters,
            )  # fmt: skip
        height, width = min(GROUP, rows - i0 * GROUP), min(GROUP, columns - g * GROUP)
        for h in range(d + 1):
            for i in range(height):
                for j in range(width):
                    found[h, i0 * GROUP + i, g * GROUP + j] += counters[(h * GROUP + i) * GROUP + j]


@numba.njit(cache=True)
def _join_bucket_wise(  # type: ignore[no-untyped-def]
    buckets, my_starts, my_key, my_sequence, my_count, their_starts, their_key, their_sequence, their_count,
    d, mask, left_out, is_first, near_e, near_c, counters,
):  # fmt: skip
    pairs, one, zero = np.uint64(0x5555555555555555), np.uint64(1), np.uint64(0)
    hits = zero
    for b in range(buckets):
        c0, c1 = np.uint64(their_starts[b]), np.uint64(their_starts[b + 1])
        if c0 == c1:
            continue
        for e in range(np.uint64(my_starts[b]), np.uint64(my_starts[b + 1])):
            x = np.uint64(my_key[e])
            # Listed without a branch, which one candidate in five would take: processors guess that badly.
            for c in range(c0, c1):
                z = np.uint64(their_key[c]) ^ x
                z = (z | (z >> one)) & pairs
                near_e[hits], near_c[hits] = e, c
                hits += np.uint64((np.uint64(popcount(z)) <= d) & ((z & mask) == zero))
            if hits >= np.uint64(_PENDING):
                _count(
                    hits, near_e, near_c, my_key, my_sequence, my_count, their_key, their_sequence, their_count,
                    left_out, is_first, counters,
                )  # fmt: skip
                hits = zero
    _count(
        hits, near_e, near_c, my_key, my_sequence, my_count, their_key, their_sequence, their_count,
        left_out, is_first, counters,
    )  # fmt: skip


@numba.njit(cache=True)
def _count(  # type: ignore[no-untyped-def]
    hits, near_e, near_c, my_key, my_sequence, my_count, their_key, their_sequence, their_count,
    left_out, is_first, counters,
):  # fmt: skip
    """Add the pairs of k-mers that this table is the first to find; no branch here either."""
    pairs, one, two, zero = np.uint64(0x5555555555555555), np.uint64(1), np.uint64(2), np.uint64(0)
    run_0, run_1, run_2 = left_out
    plane, group = np.uint64(GROUP * GROUP), np.uint64(GROUP)
    for q in range(hits):
        e, c = np.uint64(near_e[q]), np.uint64(near_c[q])
        z = np.uint64(their_key[c]) ^ np.uint64(my_key[e])
        z = (z | (z >> one)) & pairs
        differing = np.uint64((z & run_0) != zero)
        differing |= np.uint64((z & run_1) != zero) << one
        differing |= np.uint64((z & run_2) != zero) << two
        place = np.uint64(popcount(z)) * plane + np.uint64(my_sequence[e]) * group + np.uint64(their_sequence[c])
        counters[place] += np.uint32(my_count[e]) * np.uint32(their_count[c]) * is_first[differing]


@numba.njit(parallel=True, cache=True)
def _index(  # type: ignore[no-untyped-def]
    row_key, row_sequence, row_count, row_offsets, row_group,
    masks, bits, offsets, key, sequence, count, plane, cells, begin_table, end_table, found,
):  # fmt: skip
    groups = (found.shape[2] + GROUP - 1) // GROUP
    buckets = 1 << bits
    for cell in prange(len(cells)):
        i0, g = cells[cell] // groups, cells[cell] % groups
        for t in range(begin_table, end_table):
            mine, my_sequence, my_count = row_key[t], row_sequence[t], row_count[t]
            theirs, their_sequence, their_count = key[t], sequence[t], count[t]
            my_starts, their_starts = row_offsets[t, (row_group + i0) * buckets :], offsets[t, g * buckets :]
            for b in range(buckets):
                for e in range(my_starts[b], my_starts[b + 1]):
                    x = np.uint64(mine[e])
                    for c in range(their_starts[b], their_starts[b + 1]):
                        if not ((np.uint64(theirs[c]) ^ x) & masks[t]):
                            i, j = i0 * GROUP + my_sequence[e], g * GROUP + their_sequence[c]
                            found[plane[t], i, j] += np.uint32(my_count[e]) * np.uint32(their_count[c])
