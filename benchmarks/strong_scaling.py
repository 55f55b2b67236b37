"""Everything that runs on several GPUs, on 1, 2, 4, … of one host: one launch measures all of it.

python benchmarks/strong_scaling.py --output results/strong_scaling

Writes `bitwise/` and `direct/` (the studies `hpcvdj scaling` and `hpcvdj study throughput`, with pages of their own)
and `raw.csv`: a row for each other command and number of GPUs, with its wall seconds, the stages that it prints, and
the SHA-256 of what it found, which must be the same for all numbers of GPUs.  One rank on each GPU; the step `rows` has
`--ranks` in all, since reading and writing fill the cores.  Exit code 1 if anything failed or differs.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from _common import GERMLINE, ROOT, write_rates

from hpcvdj.recombination.alphabet import BASES
from hpcvdj.studies.motifs import Source

MODEL = "human_trb_m15"
FIELDS = ("hardware", "step", "what", "gpus", "ranks", "repeat", "wall_seconds", "stages", "found")
STEPS = ("bitwise", "direct", "pgen", "infer", "motifs", "rows")
HPCVDJ = [sys.executable, "-m", "hpcvdj"]


def gpus() -> list[str]:
    """The names of this host's GPUs."""
    words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def digest(path: Path) -> str:
    """SHA-256 of what a file says: of a result its values, without when and where they were computed."""
    found = hashlib.sha256()
    if path.suffix != ".h5":
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    with h5py.File(path) as file:
        for name in ("counters", "pgen", "sequences/row", "edges/row", "edges/column", "edges/counters"):
            for first in range(0, len(file[name]), 1 << 22) if name in file else ():
                found.update(file[name][first : first + (1 << 22)].tobytes())
    return found.hexdigest()[:16]


