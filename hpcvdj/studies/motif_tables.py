"""Measure the thesis's hash tables again: its figures 5 to 9 (section 5), with given or random sequences."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numba
import numpy as np

from hpcvdj.errors import InputError, require_choice
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.kmers.kmers import Kmers
from hpcvdj.kernels.kmers.profile import profile
from hpcvdj.studies.hash_tables.comparison import load
from hpcvdj.studies.hash_tables.construction import (
    KERNELS,
    HashTables,
    TableOptions,
    bucket_variance,
    build,
    merge_buckets,
)
from hpcvdj.studies.hash_tables.encoding import HASHES
from hpcvdj.studies.motifs import SequenceSource
from hpcvdj.studies.pages import Block, IdentityCheck, Plot, Study
from hpcvdj.studies.rows import hardware
from hpcvdj.studies.settings import PARTS, TablesPlan
from hpcvdj.studies.tables import distinct, grouped, lines, listing, middle, pivot, same

BLOCKS = (32, 64, 128, 256, 512)

CPU = "cpu"
"""The name of the comparison on CPU cores in place of a kernel."""

UNMEASURED = (
    TableOptions(kernel="sequential-bucket", threads_per_block=64, buckets=1),
    TableOptions(kernel="warp-to-bucket", buckets=128),
    TableOptions(kernel="thread-to-bucket", buckets=128, threads_per_block=128),
    TableOptions(kernel="thread-to-pair", buckets=1, threads_per_block=128, chunk=8),
)
"""The settings of each kernel if none were measured."""

SLOW_SECONDS = 1.0
"""A comparison that takes longer is measured only once."""

BUILT_WITH = 1024
"""The number of buckets of the construction; each comparison merges them (section 3.b)."""


@dataclass(frozen=True)
class TableRow:
    """A repeat of a measurement.

    seconds         wall seconds of a construction or of a comparison on CPU cores; seconds of GPU kernels by the GPU's
                    clock
    sequences       how many of the `of` sequences of the source were used
    pairs           number of compared pairs
    mean, variance  for constructions: mean and variance of the number of k-mers in a bucket
    total           sum of all counters modulo 2^63, which is equal for all comparisons of the same sequences
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
        return f"{self.kernel} {self.variant}".strip()

    @property
    def table(self) -> str:
        return f"{self.hash}, k = {self.k}"

    @property
    def scatter(self) -> float:
        """Variance over mean of the number of k-mers in a bucket: about 1 for a fair hash function."""
        return self.variance / self.mean if self.mean else 0.0


def measure(source: SequenceSource, plan: TablesPlan, say: Callable[[str], None] = print) -> list[TableRow]:
    """Measure the rows of a plan.  Raise InputError for an unknown part, or if k or d is out of range."""
    for part in plan.parts:
        require_choice("parts", part, PARTS)
    study = _Measuring(source, plan)
    for part in PARTS:
        for row in getattr(study, part)() if part in plan.parts else ():
            study.rows.append(row)
            if row.repeat == 0:
                say(f"{row.part}: {row.system} {row.table}, {row.buckets} buckets: {row.seconds:.4g} s")
    if not study.rows:
        raise InputError("without a GPU only construction, speedup and lengths can be measured")
    return study.rows


def settings() -> Iterator[TableOptions]:
    """Yield the settings in Figures 6 and 7."""
    for kernel, linear, buckets, threads in product(KERNELS[:2], (True, False), (1, 8, 32, 64, 128, 256, 512), BLOCKS):
        yield TableOptions(kernel=kernel, linear=linear, threads_per_block=threads, buckets=buckets)
    for size in BLOCKS:
        yield TableOptions(buckets=size, threads_per_block=size)
    for chunk in (2, 4, 6, 8, 10, 12):
        yield TableOptions(kernel="thread-to-pair", buckets=1, threads_per_block=128, chunk=chunk)


