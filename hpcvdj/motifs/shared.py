"""The k-mers that two sequences share within distance d, and their positions as regions of neighbouring matches."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.motifs.edges import STRANDS
from hpcvdj.recombination.alphabet import INVALID

_WAITING = 1 << 18
"""How many regions are collected before the best of them are chosen."""


@dataclass(frozen=True)
class Region:
    """Pairs of k-mers within distance d that follow each other, base by base, in both sequences.

    strand           `+`, or `-`: the second sequence is reverse-complemented
    first_a, last_a  positions in the first sequence, from 1
    first_b, last_b  positions in the second sequence as it was given, from 1; on strand `-`, first_b is the larger one
    mismatches       number of bases that differ between the two texts
    pairs            number of pairs of k-mers at distance 0 … d
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
        return len(self.text_a)

    @property
    def nearest(self) -> int:
        """The smallest distance of a pair."""
        return next(h for h, count in enumerate(self.pairs) if count)

    def as_json(self) -> dict[str, Any]:
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
class SharedKmers:
    """The k-mers that two sequences have in common.

    names, lengths  of the two sequences
    totals          by strand: D_0 … D_d, the counters of a comparison
    region_count    number of regions
    regions         the longest regions; those of equal length are in the order of mismatches, strand and position
    tables          the tables of each sequence, if several tables were read
    """

    names: tuple[str, str]
    lengths: tuple[int, int]
    k: int
    d: int
    totals: dict[str, tuple[int, ...]]
    region_count: int
    regions: list[Region]
    tables: tuple[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        sequences = [{"name": name, "length": n} for name, n in zip(self.names, self.lengths, strict=True)]
        for facts, names in zip(sequences, self.tables or (), strict=False):
            facts["tables"] = names
        regions = [region.as_json() for region in self.regions]
        totals = {strand: list(counts) for strand, counts in self.totals.items()}
        return {
            "sequences": sequences, "k": self.k, "d": self.d, "totals": totals, "found": self.region_count,
            "regions": regions,
        }  # fmt: skip


def find(sequences: SequenceSet, which: str) -> int:
    """Return the index of the sequence with the name or number (from 1) `which`.  Raise InputError if there is none."""
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
) -> SharedKmers:
    """Return the k-mers that sequences a and b share within distance d: totals, and the `top` regions (None: all).

    strands  1, or 2 to compare with the reverse complement of b, too
    """
    first, second = sequences.part(a, a + 1), sequences.part(b, b + 1)
    sides = [second, second.reverse_complement()][:strands]
    x, totals, number = first[0], dict[str, tuple[int, ...]](), 0
    best = np.empty((0, _COLUMNS + d + 1), dtype=np.int64)
    for strand, side in enumerate(sides):
        y, pairs, waiting = side[0], np.zeros(d + 1, dtype=np.int64), list[NDArray[np.int64]]()
        # With a diagonal at a time, memory is proportional to the shorter sequence and to the kept regions.
        for shift in range(k - len(x), len(y) - k + 1):
            regions = _diagonal(x, y, shift, k, d)
            regions[:, 0] = strand
            number += len(regions)
            pairs += regions[:, _COLUMNS:].sum(axis=0)
            waiting.append(regions)
            if top is not None and sum(map(len, waiting)) > max(_WAITING, 2 * top):
                best, waiting = _best(np.concatenate([best, *waiting]), top), []
        best = _best(np.concatenate([best, *waiting]), top)
        totals[STRANDS[strand]] = tuple(pairs.tolist())
    texts = [side.text(0) for side in sides]
    listed = [_region(row, first.text(0), texts) for row in best.tolist()]
    return SharedKmers((first.names[0], second.names[0]), (len(x), len(second[0])), k, d, totals, number, listed)


_COLUMNS = 5
"""Columns of a region before its pairs by distance: strand, position in a, position in b, length, mismatches."""


def _diagonal(x: NDArray[np.uint8], y: NDArray[np.uint8], shift: int, k: int, d: int) -> NDArray[np.int64]:
    """Return the regions of the pairs of positions (p, p + shift)."""
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
    """Return the `top` longest regions; those of equal length are in the order of mismatches, strand and positions."""
    strand, at_a, at_b, length, mismatches = rows[:, :_COLUMNS].T
    order = np.lexsort((at_b, at_a, strand, mismatches, -length))
    return rows[order[:top]]


def _region(row: list[int], x: str, sides: list[str]) -> Region:
    strand, at_a, at_b, length, mismatches, *pairs = row
    y = sides[strand]
    text_a, text_b = x[at_a : at_a + length], y[at_b : at_b + length]
    first_b, last_b = at_b + 1, at_b + length
    if strand:
        first_b, last_b = len(y) + 1 - first_b, len(y) + 1 - last_b
    return Region(
        STRANDS[strand], at_a + 1, at_a + length, first_b, last_b, mismatches, tuple(pairs),
        _lowered(text_a, text_b), _lowered(text_b, text_a),
    )  # fmt: skip


def _lowered(text: str, other: str) -> str:
    """Return `text` with letters in lower case where it differs from `other`."""
    return "".join(p if p == q else p.lower() for p, q in zip(text, other, strict=True))
