"""Measure the methods of counting, pass by pass after a warm-up: the paper's Tables IV and V, and Figure 4."""

import math
import time
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from hpcvdj.counting.config import Config
from hpcvdj.kernels.kernel import Kernel, Unit
from hpcvdj.kernels.sums import exact_column_sums
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.runs.driver import Driver, Store
from hpcvdj.runs.partition import block_range, blocks_per_rank
from hpcvdj.runs.run import Run
from hpcvdj.studies.pages import Block, IdentityCheck, Plot, Study
from hpcvdj.studies.rows import hardware
from hpcvdj.studies.tables import distinct, grouped, lines, listing, middle, number, pivot, same, spread

PAPER_MINUTES = {
    "baseline": (8.36, 10.17, 12.57, 15.38, 18.47, 21.73, 25.67, 32.09, 102.03, 426.90, 1755.35),
    "bitwise": (9.16, 9.82, 10.62, 11.40, 11.95, 13.04, 14.17, 16.71, 50.30, 197.24, 798.20),
}
"""Minutes on one P100 for n-lengths 0 … 10 (Table IV)."""

GROWTH = 4.5
"""The factor by which one more n-nucleotide slows an enumeration: four times as many strings, and one more cut."""

FEWEST_BLOCKS = 16
"""The smallest number of blocks of n-nucleotide strings that a rank measures."""

PART_NOTE = "†1/N: measured on the first 1/N of the n-nucleotide strings and multiplied by N."


@dataclass(frozen=True)
class Measurement:
    """A repeat for an n-length m; `direct` counts the n-lengths 0 … m at once.

    sequences   how many of the `of` sequences of the table were measured
    parts       number of equal block ranges of the n-nucleotide strings, of which only the first was measured
    wall        seconds from a common start to the last combined unit, of the slowest rank
    kernel      seconds in the kernel by the host's clock, of the slowest rank
    reduce      seconds of combining the ranks' counters, of the slowest rank
    device_max  seconds by the GPU's clock (0 on CPU cores), of the slowest rank
    device_min  the same of the fastest rank
    pathways    number of pathways with m n-nucleotides of the measured strings
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
        """Wall seconds for all strings if all parts take as long as the measured part."""
        return self.wall * self.parts

    @property
    def work(self) -> str:
        """The method and the n-lengths."""
        return f"direct, n-lengths 0-{self.m} at once" if self.method == "direct" else f"{self.method}, m = {self.m}"

    @property
    def imbalance(self) -> float:
        """(slowest - fastest) / slowest rank, by the GPUs' clocks."""
        return (self.device_max - self.device_min) / self.device_max if self.device_max else 0.0

    @property
    def strings(self) -> tuple[int, ...]:
        """A key that is equal for measurements of the same n-nucleotide strings."""
        return (self.parts, self.threads_per_block, self.ranks) if self.parts > 1 else ()


SAME_PATHWAYS = ("pathways", "m", "sequences", "of", "strings")
"""Arguments of `tables.same`: the pathways must be equal if all other columns are."""


def seconds(repeats: Sequence[Measurement]) -> float:
    """Return the median of the wall seconds for all strings."""
    return middle(repeats, "scaled")


def part_mark(repeats: Sequence[Measurement]) -> str:
    """Return the mark that `PART_NOTE` explains; empty if all strings were measured."""
    return f" †1/{repeats[0].parts}" if repeats[0].parts > 1 else ""


def measure(
    problem: Problem, of: int, config: Config, run: Run, n_lengths: range, repeats: int, longest: float = math.inf
) -> list[Measurement]:
    """Measure the method of `config` on the ranks of `run`, after a unit that warms up; the rows are complete on root.

    of       number of sequences of the table from which the problem was drawn
    repeats  number of passes for each of `n_lengths`
    longest  seconds: if a pass would take longer, to judge by the previous n-length, only a part of the n-nucleotide
             strings is measured
    """
    run = copy(run)
    run.shown = False
    run.world.patience = math.inf  # a unit may take hours
    method = config.method_class()
    backend = run.bind(config.backend, strict=config.strict_binding)
    unit_work = run.from_root(lambda: backend.unit_work)
    rows: list[Measurement] = []
    for m in n_lengths:
        part = replace(problem, max_n=m)
        kernel = backend.load(method, part, config.threads_per_block)
        parts = _parts(m, rows, config, run, longest)
        # Units of a part cover more sequences, so that they fill the processor like units of all strings.
        lengths = range(m, m + 1) if method.enumerates else range(m + 1)
        units = [
            first_part(unit, parts, config.threads_per_block, run.ranks)
            for unit in method.units(part, unit_work * parts, lengths)
        ]
        _measure_pass(kernel, units[:1], config, run)
        for repeat in range(repeats):
            measured = _measure_pass(kernel, units, config, run)
            rows.append(Measurement(
                method.name, run.ranks, m, repeat, len(problem.repertoire), of, config.threads_per_block, parts,
                *measured, hardware(backend),
            ))  # fmt: skip
    return rows


