"""How fast does hpcvdj count pathways on CPU cores?

python benchmarks/count.py --output results/count_cpu/raw.csv

`kernel` is `direct` alone, on one thread and on all; `command` is `hpcvdj count …` with start-up, reading and HDF5;
`first command` compiles everything before.  `hpcvdj study methods --backend cpu` measures the methods that enumerate.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numba
from _common import HPCVDJ, ROOT, record, run, timed

from hpcvdj.errors import choice
from hpcvdj.kernels.backends import open_backend
from hpcvdj.kernels.pathways.methods import PathwayMethod
from hpcvdj.recombination.germline import read_germline
from hpcvdj.recombination.repertoire import Problem
from hpcvdj.repertoires.inputs import Inputs

MAX_N = 10
"""The paper's largest n-length."""


def loaded(repertoire: Any, germline: Any, max_n: int) -> Callable[[], Any]:
    """A pass of the `direct` kernel over all junctions and n-lengths."""
    direct, backend = choice(PathwayMethod, "direct", "method"), open_backend("cpu")
    problem = Problem(repertoire, germline, max_n)
    units = list(direct.units(problem, backend.unit_work, range(max_n + 1)))
    kernel = backend.load(direct, problem)
    return lambda: [kernel(unit, 0, unit.tasks) for unit in units]


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Everything, one after another."""
    germline = read_germline(ROOT / options.germline)
    repertoire = Inputs.of_file(ROOT / options.junctions).read(germline).repertoire
    with tempfile.TemporaryDirectory() as folder:
        words = [*HPCVDJ, "count", options.junctions, "-g", options.germline]
        words += ["-o", f"{folder}/counts.h5", "--overwrite"]
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


if __name__ == "__main__":
    record(
        __doc__, measured,
        junctions=("inputs/mouse_trb/repertoire.tsv.gz", "AIRR table of junctions to count"),
        germline=("inputs/germline/mouse_trb_paper.tsv", "their germline table"),
        threads=(0, "most threads, timed on 1 and on so many; 0: all cores"),
        repeats=(15, "repeats of the kernel"),
        command_repeats=(5, "repeats of the command"),
    )  # fmt: skip
