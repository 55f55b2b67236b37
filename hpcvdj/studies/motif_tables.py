"""The thesis's hash tables, measured again: its figures 5 to 9 (section 5), on given or random sequences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError, require_choice
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.studies.hash_tables.compare_cpu import compare
from hpcvdj.studies.hash_tables.construction import Tables, bucket_variance, build, merge_buckets
from hpcvdj.studies.hash_tables.hashing import HASHES
from hpcvdj.studies.hash_tables.options import TableOptions
from hpcvdj.studies.motif_sources import Source
from hpcvdj.studies.pages import Block, Check, Figure, Study
from hpcvdj.studies.tables import distinct, grouped, lines, listing, middle, pivot, same

PARTS = ("construction", "settings", "speedup", "lengths")
"""Figure 5; figures 6 and 7; figure 8; figure 9."""

CONSTRUCTION_BUCKETS = (1, 2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32, 64, 128, 256)
BLOCKS = (32, 64, 128, 256, 512)
BUCKETS = (1, 8, 32, 64, 128, 256, 512)
CHUNKS = (2, 4, 6, 8, 10, 12)

CPU = "cpu"
"""The kernel of the comparison on CPU cores."""

SLOW_SECONDS = 1.0
"""A comparison that takes longer is measured once."""

BUILT_WITH = 1024
"""Buckets of the construction; merged for each comparison (section 3.b)."""

MULTIPLES = (1, 2, 3)
"""Figure 9: 500, 1000 and 1500 bases."""


@dataclass(frozen=True)
class TableRow:
    """One repeat of one thing measured.

    seconds         wall seconds of a construction or of a comparison on CPU cores; the GPU's own of its kernels
    sequences       of the `of` sequences of the source
    pairs           pairs that were compared
    mean, variance  of the k-mers in a bucket, for constructions
    total           sum of all counters, modulo 2^63: equal for all comparisons of the same sequences
    """

    part: str
    kernel: str
    variant: str
    hash: str
    encoding: str
    k: int
    d: int
    length: int
    sequences: int
    of: int
    buckets: int
    threads_per_block: int
    chunk: int
    cores: int
    hardware: str
    repeat: int = 0
    seconds: float = 0.0
    pairs: int = 0
    mean: float = 0.0
    variance: float = 0.0
    total: int = 0

    @property
    def system(self) -> str:
        """Kernel and variant."""
        return f"{self.kernel} {self.variant}".strip()

    @property
    def table(self) -> str:
        """Hash function and k."""
        return f"{self.hash}, k = {self.k}"

    @property
    def scatter(self) -> float:
        """Variance over mean of the k-mers in a bucket: about 1 for a fair hash function."""
        return self.variance / self.mean if self.mean else 0.0


@dataclass(frozen=True)
class Plan:
    """What is measured.

    parts       of `PARTS`
    k           lengths of k-mers of construction and speedup; settings_k: of settings and lengths
    d           the largest Hamming distance
    buckets     of construction
    cpu_number  sequences that CPU cores compare
    """

    parts: Sequence[str]
    k: Sequence[int]
    settings_k: int
    d: int
    cpu_number: int
    repeats: int
    backend: str
    buckets: Sequence[int] = CONSTRUCTION_BUCKETS


def measure(source: Source, plan: Plan, say: Callable[[str], None] = print) -> list[TableRow]:
    """The rows of a plan; InputError for an unknown part, or k and d out of range."""
    for part in plan.parts:
        require_choice("--parts", part, PARTS)
    runs = _Runs(source, plan, say)
    for part in PARTS:
        if part in plan.parts:
            getattr(runs, part)()
    if not runs.rows:
        raise InputError("without a GPU only construction, speedup and lengths can be measured")
    return runs.rows


def settings() -> Iterator[tuple[str, TableOptions]]:
    """Variants and options of Figures 6 and 7."""
    kernels = ("sequential-bucket", "warp-to-bucket")
    for kernel, linear, buckets, threads in product(kernels, (True, False), BUCKETS, BLOCKS):
        options = TableOptions(kernel=kernel, linear=linear, threads_per_block=threads, buckets=buckets)
        yield "linear" if linear else "every", options
    for size in BLOCKS:
        yield "linear", TableOptions(buckets=size, threads_per_block=size)
    for chunk in CHUNKS:
        yield "", TableOptions(kernel="thread-to-pair", threads_per_block=128, chunk=chunk)


class _Runs:
    """Measures the parts of a plan."""

    def __init__(self, source: Source, plan: Plan, say: Callable[[str], None]) -> None:
        self.source, self.plan, self.say = source, plan, say
        backend = open_backend(plan.backend)
        self.gpu, self.hardware = backend.name == "cuda", backend.describe().partition(", device")[0]
        self.rows: list[TableRow] = []
        self.measured: list[tuple[TableRow, TableOptions]] = []
        """The settings of each row."""

    def construction(self) -> None:
        """Figure 5: seconds and variance by hash function, buckets and k, with the thesis's 64-bit encoding."""
        for k in self.plan.k:
            kmers, of = self._kmers(k)
            for name, buckets in product(HASHES, self.plan.buckets):
                options = TableOptions("3x64", name, buckets=buckets)
                build(kmers.part(0, 1), self.plan.d, options)
                for repeat in range(self.plan.repeats):
                    start = time.perf_counter()
                    tables = build(kmers, self.plan.d, options)
                    seconds = time.perf_counter() - start
                    mean, variance = bucket_variance(tables)
                    row = self._row("construction", "construction", "", options, tables, of)
                    self._add(replace(row, repeat=repeat, seconds=seconds, mean=mean, variance=variance), options)

    def settings(self) -> None:
        """Figures 6 and 7: each GPU kernel by its settings."""
        if self.gpu:
            self._compare("settings", list(settings()), *self._built(self.plan.settings_k))

    def speedup(self) -> None:
        """Figure 8: all kernels at their fastest settings, and the CPU comparison, by k."""
        for k in self.plan.k:
            self._compare_fastest("speedup", k)

    def lengths(self) -> None:
        """Figure 9: sequences of one, two and three times the length."""
        for times in MULTIPLES:
            self._compare_fastest("lengths", self.plan.settings_k, times)

    def _compare_fastest(self, part: str, k: int, times: int = 1) -> None:
        built, of = self._built(k, times)
        few = self.plan.cpu_number
        first = replace(built, keys=built.keys[:few], counts=built.counts[:few], offsets=built.offsets[:few])
        self._compare(part, [("", TableOptions(buckets=buckets)) for buckets in (1, 16)], first, of, on_cpu=True)
        if self.gpu:
            self._compare(part, self._fastest(), built, of)

    def _fastest(self) -> list[tuple[str, TableOptions]]:
        """The fastest measured settings of each kernel and variant, or reasonable ones."""
        chosen = {
            ("sequential-bucket", "linear"): TableOptions(kernel="sequential-bucket", threads_per_block=64, buckets=1),
            ("warp-to-bucket", "linear"): TableOptions(kernel="warp-to-bucket", buckets=128),
            ("thread-to-bucket", "linear"): TableOptions(buckets=128, threads_per_block=128),
            ("thread-to-pair", ""): TableOptions(kernel="thread-to-pair", threads_per_block=128, chunk=8),
        }
        for row, options in sorted(self.measured, key=lambda pair: -pair[0].seconds):
            if (row.kernel, row.variant) in chosen:
                chosen[row.kernel, row.variant] = options
        return [(variant, options) for (_, variant), options in chosen.items()]

    def _kmers(self, k: int, times: int = 1) -> tuple[Kmers, int]:
        sequences, of = self.source.read(times)
        return profile(sequences, k, self.plan.d).kmers, of

    def _built(self, k: int, times: int = 1) -> tuple[Tables, int]:
        kmers, of = self._kmers(k, times)
        return build(kmers, self.plan.d, TableOptions(buckets=BUILT_WITH)), of

    def _compare(
        self, part: str, variants: list[tuple[str, TableOptions]], built: Tables, of: int, on_cpu: bool = False
    ) -> None:
        """Compare all pairs of `built`, with each of the options."""
        backend = "cpu" if on_cpu else "cuda"
        tables = built
        for variant, options in sorted(variants, key=lambda pair: pair[1].compared_with(backend)):
            if tables.buckets != options.compared_with(backend):
                tables = merge_buckets(built, options.compared_with(backend))
            row = self._row(part, CPU if on_cpu else options.kernel, variant, options, tables, of)
            self._compare_once(row, options, tables)

    def _compare_once(self, row: TableRow, options: TableOptions, tables: Tables) -> None:
        """Compare each pair once, after a row that warms up."""
        loaded: Any = None
        if row.kernel != CPU:
            from hpcvdj.studies.hash_tables.compare_cuda import CudaTables

            loaded = CudaTables(tables, options)
        number = len(tables)

        def counters_of(rows: range) -> NDArray[Any]:
            if loaded is not None:
                counters: NDArray[Any] = loaded.compare(tables, rows, rows.start)
                return counters
            return compare(tables, rows, tables, range(number), rows.start)

        counters_of(range(1))
        for repeat in range(self.plan.repeats):
            device, start = loaded.clock.milliseconds if loaded else 0.0, time.perf_counter()
            counters = counters_of(range(number))
            wall = time.perf_counter() - start
            seconds = (loaded.clock.milliseconds - device) / 1000 if loaded else wall
            total = int(counters.sum(dtype=np.uint64)) % (1 << 63)
            pairs = number * (number + 1) // 2
            self._add(replace(row, repeat=repeat, seconds=seconds, pairs=pairs, total=total), options)
            if seconds > SLOW_SECONDS:
                break

    def _row(self, part: str, kernel: str, variant: str, options: TableOptions, tables: Tables, of: int) -> TableRow:
        """A row without its measured columns."""
        return TableRow(
            part, kernel, variant, options.hash, tables.encoding.name, tables.k, tables.d, tables.most + tables.k - 1,
            len(tables), of, tables.buckets, options.threads_per_block, options.chunk, numba.get_num_threads(),
            self.hardware,
        )  # fmt: skip

    def _add(self, row: TableRow, options: TableOptions) -> None:
        self.rows.append(row)
        self.measured.append((row, options))
        if row.repeat == 0:
            self.say(f"{row.part}: {row.system} {row.table}, {row.buckets} buckets: {row.seconds:.4g} s")


