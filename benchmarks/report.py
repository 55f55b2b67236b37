"""Wall and processor time, memory, and page size of `hpcvdj report` by the number of junctions.

python benchmarks/report.py --output results/report/raw.csv

Draws productive junctions from a model and computes their probabilities; then `hpcvdj report` runs on the result file,
in a process of its own.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

from _common import HPCVDJ, run, say

FIELDS = ("program", "model", "junctions", "figures", "seconds", "cpu_seconds", "peak_mb", "page_bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[10_000, 100_000, 1_000_000], help="junctions of a page")
    parser.add_argument("--model", default="human_trb_m15")
    parser.add_argument("--output", type=Path, required=True, help="raw rows, CSV")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, open(options.output, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        folder = Path(name)
        for rows in options.rows:
            table, result, page = (folder / f"{rows}{suffix}" for suffix in (".parquet", ".h5", ".html"))
            run([*HPCVDJ, "-q", "generate", "-m", options.model, "-n", rows, "--productive", "-o", table])
            run([*HPCVDJ, "-q", "pgen", table, "-m", options.model, "-o", result])
            done = run([*HPCVDJ, "report", result, "-o", page])
            figures = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("figures"))
            row = {
                "program": run([*HPCVDJ, "--version"]).stdout.strip(), "model": options.model, "junctions": rows,
                "figures": figures, "seconds": f"{done.wall:.2f}", "cpu_seconds": f"{done.cpu:.2f}",
                "peak_mb": f"{done.peak_rss / 1e6:.0f}", "page_bytes": page.stat().st_size,
            }  # fmt: skip
            writer.writerow(row)
            stream.flush()
            say(str(row))


if __name__ == "__main__":
    main()
