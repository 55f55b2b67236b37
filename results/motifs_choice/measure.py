"""Time each method and number of blocks on one set of sequences; append a row for each to a CSV file.

python results/motifs_choice/measure.py random -n 1024 --k 8,9,10 --d 2 -o results/motifs_choice/cpu.csv
"""

from __future__ import annotations

import argparse
import csv
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hpcvdj.errors import choices
from hpcvdj.kernels.kmers.kmers import MAX_K
from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.kernels.kmers.profile import Profile
from hpcvdj.kernels.kmers.sequences import SequenceSet

COLUMNS = (
    "backend", "source", "n", "bases", "k", "d", "method", "blocks", "repeat", "load_s", "load_cpu_s", "compare_s",
    "compare_cpu_s",
)  # fmt: skip
PANEL = 2048


def sequences_of(source: str, n: int, bases: int) -> SequenceSet:
    """The first n sequences of a file, or so many random ones."""
    if source != "random":
        from hpcvdj.motifs.sequences import read_sequences

        sequences = read_sequences(Path(source))
        return sequences.part(0, min(n, len(sequences)))
    codes = np.random.default_rng(1).integers(0, 4, n * bases, dtype=np.uint8)
    return SequenceSet([str(i) for i in range(n)], codes, np.arange(n + 1, dtype=np.int64) * bases)


def candidates(k: int, d: int, backend: str, most_blocks: int, names: list[str]) -> list[KmerMethod]:
    """Each method that takes k, `pigeonhole` with each number of blocks."""
    kinds = [kind for name, kind in choices(KmerMethod).items() if name in names]
    return [
        kind(k, d, backend, blocks)
        for kind in kinds
        if k <= kind.longest_k.get(backend, MAX_K)
        for blocks in (range(d + 1, min(k, most_blocks) + 1) if kind.name == "pigeonhole" else range(1))
    ]


def once(sequences: SequenceSet, method: KmerMethod) -> list[float]:
    """Seconds of wall clock and of all cores: to load, to compare all pairs."""

    def clocks() -> tuple[float, float]:
        if method.backend == "cuda":
            import cupy

            cupy.cuda.Device().synchronize()
        return time.perf_counter(), time.process_time()

    profile = Profile(sequences, method.k)
    if method.backend == "cpu":
        profile.kmers  # noqa: B018 (the same for all methods)
    times: list[Any] = [clocks()]
    comparison = method.load(profile)
    times.append(clocks())
    n = len(sequences)
    panel = n if method.backend == "cuda" else PANEL
    for first in range(0, n, panel):
        comparison.counters(None, first, min(n, first + panel))
    times.append(clocks())
    return [b - a for before, after in pairwise(times) for a, b in zip(before, after, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="random, a FASTA file or an AIRR table")
    parser.add_argument("-n", type=int, default=1024)
    parser.add_argument("--bases", type=int, default=500)
    parser.add_argument("--k", default="8,9,10,11,12,14,16,20")
    parser.add_argument("--d", default="1,2,3")
    parser.add_argument("--methods", default="pigeonhole,index,matrix")
    parser.add_argument("--most-blocks", type=int, default=MAX_K)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    sequences = sequences_of(options.source, options.n, options.bases)
    new = not options.output.exists()
    with open(options.output, "a", newline="") as stream:
        writer = csv.writer(stream)
        if new:
            writer.writerow(COLUMNS)
        for k in map(int, options.k.split(",")):
            for d in map(int, options.d.split(",")):
                for method in candidates(k, d, options.backend, options.most_blocks, options.methods.split(",")):
                    once(sequences.part(0, min(16, len(sequences))), method)
                    for repeat in range(options.repeats):
                        seconds = once(sequences, method)
                        facts = [
                            options.backend,
                            Path(options.source).name,
                            len(sequences),
                            int(sequences.lengths.max()),
                        ]
                        row = [*facts, k, d, method.name, method.blocks, repeat]
                        writer.writerow([*row, *(f"{value:.4f}" for value in seconds)])
                        stream.flush()
                        print(*row, *(f"{value:.3f}" for value in seconds), flush=True)


if __name__ == "__main__":
    main()