class MotifTables(Study):
    """Construction and comparison of the thesis's tables."""

    name = "motif_tables"
    title = "The thesis's hash tables"
    row = TableRow

    def page(self, rows: list[TableRow]) -> Iterator[Block]:
        """A section for each part."""
        yield f"Hardware: {distinct(rows, 'hardware')}; CPU threads: {distinct(rows, 'cores')}."
        compared = [row for row in rows if row.pairs]
        totals = same(compared, "total", "k", "d", "length", "sequences", "of")
        yield Check(totals, "sums of all counters", "kernels and settings")
        parts = grouped(rows, "part")
        for part, section in (
            ("construction", _construction), ("settings", _settings), ("speedup", _speedup), ("lengths", _speedup),
        ):  # fmt: skip
            if part in parts:
                yield from section(parts[part])


def _seconds(repeats: list[TableRow]) -> float:
    return middle(repeats, "seconds")


def _sizes(rows: list[TableRow]) -> str:
    """How many sequences, of what length."""
    numbers = {f"{row.sequences:,}" + (f" (of {row.of:,})" if row.sequences < row.of else "") for row in rows}
    return f"n = {', '.join(sorted(numbers))}; up to {distinct(rows, 'length')} bases, d = {rows[0].d}"


def _construction(rows: list[TableRow]) -> Iterator[Block]:
    rows = sorted(rows, key=lambda row: row.buckets)
    yield "## Construction (Figure 5)"
    yield f"{_sizes(rows)}, encoding {rows[0].encoding}."
    axes = {"xlabel": "buckets per sub-table", "xscale": "log", "yscale": "log"}
    hashes = grouped(rows, "hash").items()
    panels = [
        (lines(part, "k", "buckets", value), {**axes, "title": name, "ylabel": label})
        for label, value in (("seconds", _seconds), ("variance / mean of a bucket", lambda part: part[-1].scatter))
        for name, part in hashes
    ]
    yield Figure("construction", "construction time and scatter by hash function", panels, len(hashes), "k")
    yield pivot(
        rows, "buckets", "table", lambda repeats: f"{_seconds(repeats):.3g} ({repeats[-1].scatter:.2f})", "buckets"
    )
    yield "Median seconds and, in brackets, variance over mean of the k-mers in a bucket: about 1 for a fair function."