class Launches:
    """Commands with some GPUs and ranks.

    launcher  words before the number of ranks, such as mpiexec -n
    """

    def __init__(self, folder: Path, launcher: list[str], hardware: str) -> None:
        self.folder, self.launcher, self.hardware = folder, launcher, hardware
        self.failed = False

    def __call__(self, number: int, ranks: int, words: list[str]) -> tuple[float, str]:
        """Wall seconds and what was printed."""
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(number)))}
        started = time.perf_counter()
        done = subprocess.run(
            [*self.launcher, str(ranks), *HPCVDJ, *words], env=os.environ | visible, cwd=ROOT, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        with open(self.folder / "log.txt", "a") as log:
            log.write(f"$ {number} GPU(s), {ranks} rank(s): hpcvdj {' '.join(words)}\n{done.stdout}\n")
        self.failed |= done.returncode != 0
        return seconds, done.stdout

    def row(self, step: str, what: str, number: int, ranks: int, repeat: int, words: list[str], target: Path) -> Any:
        """A raw row of a command that writes `target`."""
        seconds, said = self(number, ranks, [*words, "-o", str(target), "--overwrite"])
        line = re.search(r"^time +(.*?)(?: \(.*)?$", said, re.MULTILINE)
        stages = line.group(1) if line else ""
        if step == "infer" and (target / "iterations.tsv").exists():
            with open(target / "iterations.tsv", newline="") as stream:
                each = [float(row["seconds"]) for row in csv.DictReader(stream, delimiter="\t")]
            stages = f"iteration {statistics.median(each):.4f} s, median of {len(each)}"
            target = target / "model_marginals.txt"
        found = digest(target) if target.exists() else "failed"
        self.failed |= found == "failed"
        return {
            "hardware": self.hardware, "step": step, "what": what, "gpus": number, "ranks": ranks, "repeat": repeat,
            "wall_seconds": f"{seconds:.2f}", "stages": stages, "found": found,
        }  # fmt: skip


def tables(options: argparse.Namespace, work: Path) -> dict[str, Path]:
    """What the commands read, made once."""
    made = {name: work / name for name in ("drawn.parquet", "sequences.fasta", "copies")}
    if {"pgen", "infer", "rows"} & set(options.steps):
        words = ["generate", "-m", MODEL, "-n", str(options.rows), "--productive", "--overwrite"]
        subprocess.run([*HPCVDJ, *words, "-o", str(made["drawn.parquet"])], check=True, stdout=subprocess.DEVNULL)
    if "motifs" in options.steps:
        codes = Source(None, options.sequences).read()[0].codes.reshape(options.sequences, -1)
        texts = np.frombuffer(BASES.encode(), np.uint8)[codes].view(f"S{codes.shape[1]}").ravel().tolist()
        made["sequences.fasta"].write_bytes(b"".join(b">s%d\n%b\n" % each for each in enumerate(texts)))
    if "rows" in options.steps:
        words = [str(ROOT / "benchmarks/copies.py"), str(made["drawn.parquet"]), str(made["copies"])]
        words += ["--copies", str(options.copies), "--files", str(min(options.copies, 40))]
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return made


def rows(options: argparse.Namespace, counts: list[int], run: Launches, work: Path) -> Iterator[dict[str, Any]]:
    """The raw rows, the largest number of GPUs first, so that a run that is cut off has it."""
    made = tables(options, work)
    for number in reversed(counts):
        for repeat in range(options.repeats):
            for sequence in ("nt", "aa") if "pgen" in options.steps else ():
                words = ["pgen", str(made["drawn.parquet"]), "-m", MODEL, "--sequence", sequence, "--backend", "cuda"]
                yield run.row("pgen", sequence, number, number, repeat, words, work / "pgen.h5")
            if "infer" in options.steps:
                words = ["infer", str(made["drawn.parquet"]), "-m", MODEL, "--rows", "all", "--hold-out", "0"]
                words += ["--iterations", "10", "--tolerance", "0", "--backend", "cuda"]
                yield run.row("infer", "10 iterations", number, number, repeat, words, work / "inferred")
            if "motifs" in options.steps:
                words = ["motifs", "compare", str(made["sequences.fasta"]), "-k", "16", "-d", "2", "--min-score", "0.5"]
                what = f"{options.sequences} sequences"
                yield run.row("motifs", what, number, number, repeat, [*words, "--backend", "cuda"], work / "edges.h5")
    if "rows" in options.steps:
        what = f"{options.rows * options.copies} rows"
        given = [str(made["copies"]), "--together", "--batch-rows", "2097152", "--backend", "cuda"]
        number = counts[-1]
        for step, words in (("count", ["count", "-g", "human_trb"]), ("pgen", ["pgen", "-m", MODEL])):
            words = [words[0], *given, *words[1:]]
            yield run.row(f"{step} from Parquet", what, number, options.ranks, 0, words, work / f"{step}.h5")


def studies(options: argparse.Namespace, counts: list[int], run: Launches) -> None:
    """`bitwise/` and `direct/`, with their pages."""
    folder = run.folder
    for number in reversed(counts):
        if "bitwise" in options.steps:
            words = ["scaling", "measure", "inputs/mouse_trb/repertoire.tsv.gz", "-g", str(GERMLINE)]
            words += ["--strict-binding", "--threads-per-block", "128", "--n-lengths", options.n_lengths]
            run(number, number, [*words, "-o", str(folder / "bitwise"), "--repeats", str(options.repeats)])
        if "direct" in options.steps:
            words = ["study", "throughput", "-g", str(GERMLINE), "-n", str(options.direct)]
            run(number, number, [*words, "-o", str(folder / "direct"), "--repeats", str(options.repeats)])
    for name in {"bitwise", "direct"} & set(options.steps):
        run(1, 1, ["scaling" if name == "bitwise" else "study", "render", str(folder / name)])


def main() -> int:
    """Measure, and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder of the raw rows")
    parser.add_argument("--work", type=Path, default=Path("/tmp/strong_scaling"), help="folder for tables and results")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--gpus", nargs="+", type=int, help="by default 1, 2, 4, … up to those of the host")
    parser.add_argument("--launcher", default="mpiexec -n", help="words before the number of ranks")
    parser.add_argument("--ranks", type=int, default=32, help="of the step rows")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--n-lengths", default="5-8", help="of the step bitwise")
    parser.add_argument("--direct", type=int, default=10**9, help="junctions of the step direct")
    parser.add_argument("--rows", type=int, default=10**7, help="rows of the steps pgen and infer")
    parser.add_argument("--copies", type=int, default=100, help="copies of these in the step rows")
    parser.add_argument("--sequences", type=int, default=100_000, help="of the step motifs")
    options = parser.parse_args()
    found = gpus()
    counts = sorted(options.gpus or [1 << k for k in range(len(found).bit_length()) if 1 << k <= len(found)])
    for folder in (options.output, options.work):
        folder.mkdir(parents=True, exist_ok=True)
    run = Launches(options.output.resolve(), options.launcher.split(), found[0])
    studies(options, counts, run)
    written = write_rates(options.output / "raw.csv", FIELDS, rows(options, counts, run, options.work))
    same: dict[tuple[str, str], set[str]] = {}
    for row in written:
        same.setdefault((row["step"], row["what"]), set()).add(row["found"])
    different = [" ".join(name) for name, values in same.items() if len(values) > 1]
    print("not the same on all numbers of GPUs:" if different else "the same on all numbers of GPUs", *different)
    return 1 if different or run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