def _parts(m: int, rows: list[Measurement], config: Config, run: Run, longest: float) -> int:
    """Return the number of parts of the strings of n-length m: a power of two."""
    if not rows or not config.method_class().enumerates or math.isinf(longest):
        return 1
    expected = seconds([row for row in rows if row.m == rows[-1].m]) * GROWTH ** (m - rows[-1].m)
    blocks = blocks_per_rank(4**m, config.threads_per_block, run.ranks)
    parts = 1
    while expected / parts > longest and blocks // (2 * parts) >= FEWEST_BLOCKS:
        parts *= 2
    return parts


def first_part(unit: Unit, parts: int, threads_per_block: int, ranks: int) -> Unit:
    """Return the unit with the tasks of the first `ranks` of `ranks` × `parts` equal block ranges."""
    return replace(unit, tasks=block_range(unit.tasks, threads_per_block, ranks - 1, ranks * parts)[1])


class _Pathways(Store):
    """A store that only adds up the pathways with the largest n-length."""

    total = 0

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        self.total += exact_column_sums(values[:, -1:])[0]


def _measure_pass(
    kernel: Kernel, units: list[Unit], config: Config, run: Run
) -> tuple[float, float, float, float, float, int]:
    """Measure a pass: the columns `wall` … `pathways` of a Measurement; kernel, reduce and pathways on root only."""
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
    kernel_seconds, reduce_seconds = float(timings.rank_kernel.max()), float(timings.rank_reduce.max())
    return slowest, kernel_seconds, reduce_seconds, device_max, -fastest, pathways.total


class Methods(Study):
    """Time by method, n-length by n-length."""

    name = "methods"
    title = "Methods"
    row = Measurement
    notes = f"""
    Wall seconds: median of the repeats, without compiling and warm-up. `direct` counts the n-lengths 0 … m at once.
    The paper's minutes are those of its Table IV: one P100, its own data of the same size. {PART_NOTE}
    """

    def page(self, rows: list[Measurement]) -> Iterator[Block]:
        first = rows[0]
        sample = f" (a random sample of {first.of:,})" if first.sequences < first.of else ""
        yield f"{first.sequences:,} sequences{sample}, {first.ranks} rank(s) on {first.hardware}."
        yield IdentityCheck(same(rows, *SAME_PATHWAYS), "totals", "methods")
        rows = sorted(rows, key=lambda row: row.m)
        axes = {"xlabel": "n-length", "ylabel": "wall seconds", "yscale": "log"}
        yield Plot("methods", "seconds by n-length and method", [(lines(rows, "method", "m", seconds), axes)])
        yield _methods_table(rows)


def _methods_table(rows: list[Measurement]) -> str:
    """Return a table with a line for each n-length, and a line for all n-lengths."""
    repeats = grouped(rows, "method", "m")
    lengths = list(grouped(rows, "m"))

    def wall(method: str, counted: Sequence[int]) -> float:
        # A pass of `direct` counts all n-lengths up to its own.
        keys = [(method, m) for m in (counted[-1:] if method == "direct" else counted)]
        return sum(seconds(repeats[key]) if key in repeats else math.nan for key in keys)

    def cell(method: str, counted: Sequence[int]) -> str:
        mark = part_mark(repeats[method, counted[0]]) if len(counted) == 1 and (method, counted[0]) in repeats else ""
        return number(wall(method, counted), ".4g") + mark

    def paper(method: str, counted: Sequence[int]) -> float:
        return sum(dict(enumerate(PAPER_MINUTES[method])).get(m, math.nan) for m in counted)

    return listing(
        [*([m] for m in lengths), lengths],
        {
            "n-length": lambda counted: counted[0] if len(counted) == 1 else "**all**",
            "baseline, s": lambda counted: cell("baseline", counted),
            "bitwise, s": lambda counted: cell("bitwise", counted),
            "baseline / bitwise": lambda counted: number(wall("baseline", counted) / wall("bitwise", counted), ".2f"),
            "direct (0 … m), s": lambda counted: cell("direct", counted),
            "paper: baseline, min": lambda counted: number(paper("baseline", counted), ".2f"),
            "paper: bit-wise, min": lambda counted: number(paper("bitwise", counted), ".2f"),
            "paper: ratio": lambda counted: number(paper("baseline", counted) / paper("bitwise", counted), ".2f"),
        },
    )


