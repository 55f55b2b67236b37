"""How long do whole commands take, in how much memory, on more ranks or GPUs, and do all of these write the same?

python benchmarks/commands.py --steps enrich --rows 100000 1000000 10000000 --output results/enrich/cpu.csv
python benchmarks/commands.py --steps sharing associate --individuals 100 --rows 200000 --ranks 1 2 --output ranks.csv
python benchmarks/commands.py --steps "pgen nt" infer motifs --rows 10000000 --backend cuda --ranks 0 --gpus 1 2 4 ...

`sharing`, `contamination` and `associate` compare individuals, of which every second one is a case; `motifs` compares
random sequences; `pgen copies` and `count copies` read many files; all others read, or draw, one table.  All junctions
are drawn from a model, so nothing is selected: kappa of `enrich` should be 1 and nothing a hit.

A row for each command, size, ending of what it writes, number of GPUs and of ranks: wall seconds, the processor seconds
of all ranks and of the one that took most, the memory of the largest rank, the stages that the command prints, and the
SHA-256 of what it found, which must be the same for all numbers of GPUs and ranks.  Exit code 1 if it is not, or if a
command failed.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from _common import HPCVDJ, read_rows, record, run

from hpcvdj.recombination.alphabet import BASES
from hpcvdj.storage.folders import folder_digest
from hpcvdj.storage.inputs import file_digest
from hpcvdj.studies.motifs import SequenceSource

ENDINGS = {
    "generate": ".parquet", "convert": ".parquet", "count": ".h5", "pgen": ".h5", "pgen nt": ".h5", "pgen aa": ".h5",
    "enrich": ".tsv", "report": ".html", "infer": "", "motifs": ".h5", "sharing": ".tsv", "contamination": ".tsv",
    "associate": ".tsv", "pgen copies": ".dataset", "count copies": ".dataset",
}  # fmt: skip
"""The steps, and what each writes."""

WRITE_TABLES = "generate", "convert", "pgen", "pgen nt", "pgen aa"
COMPARE_INDIVIDUALS = "sharing", "contamination", "associate"
FACTS = "clonotypes", "tested", "kappa", "hits"
FAILED = "failed"

PROGRAM = """
import atexit, os, resource, sys
folder = sys.argv.pop(1)
def note():
    used = resource.getrusage(resource.RUSAGE_SELF)
    open(os.path.join(folder, str(os.getpid())), "w").write(str(used.ru_utime + used.ru_stime))
