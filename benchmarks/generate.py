"""Rates of `hpcvdj generate`: drawing alone, the rows, and the tables that are written.

NUMBA_NUM_THREADS=1 python benchmarks/generate.py --output results/generate/raw.csv
python benchmarks/generate.py --backend cuda --output raw.csv

`draw` is the kernel alone: packed junctions and their scenarios in memory.  `rows` makes AIRR rows of them, with
`scenarios` also the columns of the scenarios, with `productive` productive rows only; the others also write a table.
On CPU cores `rate` is the median of the passes, in sequences (of `productive`: rows) per second of processor time of
one thread.  On a GPU it is that of `draw`, by events on the GPU, with the results left there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
from _common import rate_parser, rate_row, write_rates

from hpcvdj.generation.generate import SLICE, generate
from hpcvdj.generation.settings import Generation
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.generation import draw_cpu
from hpcvdj.kernels.generation.tables import DrawTables
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.tables import write_table
from hpcvdj.runs.run import Run

FIELDS = ("hardware", "model", "what", "sequences", "rate", "slowest", "fastest")


def on_cpu(model: Model, number: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, what is timed) of each row."""
    sampler, backend = draw_cpu.Sampler(DrawTables.of(model)), open_backend("cpu")

    def draw() -> None:
        for first in range(0, number, SLICE):
            sampler(first, min(SLICE, number - first), 1)

    def rows(**options: bool) -> Iterator[Any]:
        return generate(model, Generation(number, 1, **options), backend, Run())

    def table(folder: Path, suffix: str) -> None:
        write_table(folder / f"o{suffix}", rows(), overwrite=True)

    yield "draw", draw
    yield "rows", lambda: sum(batch.num_rows for batch in rows())
    for option in ("scenarios", "productive"):
        yield f"rows, {option}", lambda option=option: sum(batch.num_rows for batch in rows(**{option: True}))
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".tsv", ".parquet", ".tsv.gz"):
            yield f"rows, {suffix}", partial(table, Path(folder), suffix)


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    backend, number = open_backend(options.backend), options.sequences
    for name in options.models:
        model = load_model(name)
        if backend.name == "cpu":
            for what, work in on_cpu(model, number):
                # Compiles, and reads what is read once.
                work()
                yield row(backend.describe(), name, what, number, [timed(work) for _ in range(options.repeats)])
            continue
        from hpcvdj.kernels.generation import draw_cuda

        sampler = draw_cuda.Sampler(DrawTables.of(model))
        seconds = []
        for _ in range(options.repeats + 1):
            before = sampler.clock.milliseconds
            words, *_ = sampler.on_device(0, number, 1)
            sampler.clock.pending(words)()
            seconds.append((sampler.clock.milliseconds - before) / 1e3)
        yield row(backend.describe(), name, "draw", number, seconds[1:])


def timed(work: Callable[[], Any]) -> float:
    """Processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def row(hardware: str, model: str, what: str, number: int, seconds: list[float]) -> dict[str, Any]:
    """A raw row."""
    rates = [number / own for own in seconds]
    return rate_row(rates, hardware=hardware, model=model, what=what, sequences=number)


def main() -> None:
    """Measure."""
    parser = rate_parser(__doc__)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="where to draw")
    parser.add_argument("--sequences", type=int, default=1_000_000, help="sequences of each pass")
    parser.add_argument("--repeats", type=int, default=5, help="timed passes, after one that is not timed")
    options = parser.parse_args()
    numba.set_num_threads(1)
    write_rates(options.output, FIELDS, measured(options))


if __name__ == "__main__":
    main()
