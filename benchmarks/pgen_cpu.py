"""Rates of generation probabilities on one core: hpcvdj beside OLGA's fast class and vdjtools, in one process.

python benchmarks/pgen_cpu.py --output results/pgen_cpu/raw.csv

Junctions in frame and without stop are drawn from the models of olga.  Each program computes them with the V and J
alleles that made them, and with any.  A pass over the junctions is repeated until it has taken half a second; `rate` is
the median of the passes, in junctions per second of processor time of one thread.  The values of the junctions that
the others compute, too, are compared.  vdjtools is left out if it is not installed.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from _vdjtools import INSTALLED, Vdjtools

from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS

FIELDS = ("model", "genes", "what", "program", "junctions", "rate", "slowest", "fastest", "largest_difference")
SECONDS = 0.5


def drawn(model: Any, number: int, seed: int) -> list[Any]:
    """Junctions in frame without a stop codon, of at most 128 bases."""
    from tests.kernels.pgen.models import sample

    rng, rows = np.random.default_rng(seed), []
    while len(rows) < number:
        own = sample(model, rng)
        amino_acids = translate([own.junction])[0]
        if amino_acids and "*" not in amino_acids and len(own.junction) <= 128:
            rows.append(own)
    return rows


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
        model = load_model(name)
        rows = drawn(model, options.junctions, seed=1)
        peers, olga = rows[: options.peer], Olga(name, complete=True, fast=True)
        vdjtools = Vdjtools(name) if INSTALLED else None
        for genes in ("given", "any"):
            given = genes == "given"
            asked = [(row.junction, (row.v,), (row.j,)) if given else (row.junction, None, None) for row in rows]
            calls = [(model.v[row.v].allele, model.j[row.j].allele) if given else ("", "") for row in peers]
            for what in PGEN_COLUMNS:
                problem, place = problem_of(model, asked, (what,))
                compute = partial(PgenKernel(problem, 1), unit_of(problem), 0, len(rows))
                values = compute()[place, 0]
                yield row_of((name, genes, what, "hpcvdj", len(rows)), rates(compute, len(rows)))
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
                    yield row_of((name, genes, what, program, len(peers)), rates(peer, len(peers)), difference)


def _each(compute: Callable[..., float], texts: list[str], calls: list[tuple[str, str]]) -> Any:
    return np.array([compute(text, *call) for text, call in zip(texts, calls, strict=True)])


def row_of(what: tuple[Any, ...], found: list[float], difference: float | str = "") -> dict[str, Any]:
    """A raw row."""
    values = (*what, statistics.median(found), min(found), max(found), difference)
    return dict(zip(FIELDS, [f"{value:.4g}" if isinstance(value, float) else value for value in values], strict=True))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", metavar="CSV", type=Path, required=True, help="file of raw rows")
    parser.add_argument("--models", nargs="+", default=["mouse_trb", "human_trb", "human_tra", "human_igh"])
    parser.add_argument("--junctions", type=int, default=2000, help="junctions of each model")
    parser.add_argument("--peer", type=int, default=100, help="of which the others compute so many, too")
    options = parser.parse_args()
    numba.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        for row in measured(options):
            writer.writerow(row)
            stream.flush()
            print(", ".join(map(str, row.values())), flush=True)


if __name__ == "__main__":
    main()
