"""How many generation probabilities does a GPU compute a second, of junctions drawn from the models?

python benchmarks/pgen_gpu.py --output pgen_gpu.csv

Writes one row for each model, kernel and kind of input.  `seconds` is the median kernel time of the repeats, by events
on the GPU; `seconds_with_copies` is the median wall time with both transfers.  Random junctions are computed by the CPU
kernel too; `largest_difference` is relative, and infinite if only one of two values is zero.  `digest` is that of all
values.

python benchmarks/pgen_gpu.py --before OTHER_CLONE --models human_trb --what pgen_aa pgen_aa_1mm --output pairs.csv

tests the kernels on the GPU, then measures those of another version and of this one by turns, in processes of their
own: one row for each pair.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from _common import ROOT, record, run, timed
from numpy.typing import NDArray

import hpcvdj
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.pgen import pgen_cpu
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.repertoires.reading import Reading
from hpcvdj.studies.rows import RawFile

LONGEST = 64
"""Bases of the longest junction that is kept: two words."""


def junctions(model: Model, rows: int) -> Repertoire:
    """Productive junctions of up to LONGEST bases, drawn from a model, with the alleles that they are made of."""
    drawn = hpcvdj.generate(model, int(1.1 * rows), seed=1, productive=True)
    short = drawn.filter(pc.less_equal(pc.utf8_length(drawn["junction"]), LONGEST)).slice(0, rows)
    return read_table(short, model, PgenConfig().reads(Reading())).repertoire


def without_genes(model: Model, repertoire: Repertoire) -> Repertoire:
    """The same junctions, of unknown V and J."""
    offsets = np.array([0, len(repertoire)], dtype=np.int64)
    return Repertoire(repertoire.words, repertoire.lengths, [(model.alleles("V"), model.alleles("J"))], offsets)


def whole_unit(repertoire: Repertoire) -> Unit:
    """All of a repertoire."""
    rows = len(repertoire)
    return Unit(range(len(repertoire.pairs)), range(rows), range(1), rows)


def checked(problem: PgenProblem, values: NDArray[Any], count: int) -> tuple[int, float]:
    """How many random junctions the CPU kernel computed, and the largest relative difference."""
    repertoire = problem.repertoire
    rows = np.sort(np.random.default_rng(2).choice(len(repertoire), min(count, len(repertoire)), replace=False))
    subset = repertoire.subset(rows)
    expected = pgen_cpu.PgenKernel(replace(problem, repertoire=subset), 0)(whole_unit(subset), 0, len(rows))[:, 0]
    own = values[rows, 0]
    if not np.array_equal(own == 0, expected == 0) or not np.isfinite(own).all():
        return len(rows), float("inf")
    used = expected > 0
    return len(rows), float((np.abs(own - expected)[used] / expected[used]).max(initial=0.0))


def first_on_path(folder: Path) -> dict[str, str]:
    """The environment in which Python takes packages from a folder before all others."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder.resolve()), os.environ.get("PYTHONPATH"))))}


def of_version(folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows that this script writes with the package in a folder."""
    path = first_on_path(folder)
    package = run((sys.executable, "-P", "-c", "import hpcvdj; print(hpcvdj.__path__[0])"), **path).stdout
    if not Path(package).is_relative_to(folder.resolve()):
        sys.exit(f"{folder}: Python takes hpcvdj from {package}")
    with tempfile.TemporaryDirectory() as made:
        given = {name: getattr(options, name) for name in ("rows", "check", "repeats")}
        words = [word for name, value in given.items() for word in (f"--{name}", value)]
        inputs = "--models", *options.models, "--what", *options.what
        run((sys.executable, __file__, "--output", Path(made, "raw.csv"), *inputs, *words), **path)
        return list(csv.DictReader(RawFile.read(Path(made, "raw.csv")).table))


def in_pairs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of another version and of this one, measured by turns."""
    tests = sys.executable, "-m", "pytest", "-q", "tests/gpu/test_pgen.py"
    print(run(tests, **first_on_path(ROOT)).stdout, flush=True)
    for pair in range(1, options.pairs + 1):
        both = (of_version(folder, options) for folder in (Path(options.before), ROOT))
        for before, after in zip(*both, strict=True):
            yield {
                **{name: before[name] for name in ("model", "genes_given", "what", "rows")}, "pair": pair,
                "seconds_before": before["seconds"], "seconds": after["seconds"],
                "ratio": float(before["seconds"]) / float(after["seconds"]),
                "rows_per_second": after["rows_per_second"], "is_same_bytes": before["digest"] == after["digest"],
                "largest_difference": float(after["largest_difference"]),
            }  # fmt: skip


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    if options.before:
        yield from in_pairs(options)
        return
    from hpcvdj.kernels.pgen import pgen_cuda

    for name in options.models:
        model = hpcvdj.load_model(name)
        given = junctions(model, options.rows)
        inputs = {"V and J": given, "none": without_genes(model, given)}
        for (genes, repertoire), what in itertools.product(inputs.items(), options.what):
            unit = whole_unit(repertoire)
            for tried in options.threads_per_block:
                threads = pgen_cuda.THREADS[what] = tried or pgen_cuda.THREADS[what]
                problem = PgenProblem(repertoire, model, (what,))
                kernel = pgen_cuda.PgenKernel(problem, threads)
                values = kernel(unit, 0, unit.tasks)
                seconds, walls = [], []
                for _ in range(options.repeats):
                    before = kernel.clock.milliseconds
                    values, times = timed(lambda kernel=kernel, unit=unit: kernel(unit, 0, unit.tasks))
                    walls.append(times["seconds"])
                    seconds.append((kernel.clock.milliseconds - before) / 1e3)
                median = statistics.median(seconds)
                count, difference = checked(problem, values, options.check)
                yield {
                    "model": name, "genes_given": genes, "what": what, "threads_per_block": threads,
                    "rows": unit.tasks, "seconds": median, "rows_per_second": unit.tasks / max(median, 1e-9),
                    "seconds_with_copies": statistics.median(walls), "checked": count,
                    "largest_difference": difference, "digest": hashlib.sha256(values.tobytes()).hexdigest()[:16],
                }  # fmt: skip


if __name__ == "__main__":
    rows = record(
        __doc__, measured,
        models=(["mouse_trb", "human_trb"], "models"),
        what=(list(PGEN_COLUMNS), "kernels"),
        rows=(10_000_000, "junctions"),
        check=(20_000, "junctions that the CPU kernel computes too"),
        repeats=(7, "timed repeats, after one that is not timed"),
        before=(None, "clone of another version to compare with"),
        pairs=(3, "runs of both versions"),
        threads_per_block=([0], "threads per block to try (nt up to 256, else up to 128); 0: the kernel's choice"),
    )  # fmt: skip
    sys.exit(any(row["largest_difference"] > 1e-12 for row in rows))
