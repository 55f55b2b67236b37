"""`index` and `pigeonhole` on a CPU: the k-mers of two groups of sequences that are in the same bucket are compared.

The sequences are cut into groups, so that the counters of two groups stay in a core's cache.  A table puts the k-mers
of each group into buckets by the positions of its mask: two k-mers that agree on them are in the same bucket of their
groups.  Other k-mers may be in it too; the comparison of whole keys excludes them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.bits import popcount
from hpcvdj.kernels.kmers.masks import HASH_FACTOR, exact_from_raw, fields
from hpcvdj.kernels.kmers.methods import JoinMethod, key_bytes, require_numbered
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.pacing import Pacer
from hpcvdj.kernels.threads import on_threads, parts_of, turns_of

_FACTOR = np.uint64(HASH_FACTOR)

GROUP = 512
"""Sequences of a group.  512 x 512 counters for three distances are 3 MB."""

_MOST_BITS = 18

_PENDING = 4096
"""Pairs of k-mers that are listed before they are counted: so many that the processor predicts the loop's end."""


class Entries(NamedTuple):
    """The entries of one table of `Buckets`."""

    key: NDArray[np.unsignedinteger]
    sequence: NDArray[np.uint16]
    times: NDArray[np.uint16]


class Buckets(NamedTuple):
    """Tables of one set of k-mers, in groups of `GROUP` sequences, each in 2^bits buckets.

    masks     uint64 [tables]: the kept positions
    bits      log2 of the buckets of a group
    offsets   int64 [tables, groups * 2^bits + 1]: entries of bucket b of group g of table t begin at
              offsets[t, g * 2^bits + b]
    longest   int64 [tables]: entries of the fullest bucket
    key       uint32 (k ≤ 16) or uint64 [tables, k-mers]
    sequence  uint16 [tables, k-mers]: within the group, ascending in a bucket
    times     uint16 [tables, k-mers]: occurrences in the sequence
    """

    masks: NDArray[np.uint64]
    bits: int
    offsets: NDArray[np.int64]
    longest: NDArray[np.int64]
    key: NDArray[np.unsignedinteger]
    sequence: NDArray[np.uint16]
    times: NDArray[np.uint16]


@numba.njit(cache=True, nogil=True)
def _fill(part, kmers, counts, begins, mask, runs, bits, offsets, key, sequence, count, longest):  # type: ignore[no-untyped-def]
    """A counting sort of the k-mers of a part's groups (first, end) for one table.

    longest  int64 [groups]: the entries of the fullest bucket of each
    """
    n, buckets = len(begins) - 1, 1 << bits
    for g in range(part[0], part[1]):
        first, last = g * GROUP, min((g + 1) * GROUP, n)
        begin, end = begins[first], begins[last]
        bucket = np.empty(end - begin, dtype=np.uint32)
        target = np.zeros(buckets, dtype=np.int64)
        for e in range(begin, end):
            x = np.uint64(kmers[e]) & mask
            value = np.uint64(0)
            for run in range(len(runs)):
                value |= (x >> runs[run, 0] & runs[run, 1]) << runs[run, 2]
            if len(runs) == 0:
                value = (x * _FACTOR) >> np.uint64(64 - bits)
            bucket[e - begin] = value
            target[np.int64(value)] += 1
        longest[g] = target.max()
        for b in range(buckets):
            entries = target[b]
            target[b] = offsets[(g << bits) + b] = begin
            begin += entries
        for i in range(first, last):
            for e in range(begins[i], begins[i + 1]):
                b = bucket[e - begins[first]]
                to, target[b] = target[b], target[b] + 1
                key[to], sequence[to], count[to] = kmers[e], i - first, counts[e]


