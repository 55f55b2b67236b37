"""How many generation probabilities are computed a second: on one core beside OLGA and vdjtools, and on a GPU?

NUMBA_NUM_THREADS=1 python benchmarks/pgen.py --output results/pgen_cpu/raw.csv
python benchmarks/pgen.py --backend cuda --models mouse_trb human_trb --rows 10000000 --output results/pgen_h200/raw.csv

Productive junctions are drawn from the models of olga, and computed with the V and J alleles that made them, and with
any.

On a CPU core, a pass over the junctions is repeated until it has taken half a second; `rate` is the median of the
passes, in junctions per second of processor time of one thread.  OLGA's fast class and, if it is installed, vdjtools
compute the first of the junctions in the same process; `largest_difference` is relative.

On a GPU, `seconds` is the median kernel time of the repeats, by events on the GPU; `seconds_with_copies` is the median
wall time with both transfers.  The CPU kernel computes random junctions too; the largest difference is infinite if only
one of two values is zero.  `digest` is that of all values.
"""

import argparse
import hashlib
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _common import rate_row, record, timed
from _vdjtools import INSTALLED, Vdjtools
from numpy.typing import NDArray

import hpcvdj
from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.igor import PUBLISHED, load_model
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import Reading
from tests.kernels.pgen.models import unit_of
from tests.kernels.pgen.olga_peer import Olga
from tests.kernels.pgen.problems import largest_difference

SECONDS, PASSES = 0.5, 5

GENES = {"given": "V and J", "any": "none"}
"""Which genes the programs are told, and what rows of GPUs call it."""


@dataclass(frozen=True)
class Drawn:
    """Junctions of a model: as a table, and packed, with the row in the table of each.

    repertoires  by which genes are given
    """

    table: pa.Table
    row: NDArray[np.int64]
    repertoires: dict[str, Repertoire]


def drawn(model: Model, rows: int, longest: int) -> Drawn:
    """Productive junctions of at most so many bases, with the alleles that they are made of."""
    table = hpcvdj.generate(model, int(1.1 * rows) + 100, seed=1, productive=True, backend="cpu")
    short = table.filter(pc.less_equal(pc.utf8_length(table["junction"]), longest)).slice(0, rows)
    read = read_table(short, model, PgenConfig().reads(Reading()))
    own, every = read.repertoire, (model.alleles("V"), model.alleles("J"))
    offsets = np.array([0, len(own)], dtype=np.int64)
    return Drawn(short, read.row, {"given": own, "any": Repertoire(own.words, own.lengths, [every], offsets)})


def rates(work: Callable[[], Any], count: int) -> list[float]:
    """Junctions per second of processor time, of each pass."""
    found = []
    for _ in range(PASSES):
        repeats, start = 0, time.process_time()
        while time.process_time() - start < SECONDS:
            work()
            repeats += 1
        found.append(repeats * count / (time.process_time() - start))
    return found


def peers(what: str, table: pa.Table, genes: str, olga: Olga, vdjtools: Vdjtools | None) -> dict[str, Any]:
    """The other programs, and what computes their values of a table."""
    texts = table["junction" if what == "pgen_nt" else "junction_aa"].to_pylist()
    calls = [("", "")] * len(texts)
    if genes == "given":
        calls = list(zip(table["v_call"].to_pylist(), table["j_call"].to_pylist(), strict=True))
    found: dict[str, Any] = {}
    if what != "pgen_aa_1mm":
        each = olga.nt if what == "pgen_nt" else olga.aa
        found["OLGA FastPgen"] = lambda: [each(text, *call) for text, call in zip(texts, calls, strict=True)]
    if vdjtools:
        found["vdjtools"] = partial(vdjtools.values, what, texts, calls)
    return found