class Blocks(Study):
    """Time by block size and n-length, relative to the fastest block size."""

    name = "blocks"
    title = "Threads per block"
    row = Measurement
    notes = f"Median wall seconds and, in brackets, relative to the fastest of the row. {PART_NOTE}"

    def page(self, rows: list[Measurement]) -> Iterator[Block]:
        rows = sorted(rows, key=lambda row: (row.m, row.threads_per_block))
        walls = {
            m: {size: seconds(part) for size, part in grouped(of_m, "threads_per_block").items()}
            for m, of_m in grouped(rows, "m").items()
        }

        def relative(repeats: list[Measurement]) -> float:
            return seconds(repeats) / min(walls[repeats[0].m].values())

        first = rows[0]
        yield f"`{first.method}`, {first.sequences:,} sequences, {first.ranks} rank(s) on {first.hardware}."
        complete = [row for row in rows if row.parts == 1]
        yield IdentityCheck(same(complete, *SAME_PATHWAYS), "totals of complete passes", "block sizes")
        axes = {"xlabel": "n-length", "ylabel": "time / fastest"}
        sizes = sorted(rows, key=lambda row: row.threads_per_block)
        panel = lines(sizes, "threads_per_block", "m", relative), axes
        yield Plot("blocks", "time relative to the fastest block size", [panel], legend="threads per block")
        yield pivot(
            rows, "m", "threads_per_block",
            lambda repeats: f"{seconds(repeats):.4g} ({relative(repeats):.3f}){part_mark(repeats)}", "n-length",
        )  # fmt: skip


class Scaling(Study):
    """Time by ranks, n-length by n-length."""

    name = "scaling"
    title = "Strong scaling"
    row = Measurement
    notes = f"""
    Wall seconds are those of the slowest rank, from a common start to the last combined unit, without compiling and
    warm-up: medians (min…max) of the repeats. Imbalance is (slowest - fastest) / slowest rank, by the GPUs' clocks.
    {PART_NOTE}
    """

    def page(self, rows: list[Measurement]) -> Iterator[Block]:
        rows = sorted(rows, key=lambda row: (row.method, row.m, row.ranks))
        series = {name: grouped(part, "ranks") for name, part in grouped(rows, "work").items()}
        walls = {
            name: {ranks: seconds(repeats) for ranks, repeats in by_ranks.items()}
            for name, by_ranks in series.items()
            if 1 in by_ranks
        }
        efficiencies = {
            name: {ranks: 100 * wall[1] / wall[ranks] / ranks for ranks in wall} for name, wall in walls.items()
        }
        yield f"Hardware of each rank: {distinct(rows, 'hardware')}."
        yield IdentityCheck(same(rows, *SAME_PATHWAYS), "totals", "rank counts")
        wall_panel = walls, {"xlabel": "ranks (GPUs)", "ylabel": "wall seconds", "yscale": "log"}
        efficiency_panel = efficiencies, {"xlabel": "ranks (GPUs)", "ylabel": "efficiency, %", "ylim": (0, 110)}
        yield Plot("scaling", "wall time and efficiency by ranks", [wall_panel, efficiency_panel])
        yield "## Seconds by n-length and ranks (the paper's Table V)"
        yield pivot(rows, "work", "ranks", lambda repeats: f"{seconds(repeats):.4g}{part_mark(repeats)}")
        for name, by_ranks in series.items():
            yield f"## {name}"
            yield _ranks_table(by_ranks)
            first = next(iter(by_ranks.values()))[0]
            if first.sequences < first.of:
                yield f"{first.sequences:,} of {first.of:,} sequences, drawn at random."


def _ranks_table(by_ranks: dict[int, list[Measurement]]) -> str:
    def speed_up(repeats: list[Measurement]) -> float:
        return seconds(by_ranks[1]) / seconds(repeats) if 1 in by_ranks else math.nan

    return listing(
        by_ranks.values(),
        {
            "ranks": lambda repeats: repeats[0].ranks,
            "wall, s": lambda repeats: spread([row.scaled for row in repeats], "{:.4g}".format),
            "speed-up": lambda repeats: number(speed_up(repeats), ".2f"),
            "efficiency": lambda repeats: number(100 * speed_up(repeats) / repeats[0].ranks, ".1f", " %"),
            "kernel, s": lambda repeats: f"{middle(repeats, 'kernel'):.4g}",
            "all-reduce, s": lambda repeats: f"{middle(repeats, 'reduce'):.3g}",
            "imbalance": lambda repeats: f"{100 * middle(repeats, 'imbalance'):.1f} %",
            "repeats": len,
        },
    )
