"""Measure the methods of comparing motifs side by side, from sequences to the counters of all pairs."""

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numba
import numpy as np

from hpcvdj.errors import choices, require_choice
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.kmers.kmers import MAX_K
from hpcvdj.kernels.kmers.masks import exact_from_raw
from hpcvdj.kernels.kmers.methods import KmerMethod, array_module, choose
from hpcvdj.kernels.kmers.profile import Profile, profile
from hpcvdj.kernels.kmers.sequences import SequenceSet
from hpcvdj.motifs.fasta import read_fasta
from hpcvdj.recombination.alphabet import BASES
from hpcvdj.studies.hash_tables.comparison import load
from hpcvdj.studies.hash_tables.construction import TableOptions, build
from hpcvdj.studies.pages import Block, IdentityCheck, Plot, Study
from hpcvdj.studies.rows import hardware
from hpcvdj.studies.settings import TABLES, MethodsPlan
from hpcvdj.studies.tables import distinct, grouped, lines, middle, pivot, same

_PANEL = 2048
"""How many rows of counters are in memory at the same time on CPU cores."""

_CORNER = 512
"""How many of the first sequences the checksum covers."""


def with_other_strands(sequences: SequenceSet) -> SequenceSet:
    """Return the sequences, then their reverse complements, as in the thesis: 9,184 from 4,592 (section 5.b)."""
    names = [f"{name}{strand}" for strand in "+-" for name in sequences.names]
    return SequenceSet.joined([sequences, sequences.reverse_complement()], names)


def joined(sequences: SequenceSet, times: int) -> SequenceSet:
    """Join each run of `times` neighbours to a sequence; an incomplete run at the end is left out."""
    number = len(sequences) // times
    offsets = sequences.offsets[: number * times + 1 : times]
    return SequenceSet(sequences.names[: number * times : times], sequences.codes[: offsets[-1]], offsets)


@dataclass(frozen=True)
class SequenceSource:
    """The first `number` sequences of a FASTA file, or random sequences of `length` bases; and their other strands.

    In random sequences, all four bases are equally likely.
    """

    fasta: Path | None
    number: int
    length: int = 500
    seed: int = 1
    both_strands: bool = False

    @property
    def name(self) -> str:
        return self.fasta.name if self.fasta else f"random, seed {self.seed}"

    def read(self, times: int = 1) -> tuple[SequenceSet, int]:
        """Read the sequences to compare, each `times` as long, and the number of all sequences of the source."""
        if self.fasta is None:
            offsets = np.arange(self.number + 1, dtype=np.int64) * self.length * times
            codes = np.random.default_rng(self.seed).integers(0, len(BASES), offsets[-1], dtype=np.uint8)
            sequences = SequenceSet([str(i + 1) for i in range(self.number)], codes, offsets)
        else:
            sequences = joined(read_fasta(self.fasta), times)
        part = sequences.part(0, min(self.number, len(sequences)))
        if self.both_strands:
            sequences = part = with_other_strands(part)
        return part, len(sequences)


@dataclass(frozen=True)
class MotifRow:
    """A repeat for a method and a k.

    load      wall seconds from the bases to tables that are ready to compare
    compare   wall seconds for all pairs of `sequences`; the counters stay on the GPU if they were counted there
    total     sum of the counters over all distances and all pairs, each pair once
    checksum  CRC-32 of the counters of the first 512 sequences with each other
    """

    method: str
    blocks: int
    k: int
    d: int
    source: str
    length: int
    sequences: int
    of: int
    repeat: int
    load: float
    compare: float
    total: int
    checksum: int
    threads: int
    hardware: str

    @property
    def seconds_for_all(self) -> float:
        """Seconds for all `of` sequences, by the number of pairs; without the construction of the thesis's tables."""
        scale = self.of / self.sequences
        return self.compare * scale**2 + (0.0 if self.method == TABLES else self.load * scale)

    @property
    def corner(self) -> int:
        """Number of sequences that the checksum covers."""
        return min(_CORNER, self.sequences)


