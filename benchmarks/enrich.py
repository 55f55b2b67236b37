"""Wall and processor time, and memory, of `hpcvdj enrich` on junctions that a model draws.

python benchmarks/enrich.py --output results/enrich/raw.csv

Draws productive junctions from a model, writes them as Parquet, and runs the whole command on them in a process of its
own.  Nothing was selected, so kappa should be 1 and nothing a hit; both are in the raw rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import hpcvdj

FIELDS = (
    "hardware", "program", "backend", "threads", "model", "rows", "clonotypes", "tested", "kappa", "hits", "seconds",
    "cpu_seconds", "peak_mb",
)  # fmt: skip


def measured(words: list[str]) -> tuple[float, float, float]:
    """Wall and processor seconds of a command, and the largest resident memory of any so far in MB."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu, after.ru_maxrss / 1024


def rows(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """The raw rows, the smallest table first, so that the memory is that of the last one."""
    for number in sorted(map(int, options.rows)):
        path, target = folder / "drawn.parquet", folder / f"enriched_{number}.parquet"
        drawn = hpcvdj.generate(options.model, number, seed=1, productive=True)
        pq.write_table(drawn.select(["sequence_id", "v_call", "j_call", "junction"]), path)
        words = [sys.executable, "-m", "hpcvdj", "-q", "enrich", str(path), "-m", options.model, "-o", str(target)]
        words += ["--backend", options.backend, "--threads", str(options.threads)]
        seconds, cpu, peak = measured(words)
        facts = json.loads(target.with_name(target.name + ".json").read_text())
        yield {
            "program": f"hpcvdj {hpcvdj.__version__}", "backend": options.backend, "threads": options.threads,
            "model": options.model, "rows": number, **{name: facts[name] for name in ("clonotypes", "tested", "hits")},
            "kappa": f"{facts['kappa']:.4f}", "seconds": f"{seconds:.2f}", "cpu_seconds": f"{cpu:.2f}",
            "peak_mb": f"{peak:.0f}",
        }  # fmt: skip


def main() -> None:
    """Measure and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="raw.csv to write")
    parser.add_argument("--model", default="human_trb_m15")
    parser.add_argument("--rows", nargs="+", default=["100000", "1000000"])
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--hardware", default="CPU cores", help="its name, for the raw rows")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open(options.output, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        for row in rows(options, Path(folder)):
            writer.writerow({"hardware": options.hardware} | row)
            stream.flush()


if __name__ == "__main__":
    main()
