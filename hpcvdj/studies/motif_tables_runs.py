"""What the study of the thesis's system measures: its figures 5 to 9, on given or random sequences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.backends import open_backend
from hpcvdj.errors import InputError
from hpcvdj.kernels.kmers.kmers import Kmers, kmers_of, require_parameters
from hpcvdj.studies.hash_tables.compare_cpu import compare
from hpcvdj.studies.hash_tables.construction import Tables, bucket_variance, build, merge_buckets
from hpcvdj.studies.hash_tables.hashing import HASHES
from hpcvdj.studies.hash_tables.options import TableOptions
from hpcvdj.studies.motif_sources import Source

PARTS = ("construction", "settings", "speedup", "lengths")
"""Figure 5; figures 6 and 7; figure 8; figure 9."""

CONSTRUCTION_BUCKETS = (1, 2, 4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 20, 24, 32, 64, 128, 256)
BLOCKS = (32, 64, 128, 256, 512)
BUCKETS = (1, 8, 32, 64, 128, 256, 512)
CHUNKS = (2, 4, 6, 8, 10, 12)
TUNED = tuple(
    {"buckets": buckets, "threads_per_block": threads, "tile_rows": rows, "tile_columns": columns, "keep": keep}
    for buckets, threads in ((16, 32), (32, 32), (64, 32), (64, 64), (128, 64), (512, 128))
    for rows, columns in ((1, 1), (1, 2), (2, 2), (4, 4))
    for keep in (0, 2, 4)
    if (rows, columns, keep) != (1, 1, 0) or buckets != threads
)
"""Settings of our Thread to Bucket beside the thesis's, whose tile is a pair and whose k-mers stay in shared memory."""

SLOW_SECONDS = 1.0
"""A setting that takes longer is measured once."""

THESIS = {"tile_rows": 1, "tile_columns": 1, "keep": 0}
BUILT_WITH = 1024
"""Buckets of the construction; merged for each comparison (section 3.b)."""

MULTIPLES = (1, 2, 3)
"""Figure 9: 500, 1000 and 1500 bases."""


@dataclass(frozen=True)
class TableRow:
    """One repeat of one thing measured.

    `seconds` are wall seconds of a construction or of a comparison on CPU cores, and the GPU's own of its kernels;
    `wall` has the host's in every case, transfers of the counters included.  `pairs` are what was compared, `of` the
    sequences there are, of which `sequences` were taken.  `mean` and `variance` are those of the k-mers in a bucket,
    of constructions only.
    `total` is the sum of all counters, modulo 2^63: equal for what was compared alike.
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
    repeat: int
    pairs: int
    seconds: float
    wall: float
    mean: float
    variance: float
    total: int
    cores: int
    hardware: str


def measure(
    source: Source,
    parts: Sequence[str],
    lengths_of_kmers: Sequence[int],
    settings_k: int,
    d: int,
    bucket_counts: Sequence[int] | None,
    cpu_number: int,
    repeats: int,
    backend: str,
    say: Callable[[str], None] = print,
) -> list[TableRow]:
    """The rows of the `parts` of the study; InputError for a part there is not, or k and d that cannot be."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise InputError(f"--parts {unknown[0]!r}: choose {', '.join(PARTS)}")
    for k in (*lengths_of_kmers, settings_k):
        require_parameters(k, d)
    opened = open_backend(backend)
    runs = Runs(source, d, cpu_number, repeats, opened.name == "cuda", opened.describe().partition(", device")[0], say)
    if "construction" in parts:
        runs.construction(lengths_of_kmers, bucket_counts or CONSTRUCTION_BUCKETS)
    if "settings" in parts:
        runs.settings(settings_k)
    if "speedup" in parts:
        runs.speedup(lengths_of_kmers)
    if "lengths" in parts:
        runs.lengths(settings_k)
    if not runs.rows:
        raise InputError("without a GPU only construction, speedup and lengths are measured")
    return runs.rows


