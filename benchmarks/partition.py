"""What each part of the n-nucleotide strings costs on a GPU, and what partitions of them over GPUs would give.

python benchmarks/partition.py --output results/partition_h200/raw.csv --n-lengths 7 8 9

Times `--parts` equal ranges of the strings of each n-length on one GPU by its own clock, and adds them up as partitions
over 2, 4 and 8 GPUs would: the paper's contiguous ranges (equation 2), ranges dealt out in turn, and the best
contiguous ranges there are, as if all costs were known.  `speed_up` is the time of all parts over that of the GPU with
the most; combining is not in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _common import GERMLINE, ROOT, write_rates
from numpy.typing import NDArray

from hpcvdj.cli.study import problem_of
from hpcvdj.counting.config import Config
from hpcvdj.kernels.kernel import Unit
from hpcvdj.runs.run import Run
from hpcvdj.studies.rows import hardware

FIELDS = ("device", "m", "parts", "part", "milliseconds", "gpus", "partition", "speed_up")

Times = NDArray[np.float64]


def costs(m: int, parts: int, repeats: int) -> tuple[str, Times]:
    """The GPU, and milliseconds of each of `parts` equal ranges of the strings of n-length m, the fastest repeat's."""
    run = Run()
    problem, _ = problem_of(run, ROOT / "inputs/mouse_trb/repertoire.tsv.gz", [ROOT / GERMLINE], m)
    config = Config(m, "bitwise", "cuda", threads_per_block=128)
    backend = run.bind(config.backend)
    kernel = backend.load(config.method_class(), problem, config.threads_per_block)
    unit = Unit(range(len(problem.repertoire.pairs)), range(len(problem.repertoire)), range(m, m + 1), 4**m)
    size = unit.tasks // parts
    kernel(unit, 0, size)

    def milliseconds(part: int) -> float:
        before = kernel.clock.milliseconds
        kernel(unit, part * size, (part + 1) * size)
        return float(kernel.clock.milliseconds - before)

    times = [[milliseconds(part) for part in range(parts)] for _ in range(repeats)]
    return hardware(backend), np.array(times).min(axis=0)


def contiguous(times: Times, gpus: int) -> Times:
    """The time of each GPU with ranges of equally many strings."""
    return times.reshape(gpus, -1).sum(axis=1)


def in_turn(times: Times, gpus: int) -> Times:
    """The time of each GPU if part k goes to GPU k modulo `gpus`."""
    return times.reshape(-1, gpus).sum(axis=0)


def best_contiguous(times: Times, gpus: int) -> Times:
    """The time of each GPU with the contiguous ranges whose largest time is the smallest."""

    def within(most: float) -> list[float]:
        """The times of ranges that are as long as `most` allows."""
        found = [0.0]
        for time in times.tolist():
            if found[-1] + time > most:
                found.append(0.0)
            found[-1] += time
        return found

    low, high = max(times.max(), times.sum() / gpus), times.sum()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if len(within(middle)) <= gpus else (middle, high)
    return np.array(within(high))


PARTITIONS = {"contiguous": contiguous, "in turn": in_turn, "best contiguous": best_contiguous}


def rows(n_lengths: Sequence[int], parts: int, repeats: int) -> Iterator[dict[str, Any]]:
    """The raw rows: first the parts, then what partitions of them give."""
    for m in n_lengths:
        device, times = costs(m, parts, repeats)
        of = {"device": device, "m": m, "parts": parts}
        for part, time in enumerate(times.tolist()):
            yield of | {"part": part, "milliseconds": f"{time:.3f}"}
        for gpus in (2, 4, 8):
            for name, partition in PARTITIONS.items():
                speed_up = times.sum() / partition(times, gpus).max()
                yield of | {"gpus": gpus, "partition": name, "speed_up": f"{speed_up:.4f}"}


def main() -> None:
    """Measure and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="raw.csv to write")
    parser.add_argument("--n-lengths", nargs="+", type=int, default=[7, 8])
    parser.add_argument("--parts", type=int, default=64, help="ranges of the strings, a power of two from 8 on")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    write_rates(options.output, FIELDS, ({**dict.fromkeys(FIELDS, ""), **row} for row in rows(
        options.n_lengths, options.parts, options.repeats
    )))  # fmt: skip


if __name__ == "__main__":
    main()