def _settings(rows: list[TableRow]) -> Iterator[Block]:
    yield "## Settings of the kernels (Figures 6 and 7)"
    yield f"k = {rows[0].k}, {_sizes(rows)}."

    def fastest(group: list[TableRow]) -> float:
        return min(map(_seconds, grouped(group, "variant").values()))

    panels, repeats = [], []
    for kernel, part in grouped(rows, "kernel").items():
        across = "chunk" if kernel == "thread-to-pair" else "buckets"
        axes = {"title": kernel, "xlabel": across, "ylabel": "kernel seconds, fastest variant", "yscale": "log"}
        panels.append((lines(part, "threads_per_block", across, fastest), axes))
        settings_of = grouped(part, "variant", "threads_per_block", "buckets", "chunk").values()
        repeats += sorted(settings_of, key=_seconds)
    yield Figure("settings", "kernel time by settings", panels, legend="threads per block")
    yield listing(
        repeats,
        {
            "kernel": lambda group: group[0].kernel,
            "variant": lambda group: group[0].variant or "-",
            "threads per block": lambda group: group[0].threads_per_block,
            "buckets": lambda group: group[0].buckets,
            "chunk": lambda group: group[0].chunk,
            "kernel seconds": lambda group: f"{_seconds(group):.4g}",
        },
    )
    yield """
        Median seconds of the GPU, fastest first. The chunk matters only for thread-to-pair, which has one bucket.
        Variants: bucket by bucket, `linear` merges sorted k-mers, `every` compares all pairs of k-mers. `1x1` was an
        earlier name of thread-to-bucket's `linear`; with other tiles, or `keep`, it is not the thesis's.
    """


