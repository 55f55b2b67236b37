"""The k-mers that two sequences share within distance d, and where they are: regions of neighbouring matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import require_parameters
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.motifs.results import STRANDS
from hpcvdj.recombination.alphabet import BASES, INVALID

_WAITING = 1 << 18
"""Regions that are collected before the best of them are chosen."""


@dataclass(frozen=True)
class Region:
    """Pairs of k-mers within distance d that follow each other, base by base, in both sequences.

    strand     `+`, or `-`: the second sequence reverse-complemented
    first_a, last_a  positions in the first sequence, from 1
    first_b, last_b  positions in the second sequence as it was given, from 1; on strand `-` first_b is the larger one
    mismatches       bases that differ between the two texts
    pairs            pairs of k-mers at distance 0 … d
    text_a, text_b   the bases, those of `text_b` aligned to `text_a`; lower case where they differ
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

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "strand": self.strand,
            "a": [self.first_a, self.last_a],
            "b": [self.first_b, self.last_b],
            "length": self.length,
            "mismatches": self.mismatches,
            "distance": self.nearest,
            "pairs": list(self.pairs),
            "text_a": self.text_a,
            "text_b": self.text_b,
        }


@dataclass(frozen=True)
class Shared:
    """What two sequences have in common.

    names    of the two; lengths likewise
    totals   by strand: D_0 … D_d, the counters of a comparison
    found    how many regions there are
    regions  the longest ones; of equal length, fewer mismatches first, then by strand and position
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
        regions = [region.as_json() for region in self.regions]
        totals = {strand: list(counts) for strand, counts in self.totals.items()}
        return {
            "sequences": sequences, "k": self.k, "d": self.d, "totals": totals, "found": self.found, "regions": regions,
        }  # fmt: skip


def find(sequences: SequenceSet, which: str) -> int:
    """The index of the sequence called `which`, or, if none is called so, number `which` (from 1); else InputError."""
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
    first, second = sequences.part(a, a + 1), sequences.part(b, b + 1)
    sides = [second[0], second.reverse_complement()[0]][:strands]
    totals: dict[str, tuple[int, ...]] = {}
    rows = np.empty((0, _COLUMNS + d + 1), dtype=np.int64)
    found = 0
    for strand, codes in enumerate(sides):
        regions, sums = _regions(first[0], codes, k, d, top)
        totals[STRANDS[strand]] = tuple(sums[1:].tolist())
        found += int(sums[0])
        regions[:, 0] = strand
        rows = _best(np.concatenate([rows, regions]), top)
    listed = [_region(row.tolist(), first[0], sides) for row in rows]
    return Shared((first.names[0], second.names[0]), (len(first[0]), len(second[0])), k, d, totals, found, listed)


_COLUMNS = 5
"""Of a region before its pairs by distance: strand, position in a, position in b, length, mismatches."""


def _regions(
    x: NDArray[np.uint8], y: NDArray[np.uint8], k: int, d: int, top: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The best regions, int64 [regions, columns], on strand 0; and how many there are, and the sums of their pairs."""
    sums = np.zeros(d + 2, dtype=np.int64)
    best = np.empty((0, _COLUMNS + d + 1), dtype=np.int64)
    waiting: list[NDArray[np.int64]] = []
    # One diagonal after the other: memory is that of the shorter sequence, and of the regions kept.
    for shift in range(k - len(x), len(y) - k + 1):
        regions = _diagonal(x, y, shift, k, d)
        sums[0] += len(regions)
        sums[1:] += regions[:, _COLUMNS:].sum(axis=0)
        waiting.append(regions)
        if top is not None and sum(map(len, waiting)) > max(_WAITING, 2 * top):
            best, waiting = _best(np.concatenate([best, *waiting]), top), []
    return _best(np.concatenate([best, *waiting]), top), sums


def _diagonal(x: NDArray[np.uint8], y: NDArray[np.uint8], shift: int, k: int, d: int) -> NDArray[np.int64]:
    """The regions of the pairs of positions (p, p + shift)."""
    first, last = max(0, -shift), min(len(x), len(y) - shift)
    x, y = x[first:last], y[first + shift : last + shift]
    differ = np.concatenate([[0], np.cumsum(x != y)])
    unknown = np.concatenate([[0], np.cumsum((x == INVALID) | (y == INVALID))])
    distance = differ[k:] - differ[:-k]
    match = (distance <= d) & (unknown[k:] == unknown[:-k])
    if not match.any():
        return np.empty((0, _COLUMNS + d + 1), dtype=np.int64)
    edges = np.diff(match.astype(np.int8), prepend=0, append=0)
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    last_base = ends - 1 + k
    columns = [
        np.zeros_like(begins), begins + first, begins + first + shift, last_base - begins,
        differ[last_base] - differ[begins],
    ]  # fmt: skip
    for h in range(d + 1):
        before = np.concatenate([[0], np.cumsum(match & (distance == h))])
        columns.append(before[ends] - before[begins])
    return np.stack(columns, axis=1).astype(np.int64)


def _best(rows: NDArray[np.int64], top: int | None) -> NDArray[np.int64]:
    """The `top` longest; of equal length, fewer mismatches first, then by strand and positions."""
    strand, at_a, at_b, length, mismatches = rows[:, :_COLUMNS].T
    order = np.lexsort((at_b, at_a, strand, mismatches, -length))
    return rows[order[:top]]


def _region(row: list[int], x: NDArray[np.uint8], sides: list[NDArray[np.uint8]]) -> Region:
    strand, at_a, at_b, length, mismatches, *pairs = row
    y = sides[strand]
    codes_a, codes_b = x[at_a : at_a + length], y[at_b : at_b + length]
    differ = codes_a != codes_b
    first_b, last_b = at_b + 1, at_b + length
    if strand:
        first_b, last_b = len(y) + 1 - first_b, len(y) + 1 - last_b
    return Region(
        STRANDS[strand], at_a + 1, at_a + length, first_b, last_b, mismatches, tuple(pairs),
        _text(codes_a, differ), _text(codes_b, differ),
    )  # fmt: skip


_LETTERS = np.array(list(BASES + BASES.lower()))


def _text(codes: NDArray[np.uint8], lower: NDArray[np.bool_]) -> str:
    return "".join(_LETTERS[codes.astype(np.int64) + len(BASES) * lower].tolist())
