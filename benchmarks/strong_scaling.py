"""How much faster are whole commands on 2, 4, … GPUs of one host than on 1, and do they find the same?

python benchmarks/strong_scaling.py --output results/strong_scaling/raw.csv

A row for each command and number of GPUs, with its wall seconds, the stages that it prints, and the SHA-256 of what it
found, which must be the same for all numbers of GPUs.  One rank on each GPU; the step `rows`, which writes folders of
Parquet, has `--ranks` in all, since reading and writing fill the cores.  `log.txt`, beside the rows, has what the
commands printed.  Exit code 1 if anything failed or differs.  `hpcvdj study scaling` and `hpcvdj study throughput`
measure the kernels of pathways.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from _common import HPCVDJ, record, run

from hpcvdj.recombination.alphabet import BASES
from hpcvdj.storage.folders import folder_digest
from hpcvdj.studies.motifs import SequenceSource

MODEL = "human_trb_m15"
STEPS = ["pgen", "infer", "motifs", "rows"]
FAILED = "failed"


def gpus() -> int:
    """How many GPUs this host has."""
    return len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())


def digest(path: Path) -> str:
    """SHA-256 of what a file says: of a result its values, without when and where they were computed."""
    found = hashlib.sha256()
    if path.is_dir():
        return folder_digest(path)[:16]
    if path.suffix != ".h5":
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    with h5py.File(path) as file:
        for name in ("counters", "pgen", "sequences/row", "edges/row", "edges/column", "edges/counters"):
            for first in range(0, len(file[name]), 1 << 22) if name in file else ():
                found.update(file[name][first : first + (1 << 22)].tobytes())
    return found.hexdigest()[:16]


def launched(options: argparse.Namespace, step: str, number: int, ranks: int, words: list[Any], target: Path) -> Any:
    """A raw row of a command that writes `target`."""
    visible = ",".join(map(str, range(number)))
    command = [*options.launcher.split(), ranks, *HPCVDJ, *words, "-o", target, "--overwrite"]
    done = run(command, check=False, CUDA_VISIBLE_DEVICES=visible)
    with open(options.output.with_name("log.txt"), "a") as log:
        log.write(f"$ {number} GPU(s), {ranks} rank(s): hpcvdj {' '.join(map(str, words))}\n{done.stdout}\n")
    line = re.search(r"^time +(.*?)(?: \(.*)?$", done.stdout, re.MULTILINE)
    stages = line.group(1) if line else ""
    if step == "infer" and (target / "iterations.tsv").exists():
        with open(target / "iterations.tsv", newline="") as stream:
            each = [float(row["seconds"]) for row in csv.DictReader(stream, delimiter="\t")]
        stages = f"iteration {statistics.median(each):.4f} s, median of {len(each)}"
        target = target / "model_marginals.txt"
    found = digest(target) if target.exists() and done.status == 0 else FAILED
    return {
        "step": step, "gpus": number, "ranks": ranks, "wall_seconds": done.wall, "peak_mb": done.peak_rss / 1e6,
        "stages": stages, "found": found,
    }  # fmt: skip


def tables(options: argparse.Namespace, work: Path) -> tuple[Path, Path, Path]:
    """What the commands read, made once: drawn junctions, sequences, copies of the junctions."""
    junctions, sequences, copies = (work / name for name in ("drawn.parquet", "sequences.fasta", "copies"))
    run([*HPCVDJ, "generate", "-m", MODEL, "-n", options.rows, "--productive", "--overwrite", "-o", junctions])
    if "motifs" in options.steps:
        codes = SequenceSource(None, options.sequences).read()[0].codes.reshape(options.sequences, -1)
        texts = np.frombuffer(BASES.encode(), np.uint8)[codes].view(f"S{codes.shape[1]}").ravel().tolist()
        sequences.write_bytes(b"".join(b">s%d\n%b\n" % each for each in enumerate(texts)))
    if "rows" in options.steps:
        files = min(options.copies, 40)
        run([
            sys.executable, "benchmarks/copies.py", junctions, copies, "--copies", options.copies, "--files", files
        ])  # fmt: skip
    return junctions, sequences, copies


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows, the largest number of GPUs first, so that a run that is cut off has it."""
    counts = sorted(options.gpus) if options.gpus != [0] else [1 << k for k in range(gpus().bit_length())]
    to, model = ["--backend", options.backend], ["-m", MODEL]
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        work = Path(name)
        junctions, sequences, copies = tables(options, work)
        every = ["--rows", "all", "--max-rows", str(sys.maxsize)]
        once = [*model, *every, "--hold-out", "0", "--iterations", "10", "--tolerance", "0", *to]
        commands = {
            "pgen nt": (["pgen", junctions, *model, "--sequence", "nt", *to], work / "pgen.h5"),
            "pgen aa": (["pgen", junctions, *model, "--sequence", "aa", *to], work / "pgen.h5"),
            "infer": (["infer", junctions, *once], work / "inferred"),
            "motifs": (["motifs", "compare", sequences, "-k", 16, "-d", 2, "--min-score", 0.5, *to], work / "edges.h5"),
        }
        own = {"pgen": [*model, "--sequence", "nt"], "count": ["-g", "human_trb"]}
        for number in reversed(counts):
            for repeat in range(options.repeats):
                for step, (words, target) in commands.items():
                    if step.split()[0] in options.steps:
                        yield launched(options, step, number, number, words, target) | {"repeat": repeat}
                for step in ("pgen", "count") if "rows" in options.steps else ():
                    words = [step, copies, "--together", *own[step], *to]
                    row = launched(options, f"{step} rows", number, options.ranks, words, work / f"{step}.dataset")
                    yield row | {"repeat": repeat}


if __name__ == "__main__":
    rows = record(
        __doc__, measured,
        work=(tempfile.gettempdir(), "folder for tables and results"),
        steps=(STEPS, "commands to measure"),
        gpus=([0], "numbers of GPUs; 0: 1, 2, 4, … up to those of the host"),
        launcher=("mpiexec -n", "words before the number of ranks"),
        backend=("cuda", "cuda or cpu"),
        ranks=(32, "of the step rows"),
        repeats=(2, "of the other steps"),
        rows=(10**7, "rows of the steps pgen and infer"),
        copies=(100, "copies of these in the step rows"),
        sequences=(100_000, "of the step motifs"),
    )  # fmt: skip
    found = {step: {row["found"] for row in rows if row["step"] == step} for step in {row["step"] for row in rows}}
    wrong = [step for step, values in found.items() if len(values) > 1 or FAILED in values]
    print("not the same on all numbers of GPUs, or failed:" if wrong else "the same on all numbers of GPUs", *wrong)
    sys.exit(bool(wrong))
