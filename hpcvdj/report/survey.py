"""What a report says of a result, from one pass over it in blocks: memory does not grow with the rows.

Counts are exact.  Pathways per junction are kept value by value up to `EXACT`, beyond it in bins of 1/128 octave.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.counting.totals import column_sums
from hpcvdj.errors import InputError
from hpcvdj.repertoires.junctions import LONGEST_CDR3
from hpcvdj.report.translation import translate
from hpcvdj.results.reader import Result

BLOCK_BYTES = 1 << 25
"""Bytes of counters and sequences read at a time."""

EXACT = 1 << 20
"""Pathways per junction below this are counted value by value."""

BINS_PER_DECADE = 4
"""Bins of the histograms of pathways."""

FINE = 4
"""Each of these bins is kept in so many finer ones, from which medians are taken."""

DECADES = 20
"""Enough for any 64-bit counter."""

MOST_CONVERGENT = 20
"""Junctions in the list of the most convergent."""

_MOST_TIED = 10_000
_MOST_REASONS = 10_000
_LEADING_BITS = 7

_edges = np.ceil(10.0 ** (np.arange(DECADES * BINS_PER_DECADE * FINE) / (BINS_PER_DECADE * FINE)) - 1e-9)
FINE_EDGES: NDArray[np.uint64] = _edges[_edges < 2.0**63].astype(np.uint64)
"""uint64 [fine bins]: the least number of pathways in each fine bin; several may start at the same small number."""

EDGES: NDArray[np.uint64] = FINE_EDGES[::FINE]
"""uint64 [bins]: the least number of pathways in each bin: 1, 2, 4, 6, 10, 18 …"""


@dataclass(frozen=True)
class Junction:
    """A distinct junction: its calls and CDR3, the rows that have it, its pathways by n-length (uint64 [N + 1])."""

    v_call: str
    j_call: str
    cdr3: str
    sequence_id: str
    rows: int
    counters: NDArray[np.uint64]

    @property
    def pathways(self) -> int:
        """Pathways of all n-lengths."""
        return sum(map(int, self.counters))

    @property
    def amino_acids(self) -> str:
        """The CDR3's amino acids, or `out of frame`."""
        found = translate(self.cdr3)
        return "out of frame" if found is None else found


