"""Strong scaling, the paper's Table V: one set of junctions, more and more ranks.

Measuring and rendering are apart.  Each number of ranks is measured by a launch of its own, which leaves one file
`raw-METHOD-RANKS.csv`; rendering makes tables and a plot from all of them, with no GPU at hand.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.methods import Problem, Unit, method_named
from hpcvdj.parallel import World
from hpcvdj.results import atomic_path
from hpcvdj.run import Config, bind, count_units, exact_sum


@dataclass(frozen=True)
class Measurement:
    """One repeat of one n-length (or, for a method that does all at once, of all: m = -1).

    Seconds are the maximum over ranks: wall from a common start to the last all-reduced unit; kernel and reduce by
    the host's clock; device by the GPU's (0 on CPU cores), also the minimum over ranks, which tells the imbalance.
    """

    method: str
    ranks: int
    m: int
    repeat: int
    sequences: int
    of: int
    threads_per_block: int
    wall: float
    kernel: float
    reduce: float
    device_max: float
    device_min: float
    pathways: int
    hardware: str


def measure(
    problem: Problem, config: Config, world: World, n_lengths: Sequence[int], repeats: int, of: int
) -> list[Measurement]:
    """Measure `repeats` passes over each of `n_lengths`, after one that warms up; `of` is the size of the whole set."""
    method = method_named(config.method)
    backend = bind(config.backend, world)
    kernel = backend.load(method.name, problem, config.threads_per_block)
    units = list(method.units(problem, world.broadcast(backend.unit_work)))
    rows = []
    for m in n_lengths if method.enumerates else [-1]:
        chosen = [unit for unit in units if m in (-1, unit.n_lengths.start)]
        count_units(kernel, chosen[:1], config.threads_per_block, world, lambda unit, counters: None)
        for repeat in range(repeats):
            taken, pathways = _timed(kernel, chosen, config.threads_per_block, world)
            largest, smallest = world.maximum(taken), -world.maximum(-taken)
            rows.append(
                Measurement(
                    method=method.name,
                    ranks=world.size,
                    m=m,
                    repeat=repeat,
                    sequences=len(problem.repertoire),
                    of=of,
                    threads_per_block=config.threads_per_block,
                    wall=float(largest[0]),
                    kernel=float(largest[1]),
                    reduce=float(largest[2]),
                    device_max=float(largest[3]),
                    device_min=float(smallest[3]),
                    pathways=pathways,
                    hardware=backend.describe().partition(", device")[0],
                )
            )
    return rows


def _timed(kernel: object, units: list[Unit], threads: int, world: World) -> tuple[NDArray[np.float64], int]:
    """This rank's seconds (wall, kernel, reduce, device) of one pass, and root's pathways."""
    pathways = 0

    def add(unit: Unit, counters: NDArray[np.uint64]) -> None:
        nonlocal pathways
        pathways += exact_sum(counters.reshape(-1))

    clock = getattr(kernel, "clock", None)
    before = clock.milliseconds if clock else 0.0
    world.barrier()
    start = time.perf_counter()
    seconds = count_units(kernel, units, threads, world, add).sum(axis=1)  # type: ignore[arg-type]
    wall = time.perf_counter() - start
    device = (clock.milliseconds - before) / 1000 if clock else 0.0
    return np.array([wall, seconds[0], seconds[1], device]), pathways


def write(rows: list[Measurement], folder: Path, name: str, facts: dict[str, str]) -> Path:
    """Write the raw rows of one launch, and how they came about in comment lines above them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"raw-{name}.csv"
    with atomic_path(path, overwrite=True) as temporary, open(temporary, "w", newline="") as stream:
        stream.writelines(f"# {key}: {value}\n" for key, value in facts.items())
        writer = csv.DictWriter(stream, [field.name for field in fields(Measurement)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    return path


def read(folder: Path) -> tuple[list[Measurement], dict[str, dict[str, str]]]:
    """All raw rows of a study, and each file's facts; InputError if there are none."""
    rows: list[Measurement] = []
    facts = {}
    for path in sorted(folder.glob("raw-*.csv")):
        lines = path.read_text().splitlines()
        comments = [line[2:] for line in lines if line.startswith("# ")]
        facts[path.name] = dict(line.split(": ", 1) for line in comments)
        table = csv.DictReader(line for line in lines if not line.startswith("# "))
        rows += [_row(values) for values in table]
    if not rows:
        raise InputError(f"{folder}: no raw-*.csv; `hpcvdj scaling measure` writes them")
    return rows, facts


def _row(values: dict[str, str]) -> Measurement:
    types = {"int": int, "float": float, "str": str}
    return Measurement(**{field.name: types[str(field.type)](values[field.name]) for field in fields(Measurement)})


@dataclass(frozen=True)
class Point:
    """The repeats of one method, n-length and number of ranks: median, minimum and maximum of the wall seconds."""

    rows: tuple[Measurement, ...]

    @property
    def wall(self) -> float:
        """Median wall seconds."""
        return median(row.wall for row in self.rows)

    @property
    def imbalance(self) -> float:
        """Median of (slowest - fastest) / slowest over ranks, by the GPU's clock."""
        return median((r.device_max - r.device_min) / r.device_max if r.device_max else 0.0 for r in self.rows)

    def middle(self, name: str) -> float:
        """Median of a column."""
        return float(median(getattr(row, name) for row in self.rows))


def points(rows: Iterable[Measurement]) -> dict[tuple[str, int], dict[int, Point]]:
    """(method, n-length) → ranks → its repeats."""
    grouped: dict[tuple[str, int], dict[int, list[Measurement]]] = {}
    for row in rows:
        grouped.setdefault((row.method, row.m), {}).setdefault(row.ranks, []).append(row)
    return {
        key: {ranks: Point(tuple(part)) for ranks, part in sorted(by_ranks.items())}
        for key, by_ranks in sorted(grouped.items())
    }


def totals_identical(rows: Iterable[Measurement]) -> bool:
    """Whether each method and n-length found the same pathways in every launch and repeat."""
    found: dict[tuple[str, int, int], set[int]] = {}
    for row in rows:
        found.setdefault((row.method, row.m, row.sequences), set()).add(row.pathways)
    return all(len(values) == 1 for values in found.values())


def render(folder: Path) -> str:
    """Make README.md and scaling.png of a study from its raw rows; returns the Markdown."""
    rows, facts = read(folder)
    series = points(rows)
    text = "\n\n".join([_head(rows, facts), *(_table(key, part) for key, part in series.items())]) + "\n"
    _plot(series, folder / "scaling.png")
    (folder / "README.md").write_text(text)
    return text


def _head(rows: list[Measurement], facts: dict[str, dict[str, str]]) -> str:
    hardware = ", ".join(sorted({row.hardware for row in rows}))
    binding = "; one rank to a GPU" if any(row.device_max for row in rows) else ""
    lines = [f"- `{name}`: `{fact.get('command', '')}`, {fact.get('date', '')}" for name, fact in facts.items()]
    same = "totals identical for all rank counts" if totals_identical(rows) else "TOTALS DIFFER between rank counts"
    return (
        f"# Strong scaling\n\nOn {hardware}{binding}. Made from the raw rows by `hpcvdj scaling render`.\n\n"
        f"**{same}**\n\n![wall time and efficiency against ranks](scaling.png)\n\n"
        "Wall seconds are the maximum over ranks, from a common start to the last all-reduced unit, compiling and\n"
        "warm-up apart; median (min…max) of the repeats. Imbalance is (slowest - fastest) / slowest rank by the GPUs'\n"
        "clocks.\n\n" + "\n".join(lines)
    )


def _table(key: tuple[str, int], by_ranks: dict[int, Point]) -> str:
    method, m = key
    base = by_ranks.get(1)
    lines = [
        f"## {method}, " + ("all n-lengths" if m < 0 else f"m = {m}"),
        "",
        "| ranks | wall, s | speed-up | efficiency | kernel, s | all-reduce, s | imbalance | repeats |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for ranks, point in by_ranks.items():
        walls = [row.wall for row in point.rows]
        gain = f"{base.wall / point.wall:.2f}" if base else "-"
        efficiency = f"{100 * base.wall / point.wall / ranks:.1f} %" if base else "-"
        lines.append(
            f"| {ranks} | {point.wall:.4g} ({min(walls):.4g}…{max(walls):.4g}) | {gain} | {efficiency} | "
            f"{point.middle('kernel'):.4g} | {point.middle('reduce'):.3g} | {100 * point.imbalance:.1f} % | "
            f"{len(walls)} |"
        )
    first = next(iter(by_ranks.values())).rows[0]
    if first.sequences < first.of:
        lines += ["", f"Measured on a random sample of {first.sequences:,} of {first.of:,} sequences; not scaled."]
    return "\n".join(lines)


def _plot(series: dict[tuple[str, int], dict[int, Point]], path: Path) -> None:
    try:
        import matplotlib as mpl
    except ImportError:
        raise InputError("the plot needs matplotlib: install hpcvdj[plots]") from None
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    drawn = {key: part for key, part in series.items() if 1 in part}
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(drawn)))
    for colour, ((method, m), part) in zip(colours, drawn.items(), strict=True):
        ranks = list(part)
        walls = [part[r].wall for r in ranks]
        label = method if m < 0 else f"{method}, m = {m}"
        left.plot(ranks, walls, marker=".", color=colour, label=label)
        right.plot(
            ranks, [100 * walls[0] / wall / r for r, wall in zip(ranks, walls, strict=True)], marker=".", color=colour
        )
    left.set(xlabel="ranks (GPUs)", ylabel="wall seconds", yscale="log")
    right.set(xlabel="ranks (GPUs)", ylabel="efficiency, %", ylim=(0, 110))
    right.axhline(100, color="0.8", linewidth=0.8, zorder=0)
    if drawn:
        figure.legend(frameon=False, loc="outside right center")
    figure.savefig(path, dpi=130)
