"""How fast does hpcvdj count pathways on CPU cores, beside OLGA's generation probabilities of the same junctions?

python benchmarks/count.py --output results/count_cpu/raw.csv

`kernel` is `direct` alone, on one thread and on all; `command` is `hpcvdj count …` with start-up, reading and HDF5;
`first command` compiles everything before.  `probability` is OLGA's `FastPgen` on one core, if it is installed: another
quantity, a generation probability under a fitted model, the nearest that the field computes.  `hpcvdj study methods
--backend cpu` measures the methods that enumerate.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numba
from _common import GERMLINE, HPCVDJ, JUNCTIONS, ROOT, record, run, timed

from hpcvdj.errors import choice
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.pathways.methods import PathwayMethod
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.igor import PUBLISHED, load_model
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.inputs import Inputs

MAX_N = 10
"""The paper's largest n-length."""

MODEL = "mouse_trb"


def loaded(repertoire: Any, germline: Any, max_n: int) -> Callable[[], Any]:
    """A pass of the `direct` kernel over all junctions and n-lengths."""
    direct, backend = choice(PathwayMethod, "direct", "method"), open_backend("cpu")
    problem = Problem(repertoire, germline, max_n)
    units = list(direct.units(problem, backend.unit_work, [(range(max_n + 1), range(len(repertoire)))]))
    kernel = backend.load(direct, problem)
    return lambda: [kernel(unit, 0, unit.tasks) for unit in units]


def queries(repertoire: Any, size: int, seed: int) -> list[tuple[str, str, str]]:
    """A random sample of the CDR3s between the anchor codons that OLGA's model has for their V and J, and these.

    For other anchor codons than the model's OLGA returns 0 at once.  It takes only junctions in frame and genes of the
    model.
    """
    model = load_model(f"{MODEL}{PUBLISHED}")
    ends = [{own.allele: own.segment for own in model.templates(kind) if own.segment} for kind in ("V", "J")]
    rows = random.Random(seed).sample(range(len(repertoire)), len(repertoire))
    chosen: list[tuple[str, str, str]] = []
    for row in rows:
        pair = int(repertoire.offsets.searchsorted(row, side="right")) - 1
        v, j = (segment.allele for segment in repertoire.pairs[pair])
        if repertoire.lengths[row] % 3 == 0 and v in ends[0] and j in ends[1] and len(chosen) < size:
            chosen.append((ends[0][v][:3] + repertoire.cdr3(row) + ends[1][j][-3:], v, j))
    return chosen


def by_olga(repertoire: Any, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Probabilities on one core; the first one compiles what OLGA compiles."""
    from tests.kernels.pgen.olga_peer import Olga

    olga, asked = Olga(MODEL, complete=False, fast=True), queries(repertoire, options.pgen_sample, options.seed)
    like = {"method": "OLGA", "threads": 1}
    yield {"measured": "load", **like, "sequences": 1, **timed(lambda: olga.nt(*asked[0]))[1]}
    for repeat in range(options.command_repeats):
        values, times = timed(lambda: [olga.nt(*query) for query in asked])
        positive = sum(value > 0 for value in values)
        row = {"measured": "probability", **like, "sequences": len(asked), "repeat": repeat}
        yield row | {"above_zero": positive} | times


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Everything, one after another."""
    germline = read_germline(ROOT / options.germline)
    repertoire = Inputs.of_file(ROOT / options.junctions).read(germline).repertoire
    with tempfile.TemporaryDirectory() as folder:
        words = [
            *HPCVDJ,
            "count",
            options.junctions,
            "-g",
            options.germline,
            "--overwrite",
            "-o",
            f"{folder}/counts.h5",
        ]
        run(words)  # fills numba's cache, as after a first run
        for threads in sorted({1, options.threads}):
            numba.set_num_threads(threads)
            like = {"method": "direct", "threads": threads, "sequences": len(repertoire)}
            for max_n in (6, MAX_N):
                work, times = timed(lambda max_n=max_n: loaded(repertoire, germline, max_n))
                yield {"measured": "load", **like, "n_lengths": f"0-{max_n}", **times}
                work()
                for repeat in range(options.repeats):
                    times = timed(work)[1]
                    yield {"measured": "kernel", **like, "n_lengths": f"0-{max_n}", "repeat": repeat, **times}
            for repeat in range(-1, options.command_repeats):
                done = run([*words, "--threads", threads], NUMBA_CACHE_DIR=f"{folder}/cache-{threads}")
                what = {"measured": "first command" if repeat < 0 else "command", **like}
                yield what | {"n_lengths": f"0-{MAX_N}", "repeat": max(0, repeat), **done.used}
    if find_spec("olga"):
        yield from by_olga(repertoire, options)


if __name__ == "__main__":
    record(
        __doc__, measured,
        junctions=(JUNCTIONS, "AIRR table of junctions to count"),
        germline=(GERMLINE, "their germline table"),
        threads=(0, "most threads, timed on 1 and on so many; 0: all cores"),
        repeats=(15, "repeats of the kernel"),
        command_repeats=(5, "repeats of the command, and of the peer"),
        pgen_sample=(5000, "junctions given to OLGA"),
        seed=(1, "of the random sample"),
    )  # fmt: skip
