"""Rates of generation probabilities on one core: hpcvdj beside OLGA's fast class and vdjtools, in one process.

python benchmarks/pgen_cpu.py --output results/pgen_cpu/raw.csv

Junctions in frame and without stop are drawn from the models of olga.  Each program computes them with the V and J
alleles that made them, and with any.  A pass over the junctions is repeated until it has taken half a second; `rate` is
the median of the passes, in junctions per second of processor time of one thread.  The values of the junctions that
the others compute, too, are compared.  vdjtools is left out if it is not installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numba
import numpy as np
from _common import rate_row, record
from _pgen import asked_with, drawn
from _vdjtools import INSTALLED, Vdjtools

from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import PUBLISHED, load_model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS

SECONDS = 0.5


def rates(work: Callable[[], Any], count: int, passes: int = 5) -> list[float]:
    """Junctions per second of processor time, of each pass."""
    found = []
    for _ in range(passes):
        repeats, start = 0, time.process_time()
        while time.process_time() - start < SECONDS:
            work()
            repeats += 1
        found.append(repeats * count / (time.process_time() - start))
    return found


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    from tests.kernels.pgen.models import problem_of, unit_of
    from tests.kernels.pgen.olga_peer import Olga

    for name in options.models:
        model = load_model(f"{name}{PUBLISHED}")
        rows = drawn(model, options.junctions, seed=1)
        peers, olga = rows[: options.peer], Olga(name, complete=True, fast=True)
        vdjtools = Vdjtools(name) if INSTALLED else None
        for genes in ("given", "any"):
            asked, calls = asked_with(genes, model, rows)
            calls = calls[: options.peer]
            for what in PGEN_COLUMNS:
                problem, place = problem_of(model, asked, (what,))
                compute = partial(PgenKernel(problem, 1), unit_of(problem), 0, len(rows))
                values = compute()[place, 0]
                key = {"model": name, "genes": genes, "what": what}
                yield rate_row(rates(compute, len(rows)), **key, program="hpcvdj", junctions=len(rows))
                texts = [row.junction for row in peers]
                texts = texts if what == "pgen_nt" else translate(texts)
                others: dict[str, Callable[[], Any]] = {}
                if what != "pgen_aa_1mm":
                    others["OLGA FastPgen"] = partial(_each, olga.nt if what == "pgen_nt" else olga.aa, texts, calls)
                if vdjtools and what == "pgen_nt":
                    others["vdjtools"] = partial(vdjtools.nt, texts, calls)
                elif vdjtools:
                    others["vdjtools"] = partial(vdjtools.aa, texts, calls, int(what == "pgen_aa_1mm"))
                for program, peer in others.items():
                    expected = np.array(peer())
                    with np.errstate(divide="ignore", invalid="ignore"):
                        difference = np.nanmax(np.abs(values[: len(peers)] - expected) / expected)
                    row = rate_row(rates(peer, len(peers)), **key, program=program, junctions=len(peers))
                    yield row | {"largest_difference": f"{difference:.4g}"}


def _each(compute: Callable[..., float], texts: list[str], calls: list[tuple[str, str]]) -> Any:
    return np.array([compute(text, *call) for text, call in zip(texts, calls, strict=True)])


if __name__ == "__main__":
    numba.set_num_threads(1)
    record(
        __doc__, measured,
        models=(["mouse_trb", "human_trb", "human_tra", "human_igh"], "models"),
        junctions=(2000, "junctions of each model"),
        peer=(100, "of which the others compute so many, too"),
    )  # fmt: skip
