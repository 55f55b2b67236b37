"""How many sequences does `hpcvdj generate` draw a second: alone, as rows, and as tables that are written?

python benchmarks/generate.py --output results/generate/raw.csv
python benchmarks/generate.py --backend cuda --output raw.csv

`draw` is the kernel alone: packed junctions and their scenarios in memory.  `rows` makes AIRR rows of them, with
`scenarios` also the columns of the scenarios, with `productive` productive rows only; the others also write a table.
On CPU cores `rate` is the median of the passes, in sequences (of `productive`: rows) per second of processor time of
one thread.  On a GPU it is that of `draw`, by events on the GPU, with the results left there.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _common import rate_row, record, timed

from hpcvdj.generation.generate import BATCH, generate
from hpcvdj.generation.settings import GenerationSettings
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.generation import draw_cpu
from hpcvdj.kernels.generation.tables import DrawTables
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.writers import write_table
from hpcvdj.runs.run import Run


def on_cpu(model: Model, number: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, what is timed) of each row."""
    sampler, backend = draw_cpu.Sampler(DrawTables.of(model)), open_backend("cpu")

    def draw() -> None:
        for first in range(0, number, BATCH):
            sampler(first, min(BATCH, number - first), 1)

    def rows(**options: bool) -> Iterator[Any]:
        return generate(model, GenerationSettings(number, seed=1, **options), backend, Run())

    yield "draw", draw
    yield "rows", lambda: sum(batch.num_rows for batch in rows())
    for option in ("scenarios", "productive"):
        yield f"rows, {option}", lambda option=option: sum(batch.num_rows for batch in rows(**{option: True}))
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".tsv", ".parquet", ".tsv.gz"):
            path = Path(folder) / f"o{suffix}"
            yield f"rows, {suffix}", lambda path=path: write_table(path, rows(), overwrite=True)


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    backend, number = open_backend(options.backend), options.sequences
    for name in options.models:
        model = load_model(name)
        if backend.name == "cpu":
            for what, work in on_cpu(model, number):
                work()  # compiles, and reads what is read once
                seconds = [timed(work)[1]["cpu_seconds"] for _ in range(options.repeats)]
                yield rate_row([number / own for own in seconds], model=name, what=what, sequences=number)
            continue
        from hpcvdj.kernels.generation import draw_cuda

        sampler = draw_cuda.Sampler(DrawTables.of(model))
        seconds = []
        for _ in range(options.repeats + 1):
            before = sampler.clock.milliseconds
            words, *_ = sampler.on_device(0, number, 1)
            sampler.clock.pending(words)()
            seconds.append((sampler.clock.milliseconds - before) / 1e3)
        yield rate_row([number / own for own in seconds[1:]], model=name, what="draw", sequences=number)


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(["mouse_trb", "human_trb", "human_tra", "human_igh"], "models"),
        backend=("cpu", "cpu or cuda: where to draw"),
        sequences=(1_000_000, "sequences of each pass"),
        repeats=(5, "timed passes, after one that is not timed"),
        threads=(1, "threads of the CPU"),
    )  # fmt: skip
