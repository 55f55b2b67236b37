"""Sums over one mismatch on one core: their cost beside `pgen_aa`, and beside another version of hpcvdj.

python benchmarks/one_mismatch.py --output results/pgen_cpu/raw_one_mismatch.csv --before CHECKOUT

Junctions in frame and without a stop are drawn from the models of olga.  Each version has a process of its own, and
they take turns, pass after pass, so that both meet the same other load.  `cpu_us` is the processor time of a junction
in a pass in microseconds.  `--enrich N` also runs `hpcvdj enrich` on N drawn junctions with each version in turn;
`cpu_us` is then that of the whole command for a junction.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

WHAT = ("pgen_aa", "pgen_aa_1mm")
FIELDS = ("model", "genes", "what", "version", "pass", "junctions", "cpu_us", "largest_difference")
SECONDS = 0.25


class Version:
    """A process with the hpcvdj of a checkout."""

    def __init__(self, folder: Path) -> None:
        self.environ = os.environ | {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1", "NUMBA_NUM_THREADS": "1"}
        words = [sys.executable, str(Path(__file__).resolve()), "--worker"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(words, env=self.environ, cwd=folder, text=True, **pipes)

    def load(self, name: str, asked: list[Any]) -> dict[str, np.ndarray]:
        """The values of junctions, which passes then compute."""
        return {what: np.array(values) for what, values in self._answer([name, asked]).items()}

    def seconds(self, what: str) -> float:
        """Processor seconds of a junction in a pass."""
        return float(self._answer(what))

    def _answer(self, question: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


def work() -> None:
    """Answer the questions of `Version`."""
    from hpcvdj.kernels.pgen.pgen_cpu import PgenKernel
    from hpcvdj.recombination.igor import load_model
    from tests.kernels.pgen.models import problem_of, unit_of

    compute, values = {}, {}
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, str):
            start, passes = time.process_time(), 0
            while passes == 0 or time.process_time() - start < SECONDS:
                compute[question]()
                passes += 1
            answer: Any = (time.process_time() - start) / passes / len(values[question])
        else:
            name, asked = question
            rows = [(text, v and tuple(v), j and tuple(j)) for text, v, j in asked]
            for what in WHAT:
                problem, place = problem_of(load_model(name), rows, (what,))
                compute[what] = partial(PgenKernel(problem, 1), unit_of(problem), 0, len(rows))
                values[what] = compute[what]()[place, 0].tolist()
            answer = values
        print(json.dumps(answer), flush=True)


def largest_difference(values: list[np.ndarray]) -> str:
    """Relative, between two versions; none of one."""
    if len(values) == 1:
        return ""
    first, other = values
    return f"{np.max(np.abs(first - other) / np.where(other > 0, other, 1)):.2g}"


def measured(options: argparse.Namespace, versions: dict[str, Version]) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    from _pgen import asked_with, drawn

    from hpcvdj.recombination.igor import load_model

    for name in options.models:
        model = load_model(name)
        for genes, number in (("given", options.junctions), ("any", options.junctions // 5)):
            asked, _ = asked_with(genes, model, drawn(model, number, seed=1))
            values = [version.load(name, asked) for version in versions.values()]
            for turn in range(options.passes):
                for what in WHAT:
                    key = {"model": name, "genes": genes, "what": what, "pass": turn, "junctions": number}
                    key["largest_difference"] = largest_difference([own[what] for own in values])
                    for own, version in versions.items():
                        yield key | {"version": own, "cpu_us": f"{1e6 * version.seconds(what):.4g}"}


def enriched(options: argparse.Namespace, versions: dict[str, Version], folder: Path) -> Iterator[dict[str, Any]]:
    """The raw rows of whole commands."""
    import pyarrow.parquet as pq

    import hpcvdj

    path, number = folder / "drawn.parquet", options.enrich
    for name in options.enrich_models if number else ():
        drawn = hpcvdj.generate(name, number, seed=1, productive=True)
        pq.write_table(drawn.select(["sequence_id", "v_call", "j_call", "junction"]), path)
        # The first of each version compiles.
        for turn in range(-1, options.passes):
            for own, version in versions.items():
                target = folder / f"{own}.parquet"
                words = [sys.executable, "-m", "hpcvdj", "-q", "enrich", path, "-m", name, "-o", target, "--overwrite"]
                child = subprocess.Popen([*words, "--threads", "1"], env=version.environ, stdout=subprocess.DEVNULL)
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
                if child.returncode:
                    sys.exit(f"{own}: hpcvdj enrich ended with {child.returncode}")
                key = {"model": name, "genes": "given", "what": "enrich", "pass": turn, "junctions": number}
                if turn >= 0:
                    seconds = usage.ru_utime + usage.ru_stime
                    yield key | {"version": own, "cpu_us": f"{1e6 * seconds / number:.4g}"}


def summary(rows: list[dict[str, Any]]) -> None:
    """Print medians of the passes, and of the ratios of each pass."""
    times: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        times.setdefault(tuple(row[name] for name in FIELDS[:4]), []).append(float(row["cpu_us"]))
    for (model, genes, what, version), own in times.items():
        words = f"{model}, {genes}, {what}, {version}: {statistics.median(own):.4g} us"
        for label, other in ((WHAT[0], (model, genes, WHAT[0], version)), ("before", (model, genes, what, "before"))):
            if other in times and other != (model, genes, what, version):
                ratios = [a / b for a, b in zip(own, times[other], strict=True)]
                words += f"; {statistics.median(ratios):.3g} times {label} ({min(ratios):.3g} to {max(ratios):.3g})"
        print(words)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", metavar="CSV", type=Path, default=Path(os.devnull), help="file of raw rows")
    parser.add_argument("--models", nargs="*", default=["mouse_trb", "human_trb", "human_tra", "human_igh"])
    parser.add_argument("--junctions", type=int, default=1000, help="of each model; a fifth of them with any genes")
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="a checkout of another version")
    parser.add_argument("--enrich", metavar="N", type=int, default=0, help="also `hpcvdj enrich` of N junctions")
    parser.add_argument("--enrich-models", nargs="*", default=["human_trb"])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return
    root = Path(__file__).resolve().parents[1]
    sys.path.insert(0, str(root))
    folders = {"before": options.before} if options.before else {}
    versions = {own: Version(folder.resolve()) for own, folder in (folders | {"this": root}).items()}
    with open(options.output, "w", newline="") as stream, tempfile.TemporaryDirectory() as folder:
        writer, rows = csv.DictWriter(stream, FIELDS, lineterminator="\n"), []
        writer.writeheader()
        for row in chain(measured(options, versions), enriched(options, versions, Path(folder))):
            writer.writerow(row)
            stream.flush()
            rows.append(row)
    summary(rows)


if __name__ == "__main__":
    main()