@dataclass
class Runs:
    """Measures `repeats` of each thing on the sequences of a source; `cpu_number` of them where CPU cores compare."""

    source: Source
    d: int
    cpu_number: int
    repeats: int
    gpu: bool
    hardware: str
    say: Callable[[str], None] = print
    rows: list[TableRow] = field(default_factory=list)
    _made: list[tuple[TableRow, TableOptions]] = field(default_factory=list)
    _of: int = 0
    _merged: tuple[Tables, Tables] | None = None

    def construction(self, lengths_of_kmers: Sequence[int], bucket_counts: Sequence[int]) -> None:
        """Figure 5: seconds and variance by hash function, buckets and k, with the thesis's 64-bit encoding."""
        for k in lengths_of_kmers:
            kmers, self._of = self._kmers(k)
            for name in HASHES:
                for buckets in bucket_counts:
                    options = TableOptions("3x64", name, buckets=buckets)
                    build(kmers.part(0, 1), self.d, options)
                    for repeat in range(self.repeats):
                        start = time.perf_counter()
                        tables = build(kmers, self.d, options)
                        seconds = time.perf_counter() - start
                        self._add("construction", "construction", "", options, tables, repeat, 0, seconds, seconds, 0)

    def settings(self, k: int) -> None:
        """Figures 6 and 7: each GPU kernel by its settings, and ours of Thread to Bucket."""
        built = self._built(k)
        for kernel in ("sequential-bucket", "warp-to-bucket"):
            for linear in (True, False):
                variant = "linear" if linear else "every"
                for buckets in BUCKETS:
                    for threads in BLOCKS:
                        options = TableOptions(
                            kernel=kernel, linear=linear, threads_per_block=threads, buckets=buckets,
                        )  # fmt: skip
                        self._compare("settings", variant, options, built)
        for size in BLOCKS:
            options = TableOptions(buckets=size, threads_per_block=size, **THESIS)  # type: ignore[arg-type]
            self._compare("settings", "1x1", options, built)
        for one in TUNED:
            options = TableOptions(**one)  # type: ignore[arg-type]
            self._compare("settings", _tile(options), options, built)
        for chunk in CHUNKS:
            self._compare(
                "settings", "", TableOptions(kernel="thread-to-pair", threads_per_block=128, chunk=chunk), built
            )

    def speedup(self, lengths_of_kmers: Sequence[int]) -> None:
        """Figure 8: all kernels at their fastest settings, and the CPU comparison, by k."""
        for k in lengths_of_kmers:
            self._all("speedup", k)

    def lengths(self, k: int) -> None:
        """Figure 9: sequences of one, two and three times the length."""
        for times in MULTIPLES:
            self._all("lengths", k, times)

    def _all(self, part: str, k: int, times: int = 1) -> None:
        built = self._built(k, times)
        few = _first(built, self.cpu_number)
        for buckets in (1, 16):
            self._compare(part, "", TableOptions(buckets=buckets), few, on_cpu=True)
        for variant, options in self._fastest():
            self._compare(part, variant, options, built)

    def _fastest(self) -> Iterator[tuple[str, TableOptions]]:
        """Of what `settings` measured, the fastest of each kernel and variant; else reasonable ones."""
        if not self.gpu:
            return
        chosen = {
            ("sequential-bucket", "linear"): TableOptions(kernel="sequential-bucket", threads_per_block=64, buckets=1),
            ("warp-to-bucket", "linear"): TableOptions(kernel="warp-to-bucket", buckets=128),
            ("thread-to-bucket", "1x1"): TableOptions(buckets=128, threads_per_block=128, **THESIS),  # type: ignore[arg-type]
            ("thread-to-bucket", "tuned"): TableOptions(),
            ("thread-to-pair", ""): TableOptions(kernel="thread-to-pair", threads_per_block=128, chunk=8),
        }
        for (kernel, variant), options in chosen.items():
            measured = [
                (row.seconds, made)
                for row, made in self._made
                if row.kernel == kernel and (row.variant == variant or (variant == "tuned" and row.variant != "1x1"))
            ]
            yield variant, min(measured, key=lambda one: one[0])[1] if measured else options

    def _kmers(self, k: int, times: int = 1) -> tuple[Kmers, int]:
        sequences, number = self.source.read(times)
        return kmers_of(sequences.part(0, min(number, len(sequences))), k), len(sequences)

    def _built(self, k: int, times: int = 1) -> Tables:
        kmers, self._of = self._kmers(k, times)
        return build(kmers, self.d, TableOptions(buckets=BUILT_WITH))

    def _merge(self, built: Tables, buckets: int) -> Tables:
        """`built` in fewer buckets; kept until others are asked for."""
        if self._merged is None or self._merged[0] is not built or self._merged[1].buckets != buckets:
            self._merged = built, merge_buckets(built, buckets)
        return self._merged[1]

    def _compare(self, part: str, variant: str, options: TableOptions, built: Tables, on_cpu: bool = False) -> None:
        """All pairs of `built`, each once, after a few rows that warm up."""
        if not (self.gpu or on_cpu):
            return
        tables = self._merge(built, options.compared_with("cpu" if on_cpu else "cuda"))
        number = len(tables)
        loaded: Any = None
        if not on_cpu:
            from hpcvdj.studies.hash_tables.compare_cuda import CudaTables

            loaded = CudaTables(tables, options)
        clock = loaded and loaded.clock

        def compared(some: range) -> NDArray[Any]:
            if loaded:
                found: NDArray[Any] = loaded.compare(tables, some, some.start)
                return found
            return compare(tables, some, tables, range(number), some.start)

        compared(range(1))
        for repeat in range(self.repeats):
            before, start = clock.milliseconds if clock else 0.0, time.perf_counter()
            found = compared(range(number))
            wall = time.perf_counter() - start
            seconds = (clock.milliseconds - before) / 1000 if clock else wall
            total = int(found.sum(dtype=np.uint64)) % (1 << 63)
            kernel, pairs = "cpu" if on_cpu else options.kernel, number * (number + 1) // 2
            self._add(part, kernel, variant, options, tables, repeat, pairs, seconds, wall, total)
            if seconds > SLOW_SECONDS:
                break

    def _add(
        self, part: str, kernel: str, variant: str, options: TableOptions, tables: Tables, repeat: int, pairs: int,
        seconds: float, wall: float, total: int,
    ) -> None:  # fmt: skip
        mean = variance = 0.0
        if part == "construction":
            mean, variance = bucket_variance(tables)
        row = TableRow(
            part, kernel, variant, options.hash, tables.encoding.name, tables.k, tables.d,
            tables.most + tables.k - 1, len(tables), self._of, tables.buckets, options.threads_per_block,
            options.chunk, repeat, pairs, seconds, wall, mean, variance, total, numba.get_num_threads(), self.hardware,
        )  # fmt: skip
        self.rows.append(row)
        self._made.append((row, options))
        if repeat == 0:
            self.say(f"{part}: {kernel} {variant} {options.hash} k={row.k} {row.buckets} buckets: {seconds:.4g} s")


def _first(tables: Tables, number: int) -> Tables:
    """The tables of the first `number` sequences."""
    return replace(tables, keys=tables.keys[:number], counts=tables.counts[:number], offsets=tables.offsets[:number])


def _tile(options: TableOptions) -> str:
    return f"{options.tile_rows}x{options.tile_columns} keep {options.keep}"