class _Measuring:
    """The parts of a plan, as methods that yield rows."""

    def __init__(self, source: SequenceSource, plan: TablesPlan) -> None:
        self.source, self.plan = source, plan
        self.backend = open_backend(plan.backend)
        self.rows: list[TableRow] = []

    def construction(self) -> Iterator[TableRow]:
        """Measure Figure 5: seconds and variance by hash function, buckets and k, with the 64-bit encoding."""
        for k in self.plan.k:
            kmers, of = self._kmers(k)
            for name, buckets in product(HASHES, self.plan.buckets):
                options = TableOptions("3x64", name, buckets)
                build(kmers.part(0, 1), self.plan.d, options)
                for repeat in range(self.plan.repeats):
                    start = time.perf_counter()
                    tables = build(kmers, self.plan.d, options)
                    seconds = time.perf_counter() - start
                    mean, variance = bucket_variance(tables)
                    row = self._row("construction", "construction", options, tables, of)
                    yield replace(row, repeat=repeat, seconds=seconds, mean=mean, variance=variance)

    def settings(self) -> Iterator[TableRow]:
        """Measure Figures 6 and 7: the GPU kernels with various settings."""
        if self.backend.name == "cuda":
            yield from self._compare("settings", settings(), *self._built(self.plan.settings_k))

    def speedup(self) -> Iterator[TableRow]:
        """Measure Figure 8: all kernels with their fastest settings, and the CPU comparison, by k."""
        for k in self.plan.k:
            yield from self._compare_fastest("speedup", k)

    def lengths(self) -> Iterator[TableRow]:
        """Measure Figure 9: sequences of one, two and three times the length (500, 1000 and 1500 bases there)."""
        for times in (1, 2, 3):
            yield from self._compare_fastest("lengths", self.plan.settings_k, times)

    def _compare_fastest(self, part: str, k: int, times: int = 1) -> Iterator[TableRow]:
        built, of = self._built(k, times)
        few = self.plan.cpu_number
        first = replace(built, keys=built.keys[:few], counts=built.counts[:few], offsets=built.offsets[:few])
        yield from self._compare(part, [TableOptions(buckets=buckets) for buckets in (1, 16)], first, of, on_cpu=True)
        if self.backend.name == "cuda":
            yield from self._compare(part, self._fastest(), built, of)

    def _fastest(self) -> Iterable[TableOptions]:
        """Return the fastest measured settings of each kernel that merges, or reasonable ones if none were measured."""
        chosen = {options.kernel: options for options in UNMEASURED}
        for row in sorted(self.rows, key=lambda row: -row.seconds):
            if row.kernel in chosen and row.variant != "every":
                chosen[row.kernel] = TableOptions(
                    kernel=row.kernel, buckets=row.buckets, threads_per_block=row.threads_per_block, chunk=row.chunk
                )
        return chosen.values()

    def _kmers(self, k: int, times: int = 1) -> tuple[Kmers, int]:
        sequences, of = self.source.read(times)
        return profile(sequences, k, self.plan.d).kmers, of

    def _built(self, k: int, times: int = 1) -> tuple[HashTables, int]:
        kmers, of = self._kmers(k, times)
        return build(kmers, self.plan.d, TableOptions(buckets=BUILT_WITH)), of

    def _compare(
        self, part: str, variants: Iterable[TableOptions], built: HashTables, of: int, *, on_cpu: bool = False
    ) -> Iterator[TableRow]:
        """Compare each pair of `built` once for each of the variants, after a row that warms up."""
        tables, number = built, len(built)
        for options in sorted(variants, key=lambda options: options.buckets):
            if tables.buckets != options.buckets:
                tables = merge_buckets(built, options.buckets)
            row = self._row(part, CPU if on_cpu else options.kernel, options, tables, of)
            compare = load(tables, options, "cpu" if on_cpu else "cuda")
            compare(range(1))
            for repeat in range(self.plan.repeats):
                counters, seconds = compare(range(number))
                total = int(counters.sum(dtype=np.uint64)) % (1 << 63)
                yield replace(row, repeat=repeat, seconds=seconds, pairs=number * (number + 1) // 2, total=total)
                if seconds > SLOW_SECONDS:
                    break

    def _row(self, part: str, kernel: str, options: TableOptions, tables: HashTables, of: int) -> TableRow:
        """Return a row without the measured columns."""
        variant = ("linear" if options.linear else "every") if kernel in KERNELS[:3] else ""
        return TableRow(
            part, kernel, variant, options.hash, tables.encoding, tables.k, tables.d,
            tables.most + tables.k - 1, len(tables), of, tables.buckets, options.threads_per_block, options.chunk,
            numba.get_num_threads(), hardware(self.backend),
        )  # fmt: skip


class MotifTables(Study):
    """Construction and comparison of the thesis's tables."""

    name = "motif_tables"
    title = "The thesis's hash tables"
    row = TableRow

    def page(self, rows: list[TableRow]) -> Iterator[Block]:
        yield f"Hardware: {distinct(rows, 'hardware')}; CPU threads: {distinct(rows, 'cores')}."
        compared = [row for row in rows if row.pairs]
        totals = same(compared, "total", "k", "d", "length", "sequences", "of")
        yield IdentityCheck(totals, "sums of all counters", "kernels and settings")
        parts = grouped(rows, "part")
        for part, section in zip(PARTS, (_construction, _settings, _speedup, _speedup), strict=True):
            if part in parts:
                yield from section(parts[part])


def _seconds(repeats: list[TableRow]) -> float:
    return middle(repeats, "seconds")


def _sizes(rows: list[TableRow]) -> str:
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
    yield Plot("construction", "construction time and scatter by hash function", panels, len(hashes), "k")
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
    yield Plot("settings", "kernel time by settings", panels, legend="threads per block")
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
    """Yield Figures 8 and 9: pairs per second, relative to the CPU comparison with its better number of buckets."""
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
    yield Plot(rows[0].part, "speed-up over the CPU comparison", [(on_gpu, axes)])
    yield pivot(rows, across, "system", cell, across)
    yield "Pairs per second by the median repeat and, in brackets, relative to the CPU's better bucket count."
