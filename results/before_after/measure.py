"""Two versions of hpcvdj side by side: the same commands in turn, version A then version B, on one machine.

python results/before_after/measure.py --before PYTHON_A:FOLDER_A --after PYTHON_B:FOLDER_B --runs 5 -o raw.csv CASE...

PYTHON is the interpreter of a virtual environment, FOLDER the clone that it has installed.  Each row has the wall time
and the CPU time (user + system, all processes) of a command, the seconds of its kernel by its own clock, and the bytes
of what it wrote.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GERMLINE = "inputs/germline/mouse_trb_paper.tsv"
HUMAN = "inputs/germline/human_trb.tsv"


def cases(work: Path) -> dict[str, list[str]]:
    """The arguments of each case; OUT is the output."""
    motifs = ["motifs", "compare", str(work / "random.fasta"), "-o", "OUT", "-d", "2", "--score", "cosine"]
    motifs += ["--min-score", "0.5", "--backend", "cpu"]
    return {
        "example": ["count", "inputs/mouse_trb/repertoire.tsv.gz", "-g", GERMLINE, "-o", "OUT"],
        "rows_1e7": ["count", str(work / "mouse.parquet"), "-g", GERMLINE, "-o", "OUT"],
        "rows_1e7_slices": [
            "count",
            str(work / "mouse.parquet"),
            "-g",
            GERMLINE,
            "-o",
            "OUT",
            "--batch-rows",
            "2000000",
        ],
        "human_all": ["count", str(work / "human.parquet"), "-g", HUMAN, "-o", "OUT", "--max-n", "all"],
        "motifs_8": [*motifs, "-k", "8"],
        "motifs_12": [*motifs, "-k", "12"],
        "motifs_20": [*motifs, "-k", "20"],
    }


def inputs(work: Path, python: str, folder: str) -> None:
    """Make what the commands read."""
    work.mkdir(parents=True, exist_ok=True)
    for name, germline, rows, lengths in (
        ("mouse", GERMLINE, 10_000_000, "0-10"), ("human", HUMAN, 2_000_000, "0-24"),
    ):  # fmt: skip
        if not (work / f"{name}.parquet").exists():
            words = ["simulate", "-g", germline, "-n", str(rows), "--seed", "1", "--n-lengths", lengths]
            run(python, folder, [*words, "-o", str(work / f"{name}.parquet")])
    if not (work / "random.fasta").exists():
        import random

        chance = random.Random(1)
        texts = ("".join(chance.choices("ACGT", k=500)) for _ in range(9184))
        (work / "random.fasta").write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(texts)))


def run(python: str, folder: str, words: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, "-m", "hpcvdj", "-q", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def kernel_seconds(python: str, path: Path) -> float:
    """Of a result of `count`: the sum over units; 0 for other files."""
    code = (
        "import sys, h5py\nwith h5py.File(sys.argv[1]) as f:\n"
        "    print(f['timings/kernel_seconds'][:].sum() if 'timings/kernel_seconds' in f else 0.0)"
    )
    return float(subprocess.run([python, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout)


def size(path: Path) -> int:
    """Bytes of a result and its parts."""
    files = [path, *path.with_name(path.name + ".parts").glob("*")]
    return sum(file.stat().st_size for file in files)


def main() -> None:
    """Measure the cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "hpcvdj-before-after")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    versions = {name: getattr(options, name).split(":") for name in ("before", "after")}
    inputs(options.work, *versions["after"])
    known = cases(options.work)
    new = not options.output.exists()
    with open(options.output, "a", newline="") as stream:
        writer = csv.writer(stream)
        if new:
            writer.writerow(["case", "version", "run", "wall", "cpu", "kernel", "bytes"])
        for case in options.cases or known:
            for number in range(-1, options.runs):  # the first pair warms up
                for version, (python, folder) in versions.items():
                    out = options.work / f"{version}.h5"
                    words = [str(out) if word == "OUT" else word for word in known[case]]
                    wall, cpu = run(python, folder, words)
                    kernel, written = kernel_seconds(python, out), size(out)
                    out.unlink()
                    shutil.rmtree(out.with_name(out.name + ".parts"), ignore_errors=True)
                    if number >= 0:
                        writer.writerow([case, version, number, f"{wall:.3f}", f"{cpu:.3f}", f"{kernel:.4f}", written])
                        stream.flush()
                    print(case, version, number, f"{wall:.2f} s", f"{cpu:.2f} s CPU", f"{written:,} bytes", flush=True)


if __name__ == "__main__":
    os.environ.pop("NUMBA_NUM_THREADS", None)
    sys.exit(main())