atexit.register(note)
from hpcvdj.__main__ import main
sys.exit(main())
"""
"""A rank that notes its processor seconds when it ends."""


class Work:
    """The words of commands, and what they read, which is made when it is asked for.

    rows  of a table
    """

    def __init__(self, folder: Path, options: argparse.Namespace, rows: int) -> None:
        self.folder, self.options, self.rows = folder, options, rows
        self.model, self.backend = ["-m", options.model], ["--backend", options.backend]

    def drawing(self, seed: int) -> list[Any]:
        """The command that draws a table."""
        frame = [] if self.options.any_frame else ["--productive"]
        return ["generate", *self.model, "-n", self.rows, "--seed", seed, *frame, *self.backend]

    @cached_property
    def table(self) -> Path:
        path = self.folder / "drawn.parquet"
        run([*HPCVDJ, *self.drawing(self.options.seed), "-o", path])
        return path

    @cached_property
    def tables(self) -> Path:
        """The tables of the individuals, and the metadata beside their folder."""
        tables, names = self.folder / "tables", [f"d{k:04}" for k in range(self.options.individuals)]
        tables.mkdir()

        def draw(k: int) -> None:
            path = tables / f"{names[k]}.{self.options.format}"
            run([*HPCVDJ, *self.drawing(self.options.seed + k), "--threads", 1, "-o", path])

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(draw, range(len(names))))
        lines = [f"{name}\t{'yes' if k % 2 else 'no'}" for k, name in enumerate(names)]
        (self.folder / "metadata.tsv").write_text("\n".join(["individual\till", *lines]) + "\n")
        return tables

    @cached_property
    def copies(self) -> Path:
        """Copies of the table in some files."""
        folder, files = self.folder / "copies", min(self.options.copies, 40)
        copies = ["--copies", self.options.copies, "--files", files]
        run([sys.executable, "benchmarks/copies.py", self.table, folder, *copies])
        return folder

    @cached_property
    def probabilities(self) -> Path:
        """The result that the report shows."""
        path = self.folder / "probabilities.h5"
        run([*HPCVDJ, *self.words("pgen"), "-o", path])
        return path

    @cached_property
    def sequences(self) -> Path:
        path, number = self.folder / "sequences.fasta", self.options.sequences
        codes = SequenceSource(None, number).read()[0].codes.reshape(number, -1)
        texts = np.frombuffer(BASES.encode(), np.uint8)[codes].view(f"S{codes.shape[1]}").ravel().tolist()
        path.write_bytes(b"".join(b">s%d\n%b\n" % each for each in enumerate(texts)))
        return path

    def words(self, step: str) -> list[Any]:
        """The command of a step, without what it writes."""
        command, _, what = step.partition(" ")
        match step:
            case "generate":
                return self.drawing(self.options.seed)
            case "convert":
                return [command, self.table]
            case "report":
                return [command, self.probabilities]
            case "motifs":
                return ["motifs", "compare", self.sequences, "-k", 16, "-d", 2, "--min-score", 0.5, *self.backend]
            case "infer":
                rows = ["--rows", "all", "--max-rows", sys.maxsize, "--hold-out", 0, "--iterations", 10]
                return [command, self.table, *self.model, *rows, "--tolerance", 0, *self.backend]
            case "count":
                return [command, self.table, "-g", self.options.germline, *self.backend]
            case "count copies":
                return [command, self.copies, "--together", "-g", self.options.germline, *self.backend]
            case "pgen copies":
                return [command, self.copies, "--together", *self.model, "--sequence", "nt", *self.backend]
            case "pgen nt" | "pgen aa":
                return [command, self.table, *self.model, "--sequence", what, *self.backend]
            case "associate":
                metadata = ["--metadata", self.folder / "metadata.tsv", "--case", "ill=yes"]
                return [command, self.tables, *self.model, *metadata, *self.backend]
        return [command, self.tables if step in COMPARE_INDIVIDUALS else self.table, *self.model, *self.backend]

    def rows_of(self, step: str) -> int:
        """How many rows a command reads or draws in all."""
        if step == "motifs":
            return self.options.sequences
        own = self.options
        return self.rows * (own.individuals if step in COMPARE_INDIVIDUALS else own.copies if "copies" in step else 1)


def digest(path: Path) -> str:
    """SHA-256 of what was written: of a result its values, without when they were computed; of a page, nothing."""
    if path.suffix == ".html":
        return ""
    if (path / "model_marginals.txt").exists():
        path = path / "model_marginals.txt"
    if path.suffix != ".h5":
        return (folder_digest(path) if path.is_dir() else file_digest(path))[:16]
    found = hashlib.sha256()
    with h5py.File(path) as file:
        for name in ("counters", "pgen", "sequences/row", "edges/row", "edges/column", "edges/counters"):
            for first in range(0, len(file[name]), 1 << 22) if name in file else ():
                found.update(file[name][first : first + (1 << 22)].tobytes())
    return found.hexdigest()[:16]


def stages(stdout: str, target: Path) -> str:
    """What the command says of its time; of `infer`, the median of its iterations."""
    if (target / "iterations.tsv").exists():
        each = [float(row["seconds"]) for row in read_rows(target / "iterations.tsv")]
        return f"iteration {statistics.median(each):.4f} s, median of {len(each)}"
    line = re.search(r"^time +(.*)$", stdout, re.MULTILINE)
    return line.group(1) if line else ""


def launched(work: Work, step: str, ending: str, ranks: int, gpus: int) -> dict[str, Any]:
    """A raw row of a command; what it wrote is removed."""
    options, target = work.options, work.folder / f"o{ending}"
    threads = ["--threads", options.rank_threads] if options.rank_threads else []
    words = [*work.words(step), *threads, "-o", target]
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))} if gpus else {}
    launcher = [*options.launcher.split(), ranks] if ranks > 1 else []
    with tempfile.TemporaryDirectory(dir=work.folder) as noted:
        done = run([*launcher, sys.executable, "-c", PROGRAM, noted, *words], check=False, **visible)
        seconds = [float(path.read_text()) for path in Path(noted).iterdir()]
    row = {
        "command": step, "ending": ending, "model": options.model, "rows": work.rows_of(step), "gpus": gpus,
        "ranks": ranks, "threads": options.rank_threads, **done.used, "most_cpu_seconds": max(seconds, default=0.0),
        "found": FAILED,
    }  # fmt: skip
    if done.status == 0:
        row |= {"found": digest(target), "stages": stages(done.stdout, target)}
        row["bytes"] = sum(path.stat().st_size for path in (target, *target.rglob("*")) if path.is_file())
    if step == "enrich" and done.status == 0:
        facts = json.loads(target.with_name(target.name + ".json").read_text())
        row |= {fact: facts[fact] for fact in FACTS}
    for path in work.folder.glob(f"{target.name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return row


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    for rows in options.rows:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            work = Work(Path(name), options, rows)
            for step, gpus, ranks in product(options.steps, options.gpus, options.ranks):
                endings = options.endings if step in WRITE_TABLES else []
                for ending, repeat in product(endings or [ENDINGS[step]], range(options.repeats)):
                    yield launched(work, step, ending, ranks or gpus, gpus) | {"repeat": repeat}


if __name__ == "__main__":
    rows = record(
        __doc__, measured,
        steps=(["generate", "count", "pgen", "enrich", "report"], f"what is measured, of {', '.join(ENDINGS)}"),
        rows=([100_000, 1_000_000], "junctions of a table, the smallest number first"),
        individuals=(100, "tables that are compared"),
        copies=(100, "copies of the table in the steps with copies"),
        sequences=(100_000, "of the step motifs"),
        ranks=([1], "numbers of ranks; 0: one for each GPU"),
        gpus=([0], "numbers of GPUs that the ranks see; 0: all"),
        rank_threads=(0, "threads of each rank; 0: all cores"),
        endings=([], f"of what {', '.join(WRITE_TABLES)} write, in place of the usual ones"),
        repeats=(1, "of each"),
        format=("tsv", "of the individuals' tables: tsv, tsv.gz, tsv.zst or parquet"),
        any_frame=(False, "draw all junctions, not only productive ones"),
        model=("human_trb_m15", "a recombination model"),
        germline=("human_trb", "germline table of count"),
        backend=("cpu", "cpu or cuda"),
        launcher=("mpiexec -n", "words before the number of ranks"),
        seed=(1, "of the first table"),
        folder=(None, "where tables are drawn, of some GB; by default the system's temporary folder"),
    )  # fmt: skip
    found: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in rows:
        found[row["command"], row["ending"], row["rows"]].add(row["found"])
    wrong = [kind for kind, values in found.items() if len(values) > 1 or FAILED in values]
    sys.exit(f"not the same, or failed: {wrong}" if wrong else 0)