def on_a_core(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of all programs."""
    model, number = load_model(f"{name}{PUBLISHED}"), options.rows or 2000
    own = drawn(model, number, 128)
    olga, vdjtools = Olga(name, complete=True, fast=True), Vdjtools(name) if INSTALLED else None
    for (genes, repertoire), what in itertools.product(own.repertoires.items(), options.what):
        problem = PgenProblem(repertoire, model, (what,))
        compute = partial(PgenKernel(problem, 1), unit_of(problem), 0, number)
        values = np.empty(number)
        values[own.row] = compute()[:, 0]
        key = {"model": name, "genes": genes, "what": what}
        yield rate_row(rates(compute, number), **key, program="hpcvdj", junctions=number)
        first = own.table.slice(0, options.peer)
        for program, peer in peers(what, first, genes, olga, vdjtools).items():
            difference = largest_difference(values[: len(first)], np.array(peer()))
            row = rate_row(rates(peer, len(first)), **key, program=program, junctions=len(first))
            yield row | {"largest_difference": f"{difference:.4g}"}


def checked(problem: PgenProblem, values: NDArray[Any], count: int) -> dict[str, Any]:
    """How many random junctions the CPU kernel computed, and the largest relative difference."""
    repertoire = problem.repertoire
    rows = np.sort(np.random.default_rng(2).choice(len(repertoire), min(count, len(repertoire)), replace=False))
    subset = replace(problem, repertoire=repertoire.subset(rows))
    expected = PgenKernel(subset, 0)(unit_of(subset), 0, len(rows))
    return {"checked": len(rows), "largest_difference": largest_difference(values[rows], expected)}


def on_a_gpu(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of the kernels."""
    from hpcvdj.kernels.pgen import pgen_cuda

    model = load_model(name)
    repertoires = drawn(model, options.rows or 10_000_000, 64).repertoires
    for (genes, repertoire), what in itertools.product(repertoires.items(), options.what):
        problem = PgenProblem(repertoire, model, (what,))
        unit = unit_of(problem)
        for tried in options.threads_per_block:
            threads = pgen_cuda.THREADS[what] = tried or pgen_cuda.THREADS[what]
            kernel = pgen_cuda.PgenKernel(problem, threads)
            values = kernel(unit, 0, unit.tasks)
            seconds, walls = [], []
            for _ in range(options.repeats):
                before = kernel.clock.milliseconds
                values, times = timed(lambda kernel=kernel, unit=unit: kernel(unit, 0, unit.tasks))
                walls.append(times["seconds"])
                seconds.append((kernel.clock.milliseconds - before) / 1e3)
            median = statistics.median(seconds)
            yield {
                "model": name, "genes_given": GENES[genes], "what": what, "threads_per_block": threads,
                "rows": unit.tasks, "seconds": median, "rows_per_second": unit.tasks / max(median, 1e-9),
                "seconds_with_copies": statistics.median(walls), **checked(problem, values, options.check),
                "digest": hashlib.sha256(values.tobytes()).hexdigest()[:16],
            }  # fmt: skip


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    if options.backend == "cpu":
        numba.set_num_threads(1)
    for name in options.models:
        yield from (on_a_core if options.backend == "cpu" else on_a_gpu)(name, options)


if __name__ == "__main__":
    rows = record(
        __doc__, measured,
        models=(["mouse_trb", "human_trb", "human_tra", "human_igh"], "models"),
        what=(list(PGEN_COLUMNS), "kernels"),
        backend=("cpu", "cpu or cuda"),
        rows=(0, "junctions of each model; 0: 2,000, on a GPU 10,000,000 of up to 64 bases"),
        peer=(100, "of these for OLGA and vdjtools"),
        check=(20_000, "of these that the CPU kernel computes beside the GPU"),
        repeats=(7, "timed repeats on a GPU, after one that is not timed"),
        threads_per_block=([0], "on a GPU, to try (nt up to 256, else up to 128); 0: the kernel's choice"),
    )  # fmt: skip
    sys.exit(any("checked" in row and row["largest_difference"] > 1e-12 for row in rows))