def _speedup(rows: list[TableRow]) -> Iterator[Block]:
    """Figures 8 and 9: pairs a second, relative to the CPU comparison's better bucket count."""
    lengths = rows[0].part == "lengths"
    across = "length" if lengths else "k"
    on_cpu = [row for row in rows if row.kernel == CPU]

    def rate(group: list[TableRow]) -> float:
        same_work = grouped(group, "sequences", "buckets").values()
        return max(float(repeats[0].pairs) / _seconds(repeats) for repeats in same_work)

    cpu_rates = {x: rate(group) for x, group in grouped(on_cpu, across).items()}

    def speed_up(group: list[TableRow]) -> float:
        return rate(group) / cpu_rates[getattr(group[0], across)]

    def cell(group: list[TableRow]) -> str:
        return f"{rate(group):.4g}" + (f" ({speed_up(group):.1f})" if group[0].kernel != CPU else "")

    yield f"## {'Longer sequences (Figure 9)' if lengths else 'Speed-up over the CPU (Figure 8)'}"
    compared = _sizes([row for row in rows if row.kernel != CPU] or rows)
    yield (
        f"k = {distinct(rows, 'k')}; {compared}; on CPU cores n = {distinct(on_cpu, 'sequences', ',')}, "
        f"{rows[0].cores} threads."
    )
    axes = {"xlabel": "bases of a sequence" if lengths else "k", "ylabel": "pairs per second / CPU"}
    on_gpu = lines([row for row in rows if row.kernel != CPU], "system", across, speed_up)
    yield Figure(rows[0].part, "speed-up over the CPU comparison", [(on_gpu, axes)])
    yield pivot(rows, across, "system", cell, across)
    yield "Pairs per second by the median repeat and, in brackets, relative to the CPU's better bucket count."
