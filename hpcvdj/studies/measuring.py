"""Measuring a method pass by pass, after a warm-up."""

import math
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from hpcvdj.counting.config import Config
from hpcvdj.kernels.kernel import Kernel, Unit
from hpcvdj.kernels.sums import exact_column_sums
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.runs.driver import Driver, Partial
from hpcvdj.runs.partition import block_range, blocks_per_rank
from hpcvdj.runs.run import Run
from hpcvdj.studies.tables import middle

GROWTH = 4.5
"""How many times longer an enumeration takes with one more n-nucleotide: four times the strings, and one more cut."""

FEWEST_BLOCKS = 16
"""Blocks of n-nucleotide strings that a rank measures at least."""

PART_NOTE = "†1/N: measured on the first 1/N of the n-nucleotide strings and multiplied by N."


@dataclass(frozen=True)
class Measurement:
    """One repeat of one n-length; `direct` counts the n-lengths 0 … m at once.

    sequences     of the `of` sequences of the table
    parts         only the first of so many equal block ranges of the n-nucleotide strings was measured
    wall          seconds from a common start to the last combined unit, the slowest rank's
    kernel        seconds in the kernel by the host's clock, the slowest rank's
    reduce        seconds of combining the ranks' counters, likewise
    device_max    seconds by the GPU's clock (0 on CPU cores), the slowest rank's; device_min the fastest rank's
    pathways      with m n-nucleotides, of the measured strings
    """

    method: str
    ranks: int
    m: int
    repeat: int
    sequences: int
    of: int
    threads_per_block: int
    parts: int
    wall: float
    kernel: float
    reduce: float
    device_max: float
    device_min: float
    pathways: int
    hardware: str

    @property
    def scaled(self) -> float:
        """Wall seconds for all strings, if all parts take as long as the measured one."""
        return self.wall * self.parts

    @property
    def work(self) -> str:
        """What was measured."""
        return f"direct, n-lengths 0-{self.m} at once" if self.method == "direct" else f"{self.method}, m = {self.m}"

    @property
    def imbalance(self) -> float:
        """(slowest - fastest) / slowest rank, by the GPUs' clocks."""
        return (self.device_max - self.device_min) / self.device_max if self.device_max else 0.0

    @property
    def strings(self) -> tuple[int, ...]:
        """Equal for measurements of the same n-nucleotide strings."""
        return (self.parts, self.threads_per_block, self.ranks) if self.parts > 1 else ()


SAME_PATHWAYS = ("pathways", "m", "sequences", "of", "strings")
"""Arguments of `tables.same`: pathways are equal where all else is."""


def seconds(repeats: Sequence[Measurement]) -> float:
    """Median wall seconds for all strings."""
    return middle(repeats, "scaled")


def seconds_cell(repeats: Sequence[Measurement]) -> str:
    """The same for a table, marked if only a part was measured."""
    return f"{seconds(repeats):.4g}{part_mark(repeats)}"


def part_mark(repeats: Sequence[Measurement]) -> str:
    """The mark of `PART_NOTE`."""
    return f" †1/{repeats[0].parts}" if repeats[0].parts > 1 else ""


@dataclass(frozen=True)
class Schedule:
    """What is measured: `repeats` passes over each of `n_lengths`, a pass of at most about `longest` seconds."""

    n_lengths: Sequence[int]
    repeats: int
    longest: float = math.inf


def measure(problem: Problem, of: int, config: Config, run: Run, schedule: Schedule) -> list[Measurement]:
    """Measure the method of `config` on the ranks of `run`, after a unit that warms up; rows are complete on root.

    of  sequences of the table that the problem was drawn from

    A pass that would take more than `longest` seconds, to judge by the previous n-length, is measured on a part of
    the n-nucleotide strings.
    """
    run = copy(run)
    run.shown = False
    run.world.patience = math.inf  # units are not cut, and may take hours
    method = config.method_class()
    backend = run.bind(config.backend, strict=config.strict_binding)
    unit_work = run.from_root(lambda: backend.unit_work)
    rows: list[Measurement] = []
    for m in schedule.n_lengths:
        part = replace(problem, max_n=m)
        kernel = backend.load(method, part, config.threads_per_block)
        parts = _parts(m, rows, config, run, schedule.longest)
        # The units of a part cover more sequences, so that they fill the processor as those of all strings do.
        lengths = range(m, m + 1) if method.enumerates else range(m + 1)
        units = [
            first_part(unit, parts, config.threads_per_block, run.ranks)
            for unit in method.units(part, unit_work * parts, [(lengths, range(len(problem.repertoire)))])
        ]
        measure_pass(kernel, units[:1], config, run)
        for repeat in range(schedule.repeats):
            measured = measure_pass(kernel, units, config, run)
            row = Measurement(
                method=method.name, ranks=run.ranks, m=m, repeat=repeat, sequences=len(problem.repertoire), of=of,
                threads_per_block=config.threads_per_block, parts=parts,
                hardware=backend.describe().partition(", device")[0], **measured,
            )  # fmt: skip
            rows.append(row)
    return rows


def _parts(m: int, rows: list[Measurement], config: Config, run: Run, longest: float) -> int:
    """Into how many parts to cut the strings of n-length m: a power of two."""
    if not rows or not config.method_class().enumerates or math.isinf(longest):
        return 1
    expected = seconds([row for row in rows if row.m == rows[-1].m]) * GROWTH ** (m - rows[-1].m)
    blocks = blocks_per_rank(4**m, config.threads_per_block, run.ranks)
    parts = 1
    while expected / parts > longest and blocks // (2 * parts) >= FEWEST_BLOCKS:
        parts *= 2
    return parts


def first_part(unit: Unit, parts: int, threads_per_block: int, ranks: int) -> Unit:
    """A unit with the tasks of the first `ranks` of `ranks` × `parts` equal block ranges."""
    return replace(unit, tasks=block_range(unit.tasks, threads_per_block, ranks - 1, ranks * parts)[1])


class _Pathways:
    """A store that only adds up the pathways of the largest n-length."""

    total = 0

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        self.total += exact_column_sums(values[:, -1:])[0]

    def save(self, partial: Partial | None) -> None:
        pass


def measure_pass(kernel: Kernel, units: list[Unit], config: Config, run: Run) -> dict[str, Any]:
    """The measured columns of a Measurement for one pass over `units`; kernel, reduce and pathways on root only."""
    pathways = _Pathways()
    driver = Driver(kernel, config.method_class(), config.threads_per_block, run)
    clock = getattr(kernel, "clock", None)
    clock_before = clock.milliseconds if clock else 0.0
    run.barrier()
    started = time.perf_counter()
    timings = driver.compute(units, pathways if run.is_root else None)
    wall = time.perf_counter() - started
    device = (clock.milliseconds - clock_before) / 1000 if clock else 0.0
    slowest, device_max, fastest = run.slowest(wall, device, -device)
    return {
        "wall": slowest,
        "kernel": float(timings.rank_kernel.max()),
        "reduce": float(timings.rank_reduce.max()),
        "device_max": device_max,
        "device_min": -fastest,
        "pathways": pathways.total,
    }
