"""`direct` on more junctions than a file would comfortably hold: how its kernel, and what surrounds it, scale."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.backends import Backend
from hpcvdj.counting.config import Config
from hpcvdj.counting.totals import column_sums
from hpcvdj.kernels.pathways.methods import Problem, Unit
from hpcvdj.plotting import pyplot
from hpcvdj.runs.binding import bind
from hpcvdj.runs.partition import THREADS_PER_BLOCK, block_range
from hpcvdj.runs.ranks import World
from hpcvdj.recombination.germline import Germline
from hpcvdj.studies.measuring import commands, read
from hpcvdj.studies.packed import PackedSet

BATCH = 1 << 22
"""Junctions made, counted and summed at a time by a rank."""


@dataclass(frozen=True)
class Throughput:
    """One repeat: seconds, the maximum over ranks of each rank's sum over its batches.

    make      making the junctions in host memory, which a file or a sequencer would have done
    count     the kernel call: to the GPU, the kernel, the counters back into host memory
    device    of that, the kernel by the GPU's clock (0 on CPU cores), also the least of the ranks
    sum       summing the counters of each n-length on the host
    wall      all together but `make`: the slowest rank's
    reduce    combining the ranks' sums
    pathways  of all junctions and n-lengths
    """

    ranks: int
    repeat: int
    junctions: int
    max_n: int
    seed: int
    make: float
    count: float
    device: float
    device_min: float
    sum: float
    reduce: float
    wall: float
    pathways: int
    hardware: str


def measure(
    germline: Germline, junctions: int, seed: int, config: Config, world: World, repeats: int
) -> list[Throughput]:
    """Count `junctions` of a PackedSet with `direct`, each rank its block range of them, `repeats` times."""
    backend = bind(config.backend, world, strict=config.strict_binding)
    max_n = int(config.max_n)
    made = PackedSet(germline, junctions, seed)
    first, last = block_range(junctions, config.threads_per_block, world.rank, world.size)
    _count(backend, made, germline, max_n, first, min(last, first + BATCH))  # compiles, allocates
    rows = []
    for repeat in range(repeats):
        world.barrier()
        seconds, sums = _count(backend, made, germline, max_n, first, last)
        before = time.perf_counter()
        gathered = world.gather(sums) or [sums]
        reduce = time.perf_counter() - before
        _, count, device, summing = seconds
        largest = world.maximum(np.array([*seconds, reduce, count + summing])).tolist()
        rows.append(
            Throughput(
                ranks=world.size,
                repeat=repeat,
                junctions=junctions,
                max_n=max_n,
                seed=seed,
                make=largest[0],
                count=largest[1],
                device=largest[2],
                device_min=float(-world.maximum(np.array([-device]))[0]),
                sum=largest[3],
                reduce=largest[4],
                wall=largest[5],
                pathways=sum(map(sum, gathered)),
                hardware=backend.describe().partition(", device")[0],
            )
        )
    return rows


def _count(
    backend: Backend, made: PackedSet, germline: Germline, max_n: int, first: int, last: int
) -> tuple[NDArray[np.float64], list[int]]:
    """Seconds (make, count, device, sum) of this rank's rows, batch by batch, and the sums of their counters."""
    seconds = np.zeros(4)
    sums = [0] * (max_n + 1)
    for start in range(first, last, BATCH):
        before_make = time.perf_counter()
        repertoire = made.rows(start, min(last, start + BATCH))
        after_make = time.perf_counter()
        kernel = backend.load("direct", Problem(repertoire, germline, max_n), THREADS_PER_BLOCK)
        rows = len(repertoire)
        before_count = time.perf_counter()
        counters = kernel(Unit(range(len(repertoire.pairs)), range(rows), range(max_n + 1), rows), 0, rows)
        after_count = time.perf_counter()
        found = column_sums(counters)
        after_sum = time.perf_counter()
        sums = [a + b for a, b in zip(sums, found, strict=True)]
        clock = getattr(kernel, "clock", None)
        device = clock.milliseconds / 1000 if clock else 0.0
        seconds += [after_make - before_make, after_count - before_count, device, after_sum - after_count]
    return seconds, sums


def render(folder: Path) -> str:
    """Make README.md and throughput.png from the raw rows; returns the Markdown."""
    rows, facts = read(folder, Throughput)
    by_ranks: dict[int, list[Throughput]] = {}
    for row in sorted(rows, key=lambda row: row.ranks):
        by_ranks.setdefault(row.ranks, []).append(row)
    hardware = ", ".join(sorted({row.hardware for row in rows}))
    same = len({(row.pathways, row.junctions, row.seed) for row in rows}) == 1
    sizes = ", ".join(f"{size:,}" for size in sorted({row.junctions for row in rows}))
    text = "\n\n".join(
        [
            f"# Throughput of `direct`\n\n{sizes} in silico junctions, n-lengths 0-{rows[0].max_n}, on {hardware}.\n"
            "Made from the raw rows by `hpcvdj study render`.",
            "**totals identical for all rank counts**" if same else "**TOTALS DIFFER**",
            "![junctions per second by ranks](throughput.png)",
            _table(by_ranks),
            "Kernel: by the GPU's clock. End to end: junctions in host memory to counters in host memory and their\n"
            "sums, slowest rank; making the junctions apart. Medians of the repeats.",
            commands(facts),
        ]
    )
    _plot(by_ranks, folder / "throughput.png")
    (folder / "README.md").write_text(text + "\n")
    return text


def _middle(rows: Iterable[Throughput], name: str) -> float:
    return float(median(getattr(row, name) for row in rows))


def _kernel(rows: list[Throughput]) -> float:
    """Seconds in the kernel: by the GPU's clock, or by the host's on CPU cores."""
    return _middle(rows, "device") or _middle(rows, "count")


def _table(by_ranks: dict[int, list[Throughput]]) -> str:
    lines = [
        "| ranks | kernel, s | junctions/s in the kernel | speed-up | to and from the GPU, s | sums, s | end to end, s "
        "| junctions/s | speed-up | making, s | repeats |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    base = by_ranks.get(1)
    for ranks, rows in by_ranks.items():
        junctions, kernel, wall = rows[0].junctions, _kernel(rows), _middle(rows, "wall")
        gains = [f"{_kernel(base) / kernel:.2f}", f"{_middle(base, 'wall') / wall:.2f}"] if base else ["-", "-"]
        lines.append(
            f"| {ranks} | {kernel:.4g} | {junctions / kernel:.3g} | {gains[0]} | "
            f"{_middle(rows, 'count') - kernel:.3g} | {_middle(rows, 'sum'):.3g} | {wall:.4g} | "
            f"{junctions / wall:.3g} | {gains[1]} | {_middle(rows, 'make'):.3g} | {len(rows)} |"
        )
    return "\n".join(lines)


def _plot(by_ranks: dict[int, list[Throughput]], path: Path) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    ranks = list(by_ranks)
    junctions = [by_ranks[r][0].junctions for r in ranks]
    kernel = [_kernel(by_ranks[r]) for r in ranks]
    wall = [_middle(by_ranks[r], "wall") for r in ranks]
    for name, seconds in (("kernel", kernel), ("end to end, in host memory", wall)):
        axes.plot(ranks, [n / s for n, s in zip(junctions, seconds, strict=True)], marker="o", label=name)
    axes.set(xlabel="ranks (GPUs)", ylabel="junctions per second", yscale="log", xlim=(0.5, max(ranks) + 0.5))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
