"""`direct` on more junctions than a file would comfortably have: how its kernel, and all around it, scale."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpcvdj.counting.config import Config
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pathways.methods import THREADS_PER_BLOCK, Direct
from hpcvdj.kernels.sums import exact_column_sums
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.run import Run
from hpcvdj.studies.packed import PackedSet
from hpcvdj.studies.pages import Block, Check, Figure, Study
from hpcvdj.studies.tables import distinct, grouped, listing, middle, number, same

BATCH = 1 << 22
"""Junctions that a rank makes, counts and sums at a time."""


@dataclass(frozen=True)
class ThroughputRow:
    """One repeat: seconds, the maximum over ranks of each rank's sum over its batches.

    make      making the junctions in host memory, which a file or a sequencer would have done
    count     the kernel call: to the GPU, the kernel, the counters back into host memory
    device    of that, the kernel by the GPU's clock (0 on CPU cores)
    sum       summing the counters of each n-length on the host
    reduce    combining the ranks' sums
    wall      all but `make`
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
    sum: float
    reduce: float
    wall: float
    pathways: int
    hardware: str

    @property
    def kernel(self) -> float:
        """Seconds in the kernel: by the GPU's clock, or by the host's on CPU cores."""
        return self.device or self.count


def measure(junctions: PackedSet, config: Config, run: Run, repeats: int) -> list[ThroughputRow]:
    """Count `junctions` with `direct` `repeats` times, each rank its block range of them; rows are complete on root."""
    backend = run.bind(config.backend, strict=config.strict_binding)
    first, last = block_range(len(junctions), THREADS_PER_BLOCK, run.rank, run.ranks)
    _count(backend, junctions, config, range(first, min(last, first + BATCH)))  # compiles, allocates
    rows = []
    for repeat in range(repeats):
        run.barrier()
        seconds, pathways = _count(backend, junctions, config, range(first, last))
        before = time.perf_counter()
        gathered = run.gather(pathways) or [pathways]
        reduce = time.perf_counter() - before
        _, count, _, summing = seconds
        slowest = run.slowest(*seconds, reduce, count + summing)
        row = ThroughputRow(
            ranks=run.ranks, repeat=repeat, junctions=len(junctions), max_n=int(config.max_n), seed=junctions.seed,
            make=slowest[0], count=slowest[1], device=slowest[2], sum=slowest[3],
            reduce=slowest[4], wall=slowest[5], pathways=sum(gathered),
            hardware=backend.describe().partition(", device")[0],
        )  # fmt: skip
        rows.append(row)
    return rows


def _count(backend: Backend, junctions: PackedSet, config: Config, rows: range) -> tuple[list[float], int]:
    """Seconds (make, count, device, sum) of some rows, batch by batch, and their pathways."""
    seconds = np.zeros(4)
    pathways = 0
    for start in rows[::BATCH]:
        begun = time.perf_counter()
        repertoire = junctions.rows(start, min(rows.stop, start + BATCH))
        made = time.perf_counter()
        problem = Problem(repertoire, junctions.germline, int(config.max_n))
        kernel = backend.load(Direct(), problem, THREADS_PER_BLOCK)
        unit = Unit(range(len(repertoire.pairs)), range(len(repertoire)), range(problem.max_n + 1), len(repertoire))
        loaded = time.perf_counter()
        counters = kernel(unit, 0, unit.tasks)
        counted = time.perf_counter()
        pathways += sum(exact_column_sums(counters))
        summed = time.perf_counter()
        clock = getattr(kernel, "clock", None)
        device = clock.milliseconds / 1000 if clock else 0.0
        seconds += [made - begun, counted - loaded, device, summed - counted]
    return seconds.tolist(), pathways


class Throughput(Study):
    """Junctions per second by ranks."""

    name = "throughput"
    title = "Throughput of `direct`"
    row = ThroughputRow
    notes = """
    Kernel: by the GPU's clock. All: from junctions in host memory to the sums of their counters in host memory, the
    slowest rank's, without making the junctions. Medians of the repeats.
    """

    def page(self, rows: list[ThroughputRow]) -> Iterator[Block]:
        """Rates in the kernel, and from host memory to host memory."""
        by_ranks = grouped(sorted(rows, key=lambda row: row.ranks), "ranks")

        def rate(repeats: list[ThroughputRow], column: str) -> float:
            return repeats[0].junctions / middle(repeats, column)

        def speed_up(repeats: list[ThroughputRow], column: str) -> str:
            return number(rate(repeats, column) / rate(by_ranks[1], column) if 1 in by_ranks else math.nan, ".2f")

        sizes = distinct(rows, "junctions", ",")
        yield f"{sizes} in silico junctions, n-lengths 0-{rows[0].max_n}, on {distinct(rows, 'hardware')}."
        yield Check(same(rows, "pathways", "junctions", "seed"), "totals", "rank counts")
        rates = {
            name: {ranks: rate(repeats, column) for ranks, repeats in by_ranks.items()}
            for name, column in (("kernel", "kernel"), ("all", "wall"))
        }
        axes = {"xlabel": "ranks (GPUs)", "ylabel": "junctions per second", "yscale": "log"}
        yield Figure("throughput", "junctions per second by ranks", [(rates, axes)])
        yield listing(
            by_ranks.values(),
            {
                "ranks": lambda repeats: repeats[0].ranks,
                "kernel, s": lambda repeats: f"{middle(repeats, 'kernel'):.4g}",
                "junctions/s in the kernel": lambda repeats: f"{rate(repeats, 'kernel'):.3g}",
                "speed-up of the kernel": lambda repeats: speed_up(repeats, "kernel"),
                "to and from the GPU, s": lambda repeats: f"{middle(repeats, 'count') - middle(repeats, 'kernel'):.3g}",
                "sums, s": lambda repeats: f"{middle(repeats, 'sum'):.3g}",
                "all, s": lambda repeats: f"{middle(repeats, 'wall'):.4g}",
                "junctions/s": lambda repeats: f"{rate(repeats, 'wall'):.3g}",
                "speed-up": lambda repeats: speed_up(repeats, "wall"),
                "making, s": lambda repeats: f"{middle(repeats, 'make'):.3g}",
                "repeats": len,
            },
        )
