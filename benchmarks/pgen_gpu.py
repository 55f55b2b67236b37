"""Times of the generation-probability kernels on a GPU, on junctions drawn from the models.

python benchmarks/pgen_gpu.py --output pgen_gpu.csv

Writes one row for each model, kernel and kind of input.  `seconds` is the median kernel time of the repeats, by events
on the GPU; `seconds_with_copies` is the median wall time with both transfers.  Random junctions are computed by the CPU
kernel too; `largest_difference` is relative, and infinite if only one of two values is zero.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common import write_rates
from numpy.typing import NDArray

from hpcvdj.kernels.generation.draw_cpu import Sampler
from hpcvdj.kernels.generation.tables import EVENTS, DrawTables
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pgen import pgen_cpu
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire

LONGEST = 64
"""Bases of the longest junction that is kept: two words."""

DRAWS = 1 << 20
"""Sequences that are drawn at a time."""

FIELDS = (
    "device", "model", "genes_given", "what", "threads_per_block", "rows", "seconds", "rows_per_second",
    "seconds_with_copies", "checked", "largest_difference",
)  # fmt: skip


def junctions(model: Model, rows: int, seed: int = 1) -> Repertoire:
    """Junctions in frame of up to LONGEST bases, drawn from a model, with the alleles that they are made of."""
    sampler = Sampler(DrawTables.of(model))
    words, lengths, alleles = np.zeros((rows, 2), np.uint64), np.empty(rows, np.uint8), np.empty((rows, 2), np.int64)
    done = 0
    for first in itertools.count(0, DRAWS):
        drawn = sampler(first, DRAWS, seed)
        kept = np.flatnonzero((drawn.lengths % 3 == 0) & (drawn.lengths <= LONGEST))[: rows - done]
        stop = done + len(kept)
        width = min(2, drawn.words.shape[1])
        words[done:stop, :width], lengths[done:stop] = drawn.words[kept, :width], drawn.lengths[kept]
        alleles[done:stop] = drawn.events[kept][:, [EVENTS.index("v"), EVENTS.index("j")]]
        done = stop
        if done == rows:
            break
    key = alleles[:, 0] * len(model.j) + alleles[:, 1]
    order = np.argsort(key, kind="stable")
    keys, sizes = np.unique(key, return_counts=True)
    used = (divmod(int(own), len(model.j)) for own in keys)
    pairs = [(model.alleles("V", (v,)), model.alleles("J", (j,))) for v, j in used]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Repertoire(words[order], lengths[order], pairs, offsets)


def without_genes(model: Model, repertoire: Repertoire) -> Repertoire:
    """The same junctions, of unknown V and J."""
    offsets = np.array([0, len(repertoire)], dtype=np.int64)
    return Repertoire(repertoire.words, repertoire.lengths, [(model.alleles("V"), model.alleles("J"))], offsets)


def whole_unit(repertoire: Repertoire) -> Unit:
    """All of a repertoire."""
    rows = len(repertoire)
    return Unit(range(len(repertoire.pairs)), range(rows), range(1), rows)


def checked(
    model: Model, repertoire: Repertoire, what: str, values: NDArray[Any], count: int, seed: int = 2
) -> tuple[int, float]:
    """How many random junctions the CPU kernel computed, and the largest relative difference."""
    rows = np.sort(np.random.default_rng(seed).choice(len(repertoire), min(count, len(repertoire)), replace=False))
    subset = repertoire.subset(rows)
    expected = pgen_cpu.PgenKernel(PgenProblem(subset, model, (what,)), 0)(whole_unit(subset), 0, len(rows))[:, 0]
    own = values[rows, 0]
    if not np.array_equal(own == 0, expected == 0) or not np.isfinite(own).all():
        return len(rows), float("inf")
    used = expected > 0
    return len(rows), float((np.abs(own - expected)[used] / expected[used]).max(initial=0.0))


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    import cupy

    from hpcvdj.kernels.pgen import pgen_cuda

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    for name in options.models:
        model = load_model(name)
        given = junctions(model, options.rows)
        for genes, repertoire in (("V and J", given), ("none", without_genes(model, given))):
            unit = whole_unit(repertoire)
            for what in options.what:
                for threads in options.threads or (pgen_cuda.THREADS[what],):
                    pgen_cuda.THREADS[what] = threads
                    kernel = pgen_cuda.PgenKernel(PgenProblem(repertoire, model, (what,)), threads)
                    values = kernel(unit, 0, unit.tasks)
                    seconds, walls = [], []
                    for _ in range(options.repeats):
                        before, start = kernel.clock.milliseconds, time.perf_counter()
                        values = kernel(unit, 0, unit.tasks)
                        walls.append(time.perf_counter() - start)
                        seconds.append((kernel.clock.milliseconds - before) / 1e3)
                    median = statistics.median(seconds)
                    count, difference = checked(model, repertoire, what, values, options.check)
                    yield {
                        "device": device, "model": name, "genes_given": genes, "what": what,
                        "threads_per_block": threads, "rows": unit.tasks, "seconds": f"{median:.6f}",
                        "rows_per_second": f"{unit.tasks / median:.4g}" if median else "",
                        "seconds_with_copies": f"{statistics.median(walls):.6f}", "checked": count,
                        "largest_difference": f"{difference:.2g}",
                    }  # fmt: skip


def main() -> int:
    """Measure; 1 if a value differs from the CPU kernel's by more than it may."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", metavar="CSV", type=Path, required=True, help="file of raw rows")
    parser.add_argument("--models", nargs="+", default=["mouse_trb", "human_trb"], help="models")
    parser.add_argument("--what", nargs="+", choices=PGEN_COLUMNS, default=list(PGEN_COLUMNS), help="kernels")
    parser.add_argument("--rows", type=int, default=10_000_000, help="junctions")
    parser.add_argument("--check", type=int, default=20_000, help="junctions that the CPU kernel computes too")
    parser.add_argument("--repeats", type=int, default=7, help="timed repeats, after one that is not timed")
    parser.add_argument(
        "--threads", type=int, nargs="+", help="threads per block to try (nt up to 256, else up to 128)"
    )
    options = parser.parse_args()
    rows = write_rates(options.output, FIELDS, measured(options))
    return 0 if all(float(row["largest_difference"]) <= 1e-12 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
