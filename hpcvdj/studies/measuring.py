"""Measuring a method, and the raw rows that every study keeps: measuring and rendering are apart.

A launch leaves one file `raw-NAME.csv`: how it came about in comment lines, then a row per repeat.  Tables and plots
are made from those files, with no GPU at hand.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.backends import Kernel
from hpcvdj.counting.config import Config
from hpcvdj.runs.driver import Driver
from hpcvdj.counting.totals import column_sums
from hpcvdj.errors import InputError
from hpcvdj.kernels.pathways.methods import Method, Problem, Unit, method_named
from hpcvdj.runs.binding import bind
from hpcvdj.runs.partition import blocks_per_rank
from hpcvdj.runs.ranks import World
from hpcvdj.storage import atomic_path

GROWTH = 4.5
"""How much longer an enumeration takes with an n-nucleotide more: four times the strings, and a cut more."""

FEWEST_BLOCKS = 16
"""Blocks of strings that a rank's part keeps at least."""

Row = TypeVar("Row")


@dataclass(frozen=True)
class Measurement:
    """One repeat of one n-length; for a method that does all at once, of the n-lengths 0 … m.

    Seconds are the maximum over ranks: wall from a common start to the last all-reduced unit; kernel and reduce by
    the host's clock; device by the GPU's (0 on CPU cores), also the minimum over ranks, which tells the imbalance.
    With `parts` above 1 only the first of so many equal block ranges of the n-nucleotide strings was measured.
    `pathways` are those with m n-nucleotides that the measured strings find.
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
        """Wall seconds of the whole, if it takes `parts` times what was measured."""
        return self.wall * self.parts


def measure(
    problem: Problem,
    config: Config,
    world: World,
    n_lengths: Sequence[int],
    repeats: int,
    of: int,
    longest: float = math.inf,
) -> list[Measurement]:
    """Measure `repeats` passes over each of `n_lengths`, after a unit that warms up; `of` is the whole set's size.

    A pass that would take more than `longest` seconds, to judge by the n-length before, is measured on a part of the
    n-nucleotide strings.
    """
    method = method_named(config.method)
    backend = bind(config.backend, world, strict=config.strict_binding)
    hardware = backend.describe().partition(", device")[0]
    unit_work = world.broadcast(backend.unit_work)
    world.patience = math.inf  # units are not cut, and may take hours
    rows: list[Measurement] = []
    kernel = backend.load(method.name, problem, config.threads_per_block) if method.enumerates else None
    for m in n_lengths:
        here = problem if method.enumerates else replace(problem, max_n=m)
        loaded = kernel or backend.load(method.name, here, config.threads_per_block)
        parts = _parts(method, m, rows, config, world, longest)
        # A part's units cover more sequences, so that they fill the processor as the whole's do.
        units = [unit for unit in method.units(here, unit_work * parts) if m in unit.n_lengths]
        _pass(loaded, units[:1], config, world, parts)
        for repeat in range(repeats):
            seconds, pathways = _pass(loaded, units, config, world, parts)
            largest, smallest = world.maximum(seconds), -world.maximum(-seconds)
            rows.append(
                Measurement(
                    method=method.name,
                    ranks=world.size,
                    m=m,
                    repeat=repeat,
                    sequences=len(problem.repertoire),
                    of=of,
                    threads_per_block=config.threads_per_block,
                    parts=parts,
                    wall=float(largest[0]),
                    kernel=float(largest[1]),
                    reduce=float(largest[2]),
                    device_max=float(largest[3]),
                    device_min=float(smallest[3]),
                    pathways=pathways,
                    hardware=hardware,
                )
            )
    return rows


def _parts(method: Method, m: int, rows: list[Measurement], config: Config, world: World, longest: float) -> int:
    """Into how many parts to cut the strings of n-length m: a power of two, 1 for the whole."""
    if not rows or not method.enumerates or math.isinf(longest):
        return 1
    expected = median(row.scaled for row in rows if row.m == rows[-1].m) * GROWTH ** (m - rows[-1].m)
    blocks = blocks_per_rank(4**m, config.threads_per_block, world.size)
    parts = 1
    while expected / parts > longest and blocks // (2 * parts) >= FEWEST_BLOCKS:
        parts *= 2
    return parts


def _pass(
    kernel: Kernel, units: list[Unit], config: Config, world: World, parts: int
) -> tuple[NDArray[np.float64], int]:
    """This rank's seconds (wall, kernel, reduce, device) of one pass, and root's pathways of the last n-length."""
    pathways = 0

    def add(unit: Unit, counters: NDArray[np.uint64]) -> None:
        nonlocal pathways
        pathways += column_sums(counters[:, -1:])[0]

    clock = getattr(kernel, "clock", None)
    before = clock.milliseconds if clock else 0.0
    world.barrier()
    start = time.perf_counter()
    driver = Driver(kernel, method_named(config.method), config.threads_per_block, world, parts=parts)
    seconds = driver.run(units, add)[0].sum(axis=1)
    wall = time.perf_counter() - start
    device = (clock.milliseconds - before) / 1000 if clock else 0.0
    return np.array([wall, seconds[0], seconds[1], device]), pathways


def write(rows: Sequence[Any], folder: Path, name: str, facts: dict[str, str]) -> Path:
    """Write the raw rows (dataclasses) of one launch, and how they came about in comment lines above them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"raw-{name}.csv"
    with atomic_path(path, overwrite=True) as temporary, open(temporary, "w", newline="") as stream:
        stream.writelines(f"# {key}: {value}\n" for key, value in facts.items())
        writer = csv.DictWriter(stream, [field.name for field in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    return path


def read(folder: Path, kind: type[Row]) -> tuple[list[Row], dict[str, dict[str, str]]]:
    """All raw rows of a study and each file's facts; InputError if there are none, or they are not of that kind."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; measuring makes one")
    rows: list[Row] = []
    facts = {}
    for path in sorted(folder.glob("raw-*.csv")):
        lines = path.read_text().splitlines()
        comments = [line[2:] for line in lines if line.startswith("# ")]
        facts[path.name] = dict(line.split(": ", 1) for line in comments)
        table = csv.DictReader(line for line in lines if not line.startswith("# "))
        rows += [_row(path, values, kind) for values in table]
    if not rows:
        raise InputError(f"{folder}: no raw-*.csv with rows; measuring writes them")
    return rows, facts


def _row(path: Path, values: dict[str, str], kind: type[Row]) -> Row:
    types = {"int": int, "float": float, "str": str}
    try:
        return kind(**{field.name: types[str(field.type)](values[field.name]) for field in fields(kind)})  # type: ignore[arg-type]
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: not raw rows of this study ({error}); render it with the command it says") from None


@dataclass(frozen=True)
class Point:
    """The repeats of one thing measured: median, minimum and maximum of the wall seconds."""

    rows: tuple[Measurement, ...]

    @property
    def wall(self) -> float:
        """Median wall seconds of the whole, scaled if it was measured in part."""
        return median(row.scaled for row in self.rows)

    @property
    def parts(self) -> int:
        """Into how many parts the whole was cut, of which one was measured."""
        return self.rows[0].parts

    @property
    def imbalance(self) -> float:
        """Median of (slowest - fastest) / slowest over ranks, by the GPU's clock."""
        return median((r.device_max - r.device_min) / r.device_max if r.device_max else 0.0 for r in self.rows)

    def middle(self, name: str) -> float:
        """Median of a column."""
        return float(median(getattr(row, name) for row in self.rows))


def points(rows: Iterable[Measurement], *by: str) -> dict[tuple[Any, ...], Point]:
    """The repeats of each combination of the columns `by`, in order."""
    grouped: dict[tuple[Any, ...], list[Measurement]] = {}
    for row in rows:
        grouped.setdefault(tuple(getattr(row, name) for name in by), []).append(row)
    return {key: Point(tuple(grouped[key])) for key in sorted(grouped)}


def totals_identical(rows: Iterable[Measurement]) -> bool:
    """Whether all that was measured of the same strings, by any method on any ranks, found the same pathways."""
    found: dict[tuple[int, ...], set[int]] = {}
    for row in rows:
        part = (row.parts, row.threads_per_block, row.ranks) if row.parts > 1 else (1, 0, 0)
        found.setdefault((row.m, row.sequences, row.of, *part), set()).add(row.pathways)
    return all(len(values) == 1 for values in found.values())


def commands(facts: dict[str, dict[str, str]]) -> str:
    """The raw files and the commands behind them, as a Markdown list."""
    return "\n".join(f"- `{name}`: `{fact.get('command', '')}`, {fact.get('date', '')}" for name, fact in facts.items())
