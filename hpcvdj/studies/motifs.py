"""The methods of comparing motifs side by side: sequences in, D of all pairs out, on one machine in one run."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numba
import numpy as np

from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.kmers.profile import array_module, profile
from hpcvdj.kernels.kmers.costs import Choice, estimates
from hpcvdj.kernels.kmers.kmers import require_parameters
from hpcvdj.kernels.kmers.methods import LONGEST_K, load
from hpcvdj.plotting import pyplot
from hpcvdj.studies.measuring import commands, read
from hpcvdj.studies.motif_sources import Source

_PANEL = 2048
"""Rows at a time, on CPU cores: so many of D are held."""


@dataclass(frozen=True)
class MotifRow:
    """One repeat of one method at one k.

    load      wall seconds from the bases to tables ready to compare; of `tables` the construction, on CPU cores
    compare   wall seconds for all pairs of `sequences`, the counters left where they were counted
    checksum  CRC-32 of the counters of the first 512 sequences with each other
    total     sum of D over all pairs and distances, each pair once
    """

    method: str
    blocks: int
    k: int
    d: int
    source: str
    length: int
    sequences: int
    of: int
    repeat: int
    load: float
    compare: float
    total: int
    checksum: int
    estimate: float
    threads: int
    hardware: str

    @property
    def whole(self) -> float:
        """Seconds for all `of` sequences: pairs that were not compared take as long as those that were."""
        return self.load * self.of / self.sequences + self.compare * (self.of / self.sequences) ** 2


def measure(
    source: Source,
    lengths_of_kmers: Sequence[int],
    d: int,
    methods: Sequence[str],
    limits: dict[str, int],
    repeats: int,
    backend: str,
    say: Callable[[str], None] = print,
) -> list[MotifRow]:
    """Rows for each k and method; `limits` gives the sequences that a slow method takes, of all that there are."""
    for k in lengths_of_kmers:
        require_parameters(k, d)
    opened = open_backend(backend)
    sequences, number = source.read()
    sequences = sequences.part(0, min(number, len(sequences)))
    name = source.fasta.name if source.fasta else f"random, seed {source.seed}"
    rows: list[MotifRow] = []
    for k in lengths_of_kmers:
        costs = estimates(profile(sequences, k, d), d, opened.name, numba.get_num_threads())
        for method in methods:
            if k > LONGEST_K.get(method, {}).get(opened.name, k):
                continue
            choice = next((c for c in costs if c.method == method), Choice(method, math.nan))
            some = sequences.part(0, min(len(sequences), limits.get(method, len(sequences))))
            _once(some.part(0, min(16, len(some))), k, d, choice, opened.name)
            for repeat in range(repeats):
                # A profile of its own each time: it keeps the k-mers that it has found.
                seconds, total, checksum = _once(some, k, d, choice, opened.name)
                rows.append(
                    MotifRow(
                        method, choice.blocks, k, d, name, int(sequences.lengths.max()), len(some), len(sequences),
                        repeat, *seconds, total, checksum, choice.seconds, numba.get_num_threads(),
                        opened.describe().partition(", device")[0],
                    )
                )  # fmt: skip
                say(f"k = {k} {method} of {len(some)}: load {seconds[0]:.4f} s, compare {seconds[1]:.4f} s")
    return rows


def _once(sequences: Any, k: int, d: int, choice: Choice, backend: str) -> tuple[tuple[float, float], int, int]:
    some = profile(sequences, k, d)
    wait = _synchronise if backend == "cuda" else lambda: None
    wait()
    begun = time.perf_counter()
    comparison = load(choice, some, d, backend)
    wait()
    loaded = time.perf_counter()
    compared, total, checksum = 0.0, 0, 0
    panel = len(some) if backend == "cuda" else _PANEL
    for first in range(0, len(some), panel):
        last = min(len(some), first + panel)
        start = time.perf_counter()
        counters = comparison.counters(None, first, last)
        wait()
        compared += time.perf_counter() - start
        found = _summary(counters, first)
        total += found[0]
        checksum = checksum or found[1]
    return (loaded - begun, compared), total, checksum


def _summary(counters: Any, first: int) -> tuple[int, int]:
    xp = array_module(counters)
    upper = xp.arange(counters.shape[2])[None, :] >= first + xp.arange(counters.shape[1])[:, None]
    total = sum(int((plane * upper).sum(dtype=xp.uint64)) for plane in counters)
    corner = xp.stack([xp.triu(plane[:512, :512]) for plane in counters])
    corner = corner if xp is np else corner.get()
    return total, zlib.crc32(corner.astype(np.uint32).tobytes())


def _synchronise() -> None:
    import cupy

    cupy.cuda.Device().synchronize()


def render(folder: Path) -> str:
    """Make README.md and motifs.png of a study from its raw rows; returns the Markdown."""
    rows, facts = read(folder, MotifRow)
    blocks = []
    for source in sorted({row.source for row in rows}):
        some = [row for row in rows if row.source == source]
        blocks.append(
            f"## {some[0].of:,} sequences of up to {some[0].length} bases, {source}, d = {some[0].d}\n\n{_table(some)}"
        )
    text = "\n\n".join(
        [
            f"# Comparing motifs\n\nOn {rows[0].hardware}, {rows[0].threads} CPU thread(s). Made from the raw rows by "
            "`hpcvdj study render`.",
            f"Counters of all that was compared alike: **{'identical' if identical(rows) else 'DIFFERENT'}**.",
            "![seconds by k](motifs.png)",
            *blocks,
            "Median wall seconds: load (bases to tables) + compare (all pairs, all distances), and the whole of it.\n"
            "† measured on the first so many sequences; the whole is scaled by the number of pairs.\n"
            "`tables` is the thesis's system: its tables are constructed on CPU cores, which is not in its whole.",
            commands(facts),
        ]
    )
    _plot(rows, folder / "motifs.png")
    (folder / "README.md").write_text(text + "\n")
    return text


def identical(rows: Sequence[MotifRow]) -> bool:
    """Whether all methods found the same in the same sequences."""
    sums: dict[tuple[Any, ...], set[int]] = {}
    corners: dict[tuple[Any, ...], set[int]] = {}
    for row in rows:
        sums.setdefault((row.source, row.k, row.d, row.sequences), set()).add(row.total)
        corners.setdefault((row.source, row.k, row.d, min(512, row.sequences)), set()).add(row.checksum)
    return all(len(found) == 1 for found in (*sums.values(), *corners.values()))


def _whole(rows: Sequence[MotifRow]) -> float:
    if rows[0].method == "tables":
        return median(row.compare * (row.of / row.sequences) ** 2 for row in rows)
    return median(row.whole for row in rows)


def _groups(rows: Sequence[MotifRow]) -> dict[tuple[str, int], list[MotifRow]]:
    found: dict[tuple[str, int], list[MotifRow]] = {}
    for row in rows:
        found.setdefault((row.method, row.k), []).append(row)
    return found


def _table(rows: Sequence[MotifRow]) -> str:
    found = _groups(rows)
    lengths = sorted({k for _, k in found})
    lines = ["| method | " + " | ".join(f"k = {k}" for k in lengths) + " |", "|---" * (len(lengths) + 1) + "|"]
    for method in dict.fromkeys(row.method for row in rows):
        cells = []
        for k in lengths:
            some = found.get((method, k))
            if not some:
                cells.append("-")
                continue
            mark = f" †{some[0].sequences:,}" if some[0].sequences < some[0].of else ""
            setting = f" ({some[0].blocks} blocks)" if some[0].blocks else ""
            parts = f"{median(r.load for r in some):.3g} + {median(r.compare for r in some):.3g}"
            cells.append(f"{parts}: **{_whole(some):.3g}**{setting}{mark}")
        lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _plot(rows: Sequence[MotifRow], path: Path) -> None:
    plt = pyplot()
    sources = sorted({row.source for row in rows})
    figure, all_axes = plt.subplots(
        1, len(sources), figsize=(5 * len(sources) + 1, 3.8), layout="constrained", sharey=True, squeeze=False
    )
    for axes, source in zip(all_axes[0], sources, strict=True):
        found = _groups([row for row in rows if row.source == source])
        for method in dict.fromkeys(row.method for row in rows):
            lengths = sorted(k for name, k in found if name == method)
            axes.plot(lengths, [_whole(found[method, k]) for k in lengths], marker="o", label=method)
        axes.set(yscale="log", xlabel="k", title=source, xticks=sorted({k for _, k in found}))
        axes.grid(axis="y", alpha=0.3)
    all_axes[0][0].set_ylabel("seconds, all pairs")
    all_axes[0][-1].legend(fontsize="small")
    figure.savefig(path, dpi=140)
    plt.close(figure)
