"""The k-mers that two sequences share within distance d, and where they lie: regions of neighbouring matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import require_parameters
from hpcvdj.motifs.results import STRANDS
from hpcvdj.motifs.sequences import SequenceSet
from hpcvdj.recombination.alphabet import INVALID

_WAITING = 1 << 18
"""Regions gathered before the best of them are chosen."""


@dataclass(frozen=True)
class Region:
    """Pairs of k-mers within distance d that follow each other, base by base, in both sequences.

    strand     `+`, or `-`: the second sequence reverse-complemented
    first_a, last_a  places in the first sequence, from 1
    first_b, last_b  places in the second sequence as it was given, from 1; on strand `-` first_b is the larger one
    mismatches       bases that differ between the two texts
    pairs            pairs of k-mers at distance 0 … d
    text_a, text_b   the bases, those of `text_b` as they lie against `text_a`; lower case where they differ
    """

    strand: str
    first_a: int
    last_a: int
    first_b: int
    last_b: int
    mismatches: int
    pairs: tuple[int, ...]
    text_a: str
    text_b: str

    @property
    def length(self) -> int:
        """Bases."""
        return len(self.text_a)

    @property
    def nearest(self) -> int:
        """The smallest distance of a pair."""
        return next(h for h, count in enumerate(self.pairs) if count)


@dataclass(frozen=True)
class Shared:
    """What two sequences have in common.

    names    of the two; lengths likewise
    totals   by strand: D_0 … D_d, the counters of a comparison
    found    regions there are
    regions  the longest ones, those of fewer mismatches first, then by strand and place
    """

    names: tuple[str, str]
    lengths: tuple[int, int]
    k: int
    d: int
    totals: dict[str, tuple[int, ...]]
    found: int
    regions: list[Region]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        sequences = [{"name": name, "length": n} for name, n in zip(self.names, self.lengths, strict=True)]
        regions = [
            {
                "strand": region.strand,
                "a": [region.first_a, region.last_a],
                "b": [region.first_b, region.last_b],
                "length": region.length,
                "mismatches": region.mismatches,
                "distance": region.nearest,
                "pairs": list(region.pairs),
                "text_a": region.text_a,
                "text_b": region.text_b,
            }
            for region in self.regions
        ]
        totals = {strand: list(counts) for strand, counts in self.totals.items()}
        return {
            "sequences": sequences, "k": self.k, "d": self.d, "totals": totals, "found": self.found, "regions": regions,
        }  # fmt: skip


def find(sequences: SequenceSet, which: str) -> int:
    """The place of the sequence called `which`, or, if none is called so, number `which` (from 1); else InputError."""
    if which in sequences.names:
        return sequences.names.index(which)
    if which.isdecimal() and 1 <= int(which) <= len(sequences):
        return int(which) - 1
    raise InputError(
        f"no sequence is called {which!r}; give a name or a number from 1 to {len(sequences):,} "
        "(junctions that occur in several rows have the first one's sequence_id)"
    )


def shared_kmers(
    sequences: SequenceSet, a: int, b: int, k: int, d: int, *, strands: int = 1, top: int | None = None
) -> Shared:
    """The k-mers that sequences a and b share within distance d: totals, and the `top` regions (None: all).

    strands  2: also against the reverse complement of b
    """
    require_parameters(k, d)
    mine, other = sequences.part(a, a + 1), sequences.part(b, b + 1)
    totals: dict[str, tuple[int, ...]] = {}
    rows = np.empty((0, _COLUMNS + d + 1), dtype=np.int64)
    found = 0
    theirs = [other[0], other.reverse_complement()[0]][:strands]
    for s, codes in enumerate(theirs):
        some, count = _regions(mine[0], codes, k, d, top)
        totals[STRANDS[s]] = tuple(count[1:].tolist())
        found += int(count[0])
        rows = _best(np.concatenate([rows, np.insert(some, 0, s, axis=1)]), top)
    listed = [_region(row.tolist(), mine[0], theirs) for row in rows]
    lengths = len(mine[0]), len(other[0])
    return Shared((mine.names[0], other.names[0]), lengths, k, d, totals, found, listed)


_COLUMNS = 5
"""Of a row before its pairs by distance: strand, place in a, place in b, length, mismatches."""


def _regions(
    x: NDArray[np.uint8], y: NDArray[np.uint8], k: int, d: int, top: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (place in x, place in y, length, mismatches, pairs at 0 … d), int64; and how many, and the sums of pairs."""
    total = np.zeros(d + 2, dtype=np.int64)
    best = np.empty((0, _COLUMNS + d), dtype=np.int64)
    waiting: list[NDArray[np.int64]] = []
    held = 0
    # One diagonal after the other: memory is that of the shorter sequence, and of the regions kept.
    for shift in range(k - len(x), len(y) - k + 1):
        some = _diagonal(x, y, shift, k, d)
        if not len(some):
            continue
        total[0] += len(some)
        total[1:] += some[:, _COLUMNS - 1 :].sum(axis=0)
        waiting.append(some)
        held += len(some)
        if top is not None and held > max(_WAITING, 2 * top):
            best, waiting, held = _best_here(np.concatenate([best, *waiting]), top), [], 0
    return _best_here(np.concatenate([best, *waiting]), top), total