class Join:
    """The columns in tables; rows are put into tables like them."""

    def __init__(self, columns: Profile, method: JoinMethod, pace: Pacer) -> None:
        self._columns, self._d, self._tables, self._pace = columns, method.d, method.join, pace
        # About one bucket for each k-mer of a group, at most as many as the masks can tell apart.
        in_group = len(columns.kmers.key) * GROUP // max(len(columns), GROUP)
        kept = max(mask.bit_count() for mask in self._tables.masks)
        self._bits = max(1, min(in_group.bit_length() - 1, kept, _MOST_BITS))
        self._buckets = self._make(columns)

    def _make(self, sequences: Profile) -> Buckets:
        """The tables of `sequences`, made by all threads.

        A mask that keeps at most `_bits` bits has a bucket for each of its values; the values of others are hashed.
        """
        kmers, masks, bits = sequences.kmers, self._tables.masks, self._bits
        n, groups = len(kmers.key), -(-len(kmers) // GROUP)
        require_numbered(n)
        tables = Buckets(
            np.array(masks, dtype=np.uint64),
            bits,
            np.full((len(masks), (groups << bits) + 1), n, dtype=np.int64),
            np.zeros(len(masks), dtype=np.int64),
            np.empty((len(masks), n), dtype=f"u{key_bytes(kmers.k)}"),
            np.empty((len(masks), n), dtype=np.uint16),
            np.empty((len(masks), n), dtype=np.uint16),
        )
        for t, mask in enumerate(masks):
            closing = fields(mask) if mask.bit_count() <= bits else []
            runs = np.array(closing, dtype=np.uint64).reshape(-1, 3)
            longest = np.zeros(groups, dtype=np.int64)
            on_threads(
                _fill, parts_of(groups, 1), kmers.key, kmers.count, kmers.offsets, tables.masks[t], runs, bits,
                tables.offsets[t], tables.key[t], tables.sequence[t], tables.times[t], longest,
            )  # fmt: skip
            tables.longest[t] = longest.max(initial=0)
            self._pace.between()
        return tables

    def _rows(self, rows: Profile | None, first: int | None, last: int | None) -> tuple[Buckets, int, int]:
        """Tables that have the rows, the group in which the rows begin, and the number of rows."""
        if rows is not None:
            return self._make(rows), 0, len(rows)
        first, last = first or 0, len(self._columns) if last is None else last
        # The columns' tables have whole groups of them already.
        if first % GROUP == 0 and (last % GROUP == 0 or last == len(self._columns)):
            return self._buckets, first // GROUP, last - first
        return self._make(self._columns.part(first, last)), 0, last - first

    def _pieces(self, rows: int, first: int | None) -> Iterator[tuple[NDArray[np.int64], int, int]]:
        """Pairs of groups to join, one for each thread at least, and a range of tables; all if that is quick."""
        groups, tables = -(-len(self._columns) // GROUP), len(self._tables.masks)
        row_group, column_group = np.divmod(np.arange(-(-rows // GROUP) * groups), max(1, groups))
        # Pairs of groups below the diagonal would take no time, and spoil the estimate for the next piece.
        needed = row_group >= 0 if first is None else (column_group + 1) * GROUP > first + row_group * GROUP
        cells = np.flatnonzero(needed)
        for begin, end in self._pace.steps(len(cells), numba.get_num_threads()):
            step = max(1, int(tables * self._pace.share(end - begin)))
            for table in range(0, tables, step):
                if table:
                    self._pace.between()
                yield cells[begin:end], table, min(tables, table + step)

    def counters(self, rows: Profile | None, first: int | None = None, last: int | None = None) -> NDArray[np.uint32]:
        """D of `rows` against the columns."""
        row_buckets, group, n = self._rows(rows, first, last)
        counters = np.zeros((self._d + 1, n, len(self._columns)), dtype=np.uint32)
        tables = self._tables
        for piece in self._pieces(n, first):
            arguments = row_buckets, group, self._buckets, tables.left_out, tables.counts, tables.plane
            on_threads(_join, turns_of(len(piece[0])), *arguments, *piece, counters)
        return counters if tables.plane is None else exact_from_raw(counters, self._columns.k)


@numba.njit(cache=True, nogil=True)
def _join(  # type: ignore[no-untyped-def]
    part, rows, row_group, columns, left_out, counts, plane, cells, first_table, last_table, counters
):
    planes, row_number, column_number = counters.shape
    groups = (column_number + GROUP - 1) // GROUP
    buckets = 1 << columns.bits
    for cell in range(part[0], part[1], part[2]):
        i0, g = cells[cell] // groups, cells[cell] % groups
        local = np.zeros(planes * GROUP * GROUP, dtype=np.uint32)
        hits = np.empty((2, _PENDING + columns.longest.max() + 1), dtype=np.uint32)
        for t in range(first_table, last_table):
            row_starts, starts = rows.offsets[t, (row_group + i0) * buckets :], columns.offsets[t, g * buckets :]
            row_entries = Entries(rows.key[t], rows.sequence[t], rows.times[t])
            entries = Entries(columns.key[t], columns.sequence[t], columns.times[t])
            _join_buckets(
                buckets, row_starts, row_entries, starts, entries, np.uint64(planes - 1), t, columns.masks[t],
                left_out[t], counts[t], plane, hits[0], hits[1], local,
            )  # fmt: skip
        height, width = min(GROUP, row_number - i0 * GROUP), min(GROUP, column_number - g * GROUP)
        for h in range(planes):
            for i in range(height):
                for j in range(width):
                    counters[h, i0 * GROUP + i, g * GROUP + j] += local[(h * GROUP + i) * GROUP + j]


@numba.njit(cache=True, nogil=True)
def _join_buckets(  # type: ignore[no-untyped-def]
    buckets, row_starts, rows, starts, columns, d, t, mask, left_out, counts, plane, hit_row, hit_column, counters
):
    pairs, one, zero = np.uint64(0x5555555555555555), np.uint64(1), np.uint64(0)
    hits = zero
    for b in range(buckets):
        c0, c1 = np.uint64(starts[b]), np.uint64(starts[b + 1])
        if c0 == c1:
            continue
        for e in range(np.uint64(row_starts[b]), np.uint64(row_starts[b + 1])):
            x = np.uint64(rows.key[e])
            # Listed without a branch, which one candidate in five would take: processors predict that badly.
            for c in range(c0, c1):
                z = np.uint64(columns.key[c]) ^ x
                hit_row[hits], hit_column[hits] = e, c
                if plane is None:
                    z = (z | (z >> one)) & pairs
                    hits += np.uint64((np.uint64(popcount(z)) <= d) & ((z & mask) == zero))
                else:
                    hits += np.uint64((z & mask) == zero)
            if hits >= np.uint64(_PENDING):
                _count(hits, hit_row, hit_column, rows, columns, t, left_out, counts, plane, counters)
                hits = zero
    _count(hits, hit_row, hit_column, rows, columns, t, left_out, counts, plane, counters)


@numba.njit(cache=True, nogil=True)
def _count(hits, hit_row, hit_column, rows, columns, t, left_out, counts, plane, counters):  # type: ignore[no-untyped-def]
    """Add the pairs of k-mers that this table counts; without a branch as well."""
    pairs, one, two, zero = np.uint64(0x5555555555555555), np.uint64(1), np.uint64(2), np.uint64(0)
    run_0, run_1, run_2 = left_out
    plane_size, group = np.uint64(GROUP * GROUP), np.uint64(GROUP)
    for q in range(hits):
        e, c = np.uint64(hit_row[q]), np.uint64(hit_column[q])
        product = np.uint32(rows.times[e]) * np.uint32(columns.times[c])
        if plane is None:
            z = np.uint64(columns.key[c]) ^ np.uint64(rows.key[e])
            z = (z | (z >> one)) & pairs
            differing = np.uint64((z & run_0) != zero)
            differing |= np.uint64((z & run_1) != zero) << one
            differing |= np.uint64((z & run_2) != zero) << two
            h, product = np.uint64(popcount(z)), product * counts[differing]
        else:
            h = np.uint64(plane[t])
        counters[h * plane_size + np.uint64(rows.sequence[e]) * group + np.uint64(columns.sequence[c])] += product