def measure(source: SequenceSource, plan: MethodsPlan, say: Callable[[str], None] = print) -> list[MotifRow]:
    """Measure each k and method, except methods that do not accept such long k-mers.

    Raise InputError for an unknown method, or if k or d is out of range.
    """
    backend = open_backend(plan.backend)
    methods, limits = choices(KmerMethod), plan.limits
    for name in limits:
        require_choice("methods", name, (*methods, TABLES))
    sequences, _ = source.read()
    rows: list[MotifRow] = []
    for k, name in product(plan.k, limits):
        if name in methods and k > methods[name].longest_k.get(backend.name, MAX_K):
            continue
        blocks = choose(name, k, plan.d, backend.name).blocks if name in methods else 0
        part = sequences.part(0, min(len(sequences), limits[name] or len(sequences)))
        _measure_once(name, part.part(0, min(16, len(part))), k, plan.d, backend.name)  # compiles
        for repeat in range(plan.repeats):
            measured = _measure_once(name, part, k, plan.d, backend.name)
            row = MotifRow(
                name, blocks, k, plan.d, source.name, int(sequences.lengths.max()), len(part), len(sequences), repeat,
                *measured, numba.get_num_threads(), hardware(backend),
            )  # fmt: skip
            rows.append(row)
            say(f"k = {k} {name} of {len(part)}: load {row.load:.4f} s, compare {row.compare:.4f} s")
    return rows


def _measure_once(method: str, sequences: SequenceSet, k: int, d: int, backend: str) -> tuple[float, float, int, int]:
    """Measure a method once: seconds to load and to compare, the sum of the counters, and the checksum."""
    start = _finished(backend)
    counters_of = _load(method, profile(sequences, k, d), d, backend)
    loading = _finished(backend) - start
    comparing, total, checksum = 0.0, 0, 0
    panel = len(sequences) if backend == "cuda" else _PANEL
    for first in range(0, len(sequences), panel):
        start = _finished(backend)
        counters = counters_of(first, min(len(sequences), first + panel))
        comparing += _finished(backend) - start
        part, crc = _summary(counters, first)
        total += part
        checksum = checksum or crc
    return loading, comparing, total, checksum


def _load(method: str, columns: Profile, d: int, backend: str) -> Callable[[int, int], Any]:
    """Load `columns` into a method.  The function that it returns gives the counters of their rows first … last-1."""
    if method == TABLES:
        compare = load(build(columns.kmers, d, TableOptions()), TableOptions(), backend)
        return lambda first, last: exact_from_raw(compare(range(first, last))[0], columns.k)
    comparison = choose(method, columns.k, d, backend).load(columns)
    return lambda first, last: comparison.counters(None, first, last)


def _finished(backend: str) -> float:
    """Wait until the GPU has finished its work, and return the time in seconds."""
    if backend == "cuda":
        import cupy

        cupy.cuda.Device().synchronize()
    return time.perf_counter()


def _summary(counters: Any, first: int) -> tuple[int, int]:
    """Return the sum of the counters [distances, rows, columns] of rows from `first` on, and their checksum."""
    xp = array_module(counters)
    upper = xp.arange(counters.shape[2])[None, :] >= first + xp.arange(counters.shape[1])[:, None]
    total = sum(int((plane * upper).sum(dtype=xp.uint64)) for plane in counters)
    corner = xp.stack([xp.triu(plane[:_CORNER, :_CORNER]) for plane in counters])
    corner = corner if xp is np else corner.get()
    return total, zlib.crc32(corner.astype(np.uint32).tobytes())


class Motifs(Study):
    """Time by method and k."""

    name = "motifs"
    title = "Comparing motifs"
    row = MotifRow
    notes = """
    Median wall seconds: load (from the bases to tables) + compare (all pairs, all distances), and both together.
    †N: measured on the first N sequences; the seconds for all are scaled by the number of pairs. `tables` is the
    thesis's system; its tables are constructed on CPU cores, which is not included in its seconds for all.
    """

    def page(self, rows: list[MotifRow]) -> Iterator[Block]:
        yield f"Hardware: {distinct(rows, 'hardware')}; CPU threads: {distinct(rows, 'threads')}."
        totals = same(rows, "total", "source", "k", "d", "sequences")
        yield IdentityCheck(totals and same(rows, "checksum", "source", "k", "d", "corner"), "counters", "methods")
        by_source = sorted(grouped(rows, "source").items())
        panels = []
        for source, part in by_source:
            seconds = lines(part, "method", "k", lambda repeats: middle(repeats, "seconds_for_all"))
            panels.append((seconds, {"title": source, "xlabel": "k", "ylabel": "seconds, all pairs", "yscale": "log"}))
        yield Plot("motifs", "seconds by k", panels)
        for source, part in by_source:
            first = part[0]
            yield f"## {first.of:,} sequences of up to {first.length} bases, {source}, d = {first.d}"
            yield pivot(part, "method", "k", _cell, "method, k =")


def _cell(repeats: list[MotifRow]) -> str:
    first = repeats[0]
    mark = f" †{first.sequences:,}" if first.sequences < first.of else ""
    blocks = f" ({first.blocks} blocks)" if first.blocks else ""
    load, compare, total = (middle(repeats, column) for column in ("load", "compare", "seconds_for_all"))
    return f"{load:.3g} + {compare:.3g}: **{total:.3g}**{blocks}{mark}"