def _diagonal(x: NDArray[np.uint8], y: NDArray[np.uint8], shift: int, k: int, d: int) -> NDArray[np.int64]:
    """The regions of the pairs of places (p, p + shift)."""
    first = max(0, -shift)
    last = min(len(x), len(y) - shift)
    one, two = x[first:last], y[first + shift : last + shift]
    differ = np.concatenate([[0], np.cumsum(one != two)])
    unknown = np.concatenate([[0], np.cumsum((one == INVALID) | (two == INVALID))])
    distance = differ[k:] - differ[:-k]
    match = (distance <= d) & (unknown[k:] == unknown[:-k])
    if not match.any():
        return np.empty((0, _COLUMNS + d), dtype=np.int64)
    edges = np.diff(match.astype(np.int8), prepend=0, append=0)
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    last_base = ends - 1 + k
    columns = [begins + first, begins + first + shift, last_base - begins, differ[last_base] - differ[begins]]
    for h in range(d + 1):
        so_far = np.concatenate([[0], np.cumsum(match & (distance == h))])
        columns.append(so_far[ends] - so_far[begins])
    return np.stack(columns, axis=1).astype(np.int64)


def _best_here(rows: NDArray[np.int64], top: int | None) -> NDArray[np.int64]:
    """`_best` of rows without their strand."""
    return _best(np.insert(rows, 0, 0, axis=1), top)[:, 1:]


def _best(rows: NDArray[np.int64], top: int | None) -> NDArray[np.int64]:
    """The `top` longest; of those equally long, fewer mismatches first, then by strand and places."""
    strand, at_a, at_b, length, mismatches = rows[:, :_COLUMNS].T
    order = np.lexsort((at_b, at_a, strand, mismatches, -length))
    return rows[order[:top]]


def _region(row: list[int], x: NDArray[np.uint8], theirs: list[NDArray[np.uint8]]) -> Region:
    strand, at_a, at_b, length, mismatches, *pairs = row
    y = theirs[strand]
    one, two = x[at_a : at_a + length], y[at_b : at_b + length]
    differ = one != two
    first_b, last_b = at_b + 1, at_b + length
    if strand:
        first_b, last_b = len(y) + 1 - first_b, len(y) + 1 - last_b
    return Region(
        STRANDS[strand], at_a + 1, at_a + length, first_b, last_b, mismatches, tuple(pairs),
        _text(one, differ), _text(two, differ),
    )  # fmt: skip


_LETTERS = np.array(list("ACTGactg"))


def _text(codes: NDArray[np.uint8], lower: NDArray[np.bool_]) -> str:
    return "".join(_LETTERS[codes.astype(np.int64) + 4 * lower].tolist())