@dataclass
class PerJunction:
    """How many junctions have how many pathways.

    low  int64 [EXACT]   junctions with exactly so many; high  {bin: junctions}, bins of 1/128 octave
    """

    low: NDArray[np.int64] = field(default_factory=lambda: np.zeros(EXACT, np.int64))
    high: Counter[int] = field(default_factory=Counter)

    def add(self, totals: NDArray[np.uint64]) -> None:
        """Take in the pathways of some junctions, uint64 [rows]."""
        small = totals[totals < EXACT]
        if len(small):
            found = np.bincount(small.astype(np.int64))
            self.low[: len(found)] += found
        large = totals[totals >= EXACT]
        # A bin's number is the value's leading bits at their place: its lower end.
        shift = (np.frexp(large.astype(np.float64))[1] - 1 - _LEADING_BITS).astype(np.uint64)
        values, counts = np.unique(large >> shift << shift, return_counts=True)
        self.high.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def quantile(self, share: float) -> tuple[float, bool]:
        """The quantile as NumPy's default defines it, and whether it is exact; 0 of nothing."""
        size = int(self.low.sum()) + sum(self.high.values())
        if not size:
            return 0.0, True
        place = share * (size - 1)
        below, above = self._value(int(place)), self._value(min(int(place) + 1, size - 1))
        weight = place - int(place)
        return below + weight * (above - below), (above if weight else below) < EXACT

    def middle(self) -> int:
        """The lower median of the junctions that have a pathway; there must be one."""
        none = int(self.low[0])
        return self._value(none + (int(self.low.sum()) + sum(self.high.values()) - none - 1) // 2)

    def _value(self, rank: int) -> int:
        ends = np.cumsum(self.low)
        if rank < ends[-1]:
            return int(np.searchsorted(ends, rank, side="right"))
        left = rank - int(ends[-1])
        for value in sorted(self.high):
            left -= self.high[value]
            if left < 0:
                return value
        raise IndexError(rank)


@dataclass
class Survey:
    """All that a report shows of one result.

    by_n            list of int [N + 1]: pathways of each n-length, over all junctions
    reached         int64 [N + 1]: junctions whose pathway with the fewest n-nucleotides has m of them
    totals          fine histogram, int64 [fine bins + 1], of pathways per junction; [0] are those with none
    totals_by_n     likewise by n-length, int64 [N + 1, fine bins + 1]
    totals_by_size  likewise by CDR3 length in nt, int64 [LONGEST_CDR3 + 1, fine bins + 1]
    pairs           {(V gene, J gene): [junctions, pathways]}
    shown           (what it is, junction) of those whose pathways are drawn
    repertoires     sequences of each repertoire, if tables were counted together
    tables          how many these were
    """

    name: str
    path: Path
    max_n: int
    counted: int
    facts: dict[str, Any]
    by_n: list[int]
    reached: NDArray[np.int64]
    totals: NDArray[np.int64]
    totals_by_n: NDArray[np.int64]
    totals_by_size: NDArray[np.int64]
    per_junction: PerJunction = field(default_factory=PerJunction)
    pairs: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    allele_pairs: int = 0
    in_frame: int = 0
    most: int = 0
    convergent: list[Junction] = field(default_factory=list)
    shown: list[tuple[str, Junction]] = field(default_factory=list)
    repertoires: dict[str, int] = field(default_factory=dict)
    tables: int = 0
    excluded: int = 0
    reasons: list[tuple[str, int, list[tuple[str, int]]]] = field(default_factory=list)
    ranks: list[dict[str, str]] = field(default_factory=list)
    timings: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def pathways(self) -> int:
        """Pathways of all junctions and n-lengths."""
        return sum(self.by_n)

    @property
    def with_pathway(self) -> int:
        """Junctions with at least one pathway."""
        return int(self.reached.sum())

    @property
    def rows_read(self) -> int:
        """Rows of the counted table."""
        return self.counted + self.excluded


def coarse(histogram: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fine histograms, int64 [..., fine bins + 1], as int64 [..., bins + 1]."""
    starts = np.concatenate([[0], np.arange(1, histogram.shape[-1], FINE)])
    return np.add.reduceat(histogram, starts, axis=-1)


def binned(totals: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The fine bin of each number of pathways: 0 for none, k for FINE_EDGES[k - 1] and above; int64, same shape."""
    return np.searchsorted(FINE_EDGES, totals, side="right").astype(np.int64)


def survey(path: str | Path, name: str, junction: str | None = None) -> Survey:
    """Read the result at `path`; InputError if it is damaged or a part of it is missing.

    `junction` is the sequence_id of the one whose pathways are to be drawn.
    """
    with Result(path) as result:
        try:
            _require_parts(result)
            return _survey(result, name, junction)
        except (KeyError, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged ({error}); copy it again, or count again") from None


def _require_parts(result: Result) -> None:
    """HDF5 reads zeros where a part is missing, so look for each."""
    for part in result.parts:
        if not part.is_file():
            raise InputError(f"{part}: a part of {result.path} is missing; keep the folder of its parts beside it")


def _survey(result: Result, name: str, junction: str | None) -> Survey:
    columns = result.max_n + 1
    bins = len(FINE_EDGES) + 1
    found = Survey(
        name=name,
        path=result.path,
        max_n=result.max_n,
        counted=len(result),
        facts=result.provenance,
        by_n=[0] * columns,
        reached=np.zeros(columns, np.int64),
        totals=np.zeros(bins, np.int64),
        totals_by_n=np.zeros((columns, bins), np.int64),
        totals_by_size=np.zeros((LONGEST_CDR3 + 1, bins), np.int64),
    )
    pairs = result.pairs
    found.allele_pairs = len({(v, j) for v, j, rows in pairs if rows.stop > rows.start})
    top = _Top()
    for rows in _blocks(result):
        _add_block(found, top, result, pairs, rows)
    found.convergent = top.junctions(result)
    found.shown = _shown(found, result, pairs, junction)
    found.excluded, found.reasons = _reasons(result)
    if result.together:
        found.repertoires, found.tables = result.repertoires, len(result.tables)
    ranks = {key: [text.decode() for text in values[:]] for key, values in result.dataset("ranks").items()}
    found.ranks = [dict(zip(ranks, values, strict=True)) for values in zip(*ranks.values(), strict=True)]
    found.timings = {key: np.asarray(values[:]) for key, values in result.dataset("timings").items()}
    return found


def _blocks(result: Result) -> Iterator[slice]:
    width = result.dataset("sequences/cdr3").dtype.itemsize
    step = max(1, BLOCK_BYTES // (8 * (result.max_n + 1) + width))
    for first in range(0, len(result), step):
        yield slice(first, min(len(result), first + step))


def _add_block(found: Survey, top: _Top, result: Result, pairs: list[tuple[str, str, slice]], rows: slice) -> None:
    counters = np.asarray(result.counters[rows])
    letters = np.ascontiguousarray(result.dataset("sequences/cdr3")[rows])
    sizes = np.count_nonzero(letters.view(np.uint8).reshape(len(letters), -1), axis=1)
    totals = counters.sum(axis=1, dtype=np.uint64)
    bins = binned(totals)
    found.by_n = [a + b for a, b in zip(found.by_n, column_sums(counters), strict=True)]
    some = counters > 0
    found.reached += np.bincount(some.argmax(axis=1)[some.any(axis=1)], minlength=len(found.reached))
    found.totals += np.bincount(bins, minlength=len(found.totals))
    for m in range(counters.shape[1]):
        found.totals_by_n[m] += np.bincount(binned(counters[:, m]), minlength=len(found.totals))
    flat = np.bincount(sizes * len(found.totals) + bins, minlength=found.totals_by_size.size)
    found.totals_by_size += flat.reshape(found.totals_by_size.shape)
    found.in_frame += int(np.count_nonzero(sizes % 3 == 0))
    found.per_junction.add(totals)
    found.most = max(found.most, int(totals.max()))
    pair_of = np.zeros(len(totals), np.int64)
    last = bisect_left(pairs, rows.stop, key=lambda pair: pair[2].start)
    for number in range(bisect_left(pairs, rows.start + 1, key=lambda pair: pair[2].stop), last):
        v, j, whole = pairs[number]
        part = slice(max(whole.start, rows.start) - rows.start, min(whole.stop, rows.stop) - rows.start)
        if part.stop > part.start:
            pair_of[part] = number
            cell = found.pairs.setdefault((gene(v), gene(j)), [0, 0])
            cell[0] += part.stop - part.start
            cell[1] += int(totals[part].sum(dtype=np.uint64))
    top.add(rows.start, counters, totals, letters, pair_of, pairs)


def gene(allele: str) -> str:
    """The gene of an allele: what stands before `*`."""
    return allele.partition("*")[0]


def _shown(
    found: Survey, result: Result, pairs: list[tuple[str, str, slice]], junction: str | None
) -> list[tuple[str, Junction]]:
    """The junction asked for, or the most convergent one and the first that has as many pathways as the median one."""
    if junction is not None:
        wanted = junction.encode()
        row = _first_row(result, lambda rows: result.dataset("sequences/sequence_id")[rows] == wanted)
        return [] if row is None else [("the junction asked for", _junction_at(result, pairs, row))]
    if not found.convergent:
        return []
    value = np.uint64(found.per_junction.middle())
    row = _first_row(result, lambda rows: result.counters[rows].sum(axis=1, dtype=np.uint64) == value)
    out = [("the most convergent junction", found.convergent[0])]
    # Where medians are not exact, no junction may have just so many pathways.
    return out if row is None else [*out, ("a typical junction", _junction_at(result, pairs, row))]


def _first_row(result: Result, matches: Callable[[slice], NDArray[np.bool_]]) -> int | None:
    for rows in _blocks(result):
        hits = np.flatnonzero(matches(rows))
        if len(hits):
            first: int = rows.start + int(hits[0])
            return first
    return None


def _junction_at(result: Result, pairs: list[tuple[str, str, slice]], row: int) -> Junction:
    v, j, _ = pairs[bisect_left(pairs, row + 1, key=lambda pair: pair[2].stop)]
    cdr3 = result.dataset("sequences/cdr3")[row].decode()
    return Junction(v, j, cdr3, _name_of(result, row), 1, np.asarray(result.counters[row]))


def _name_of(result: Result, row: int) -> str:
    """The id of a row, which of tables that were counted together is one in its repertoire only."""
    name: str = result.dataset("sequences/sequence_id")[row].decode()
    return f"{name} of {result.dataset('sequences/repertoire_id')[row].decode()}" if result.together else name


class _Top:
    """The distinct junctions (V, J, CDR3) with the most pathways, and how many rows have each.

    All rows of a junction have the same pathways, so that none is missed: a junction below the last of the list is
    dropped for good.
    """

    def __init__(self) -> None:
        # (V, J, CDR3) -> [pathways, first row, rows, counters]
        self._found: dict[tuple[str, str, bytes], list[Any]] = {}
        self._least = 1

    def add(
        self,
        first: int,
        counters: NDArray[np.uint64],
        totals: NDArray[np.uint64],
        letters: NDArray[np.bytes_],
        pair_of: NDArray[np.int64],
        pairs: list[tuple[str, str, slice]],
    ) -> None:
        """Take in a block of rows, the first of them row `first` of the result."""
        values = np.unique(totals)
        # That many values are at least that many junctions.
        least = max(self._least, int(values[-min(len(values), MOST_CONVERGENT)]))
        chosen = np.flatnonzero(totals >= np.uint64(least))
        chosen = chosen[np.lexsort((chosen, letters[chosen], pair_of[chosen]))]
        new = np.ones(len(chosen), dtype=bool)
        same_pair = pair_of[chosen[1:]] == pair_of[chosen[:-1]]
        new[1:] = ~same_pair | (letters[chosen[1:]] != letters[chosen[:-1]])
        starts = np.flatnonzero(new)
        sizes = np.diff([*starts.tolist(), len(chosen)])
        for row, rows in zip(chosen[starts].tolist(), sizes.tolist(), strict=True):
            v, j, _ = pairs[pair_of[row]]
            key = (v, j, bytes(letters[row]))
            entry = self._found.setdefault(key, [int(totals[row]), first + row, 0, counters[row].copy()])
            entry[2] += rows
        self._trim()

    def _trim(self) -> None:
        ranked = sorted(self._found.items(), key=lambda item: (-item[1][0], item[1][1]))
        if len(ranked) > MOST_CONVERGENT:
            self._least = max(self._least, ranked[MOST_CONVERGENT - 1][1][0])
        self._found = dict([item for item in ranked if item[1][0] >= self._least][:_MOST_TIED])

    def junctions(self, result: Result) -> list[Junction]:
        """The list, the most pathways first; of equals, the one that stands first in the result."""
        out = []
        for (v, j, cdr3), (_, row, rows, counters) in list(self._found.items())[:MOST_CONVERGENT]:
            out.append(Junction(v, j, cdr3.decode(), _name_of(result, row), rows, counters))
        return out


_REPEATED = re.compile(r"sequence_id repeats that of data row .*")
_KINDS = [
    (re.compile(pattern, re.DOTALL), kind)
    for pattern, kind in (
        (r"junction of .* nt is shorter than its two anchor codons", "junction shorter than its two anchor codons"),
        (r"CDR3 of .* nt is longer than (\d+) nt", r"CDR3 longer than \1 nt"),
        (r"(junction|cdr3) holds .*", r"\1 holds another letter than A, C, G, T"),
        (r"ambiguous ([VJ]) call .*", r"ambiguous \1 call: several genes or alleles"),
        (r"([VJ]) gene .* is not in the germline table", r"\1 gene not in the germline table"),
        (r"([VJ]) allele .* is not in the germline table, other alleles of .* are",
         r"\1 allele not in the germline table, though others of its gene are"),
        (r"V is of locus .*, J of .*", "V and J of different loci"),
        (_REPEATED.pattern, "sequence_id repeats that of an earlier row"),
    )
]  # fmt: skip


def kind_of(reason: str) -> str:
    """A reason without what is particular to the row."""
    for pattern, kind in _KINDS:
        match = pattern.fullmatch(reason)
        if match:
            return match.expand(kind)
    return reason


def _reasons(result: Result) -> tuple[int, list[tuple[str, int, list[tuple[str, int]]]]]:
    """Excluded rows, and (kind of reason, rows, the commonest reasons of that kind word for word)."""
    data = result.dataset("excluded/reason")
    kinds: Counter[str] = Counter()
    words: Counter[str] = Counter()
    step = max(1, BLOCK_BYTES // data.dtype.itemsize)
    for first in range(0, len(data), step):
        for reason, rows in Counter(data[first : first + step].tolist()).items():
            text = reason.decode("utf-8", "replace")
            kinds[kind_of(text)] += rows
            # Every repeated id has a reason of its own, which says nothing more.
            if not _REPEATED.fullmatch(text) and (text in words or len(words) < _MOST_REASONS):
                words[text] += rows
    named: dict[str, list[tuple[str, int]]] = {}
    for text, rows in sorted(words.items(), key=lambda item: (-item[1], item[0])):
        if kind_of(text) != text:
            named.setdefault(kind_of(text), []).append((text, rows))
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return len(data), [(kind, rows, named.get(kind, [])[:5]) for kind, rows in ranked]
