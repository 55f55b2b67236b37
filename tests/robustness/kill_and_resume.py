"""Kill runs at random moments, resume them, and compare the counters with those of a run that was not killed.

python tests/robustness/kill_and_resume.py --runs 50 --seed 1 -o results/robustness/killed/count.csv
python tests/robustness/kill_and_resume.py --of slices --runs 50 --seed 1 -o results/robustness/killed/slices.csv
python tests/robustness/kill_and_resume.py --of together --runs 50 --seed 1 -o results/robustness/killed/together.csv
python tests/robustness/kill_and_resume.py --of tables --runs 50 --seed 1 -o results/robustness/killed/tables.csv
python tests/robustness/kill_and_resume.py --of motifs --runs 50 --seed 1 -o results/robustness/killed/motifs.csv
python tests/robustness/kill_and_resume.py --of infer --runs 30 --seed 1 -o results/robustness/killed/infer.csv

A case draws the method, the ranks, what SIGKILL ends (the whole job, one rank, or root) and when; the resumed run,
with ranks of its own, is killed again half of the time.  After every kill the result must be absent, or complete and
right.  After the last --resume it must be right, and nothing else may be left.  Needs Linux, mpiexec and no GPU.

Cases of slices (--batch-rows) are compared with the table counted as a whole; cases of several tables (--together),
half of them in slices, with the tables counted together as a whole.  Cases of tables, which 1, 2, 3 or 7 ranks write,
are compared by their bytes; some kills wait for a slice.  Cases of motifs also draw what is kept (all
pairs, or edges), a method for each start, whether kills wait for a tile to be done, and root while it stores.  Cases
of infer are compared by the bytes of the model's files; some kills wait for an iteration to be saved.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from hpcvdj.errors import choices
from hpcvdj.inference.folder import ERRORS
from hpcvdj.kernels.kmers.methods import KmerMethod
from hpcvdj.recombination.igor import FILES
from hpcvdj.results.reader import Result

ROOT = Path(__file__).parents[2]
GERMLINE = ROOT / "inputs" / "germline" / "mouse_trb_paper.tsv"
SMALL = ROOT / "inputs" / "mouse_trb" / "small.tsv"
MANY = 300_000
SLICE_ROWS = 20_000
MAX_N = {"direct": 40, "bitwise": 4, "baseline": 3}
VICTIMS = ("job", "rank", "root")
MOTIF_METHODS = tuple(choices(KmerMethod))
MOTIF_KINDS = {"dense": [], "edges": ["--top", "3", "--score", "cosine"]}
MOTIF_SEQUENCES, MOTIF_BASES = 600, 40
TOGETHER = ("together", "together in slices")
PGEN = ("pgen", "pgen in slices")
TABLES = {
    "count table": ("count", "many.parquet", "-g", str(GERMLINE), "--max-n", "40", "--backend", "cpu"),
    "pgen table": ("pgen", "many.parquet", "-m", "mouse_trb", "--sequence", "nt", "--force", "--backend", "cpu"),
    "generate": ("generate", "-m", "mouse_trb", "-n", "1500000", "--backend", "cpu"),
    "generate productive": ("generate", "-m", "mouse_trb", "-n", "300000", "--productive", "--backend", "cpu"),
    "convert": ("convert", "many.parquet"),
}
TABLE_ENDINGS = {"count table": ".tsv", "pgen table": ".parquet", "generate": ".parquet", "convert": ".tsv.gz"}
"""Of the cases of tables: the words, and how the names of outputs end; by default, `.tsv`."""
INFER = ["--start", "uniform", "--iterations", "25", "--tolerance", "0", "--hold-out", "0", "--bootstrap", "3"]
INFER_ROWS = 8000
KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "counts": {"counts": tuple(MAX_N)},
    "slices": {"slices": ("direct",)},
    "together": dict.fromkeys(TOGETHER, ("direct",)),
    "pgen": dict.fromkeys(PGEN, ("forward-sum",)),
    "tables": {name: (name,) for name in TABLES},
    "motifs": dict.fromkeys(MOTIF_KINDS, MOTIF_METHODS),
    "infer": {"infer": ("em",)},
}
"""By the runs that are killed: the kinds of cases, and the methods of each."""
TABLE_BOUNDS = (0, 1, 7_000, 7_000, 90_000, 91_000, 150_000, MANY)
"""Rows at which the tables of cases of `together` begin and end: one of a row, one without rows, larger ones."""

SAVED = ("search.state", "part-*", "tile-*")
"""What runs save."""

AFTER_SECONDS = 0.3
"""How long after what it waited for a kill comes, at most."""
MPIEXEC = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec") or "mpiexec"


@dataclass
class Case:
    """One case: what was drawn, and what was found."""

    number: int
    kind: str
    method: str
    ranks: int
    victim: str
    awaited: str = ""
    kills: int = 0
    after: str = ""
    saved: int = 0
    finished_before_kill: bool = False
    final_ranks: int = 0
    equal: bool = False
    debris: str = ""

    @property
    def output(self) -> str:
        """The name of the result."""
        return f"out{TABLE_ENDINGS.get(self.kind, '.tsv')}" if self.kind in TABLES else "out.h5"

    def some_ranks(self, chance: random.Random) -> int:
        """A number of ranks for a run."""
        return chance.choice((1, 2, 3, 7)) if self.kind in TABLES else chance.randint(1, 3)


def command(case: Case, output: Path, ranks: int, *, resume: bool) -> list[str]:
    """The command line of a run of `ranks` ranks."""
    launcher = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
    if case.kind in MOTIF_KINDS:
        options = ["--method", case.method, *MOTIF_KINDS[case.kind], *(["--resume"] if resume else [])]
        words = [str(output.parents[1] / "many.fasta"), "-o", str(output), "-k", "8", "-d", "1", "--strands", "both"]
        command = [sys.executable, "-m", "hpcvdj", "-q", "motifs", "compare", *words, *options, "--backend", "cpu"]
        return [*launcher, *command]
    if case.kind in TABLES:
        words = [str(output.parents[1] / word) if word == "many.parquet" else word for word in TABLES[case.kind]]
        resuming = ["--resume"] if resume else []
        # Only a table that has its facts beside it is known as complete.
        if resume and output.exists():
            resuming.append("--overwrite")
        return [*launcher, sys.executable, "-m", "hpcvdj", "-q", *words, "-o", str(output), *resuming]
    options = ["--backend", "cpu"]
    if case.kind == "infer":
        words = ["infer", str(output.parents[1] / "many.parquet"), "-m", "mouse_trb", "-o", str(output), *INFER]
        resuming = ["--resume"] if resume else []
        return [*launcher, sys.executable, "-m", "hpcvdj", "-q", *words, *options, *resuming]
    saving = ["--checkpoint-every", "0.1", *(["--resume"] if resume else [])]
    if case.kind.endswith("slices") and case.number >= 0:
        saving += ["--batch-rows", str(SLICE_ROWS)]
    work = output.parents[1]
    if case.kind in PGEN:
        files = [str(work / "many.parquet"), "-m", "mouse_trb", "-o", str(output)]
        return [*launcher, sys.executable, "-m", "hpcvdj", "-q", "pgen", *files, *options, *saving]
    options += ["--method", case.method, "--max-n", str(MAX_N[case.method])]
    junctions = work / "many.parquet" if case.method == "direct" else SMALL
    if case.kind.startswith("together"):
        junctions = work / "tables"
        options.append("--together")
    files = [str(junctions), "-g", str(GERMLINE), "-o", str(output)]
    return [*launcher, sys.executable, "-m", "hpcvdj", "-q", "count", *files, *options, *saving]


def descendants(pid: int) -> list[int]:
    """Processes under `pid`, the eldest first."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields_of = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields_of[1]), []).append(int(folder.name))
    found, queue = [], [pid]
    while queue:
        children = sorted(parents.get(queue.pop(0), []))
        found += children
        queue += children
    return found


def ranks_of(pid: int) -> dict[int, int]:
    """Rank → process, by the environment that mpiexec gives each; the process itself without mpiexec."""
    found = {}
    for child in [pid, *descendants(pid)]:
        try:
            environment = (Path("/proc") / str(child) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        rank = [part.partition(b"=")[2] for part in environment if part.startswith(b"PMI_RANK=")]
        if rank:
            found.setdefault(int(rank[0]), child)
    return found or {0: pid}


def kill(case: Case, process: subprocess.Popen[bytes], chance: random.Random) -> None:
    """SIGKILL the case's victim."""
    ranks = ranks_of(process.pid)
    if case.victim == "job":
        victims = [process.pid, *descendants(process.pid)]
    elif case.victim == "rank":
        victims = [ranks[chance.choice(sorted(ranks))]]
    else:
        victims = [ranks.get(0, process.pid)]
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def content(output: Path, kind: str) -> list[np.ndarray]:
    """All that a result has: sequences in the order of their rows, edges in that of strand, row and column."""
    if kind in TABLES:
        return [np.frombuffer(output.read_bytes(), dtype=np.uint8)]
    if kind == "infer":
        return [np.frombuffer((output / name).read_bytes(), dtype=np.uint8) for name in (*FILES, ERRORS)]
    if kind not in MOTIF_KINDS:
        with Result(output) as result:
            order = np.argsort(result.row)
            # Bits, since NaN is not equal to itself.
            return [result.counters[:][order].view(np.uint64), result.repertoire_id[order]]
    from hpcvdj.motifs.edges import joined
    from hpcvdj.motifs.results import MotifResult

    with MotifResult(output) as result:
        if result.dense:
            return [result.counters(strand) for strand in range(result.strands)]
        return [joined([*result.edges()])]


def right(output: Path, kind: str, expected: list[np.ndarray]) -> bool:
    """Whether the result is complete and has the expected counters."""
    found = content(output, kind)
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


def wait_for(process: subprocess.Popen[bytes], folder: Path, pattern: str) -> None:
    """Until such a file is in the run's folder or beside it, or the run is over."""
    while process.poll() is None and not [*folder.glob(f"out.*/{pattern}"), *folder.glob(pattern)]:
        time.sleep(0.005)


def run(case: Case, folder: Path, expected: list[np.ndarray], seconds: float, chance: random.Random) -> None:
    """Kill within `seconds`, resume, kill again or not, resume to the end; notes what it finds in `case`."""
    output = folder / case.output
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    ranks = case.ranks
    moments, methods = [], [case.method]
    while not output.exists() and (case.kills == 0 or (case.kills < 3 and chance.random() < 0.5)):
        process = subprocess.Popen(
            command(case, output, ranks, resume=case.kills > 0), env=environment, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        moment = chance.uniform(0, seconds)
        if case.awaited:
            wait_for(process, folder, case.awaited)
            moment *= AFTER_SECONDS / seconds
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            kill(case, process, chance)
            case.kills += 1
        process.wait(120)
        moments.append(f"{moment:.2f}")
        saved = [path for pattern in SAVED for path in folder.glob(f"out.*/{pattern}")]
        case.saved = max(case.saved, len(saved))
        if output.exists():
            case.finished_before_kill = True
            assert right(output, case.kind, expected), f"case {case.number}: a wrong result under the final name"
            if case.kills == 0:  # too late: once more from the start
                shutil.rmtree(output) if output.is_dir() else output.unlink()
        ranks = case.some_ranks(chance)
        if case.kind in MOTIF_KINDS:
            case.method = chance.choice(MOTIF_METHODS)
            methods.append(case.method)
    case.after, case.final_ranks = " ".join(moments), ranks
    done = subprocess.run(command(case, output, ranks, resume=True), env=environment, capture_output=True, timeout=300)
    assert done.returncode == 0, f"case {case.number}: {done.stderr.decode()}"
    case.equal = right(output, case.kind, expected)
    case.debris = " ".join(sorted(str(path.relative_to(folder)) for path in left_beside(output, case.kind)))
    case.method = " ".join(methods)


def left_beside(output: Path, kind: str) -> list[Path]:
    """Files that are not of the result."""
    if not kind.endswith("slices"):
        facts = output.with_name(f"{output.name}.json")
        return [path for path in output.parent.iterdir() if path not in (output, facts)]
    # A run that replaced a result in parts has its own in the other folder.
    folder = next(
        path for path in map(output.with_name, (f"{output.name}.parts", f"{output.name}.2.parts")) if path.exists()
    )
    own = {output, folder, folder / "run.json", *folder.glob("part-*.h5")}
    return [path for path in output.parent.rglob("*") if path not in own]


def inputs_of(work: Path, of: str) -> None:
    """Make what the runs read."""
    if of == "motifs":
        letters = random.Random(1)
        texts = ("".join(letters.choices("ACGT", k=MOTIF_BASES)) for _ in range(MOTIF_SEQUENCES))
        (work / "many.fasta").write_text("".join(f">{i}\n{text}\n" for i, text in enumerate(texts)))
        return
    if of in ("pgen", "infer"):
        rows = INFER_ROWS if of == "infer" else MANY
        generate = [sys.executable, "-m", "hpcvdj", "generate", "-m", "mouse_trb", "-n", str(rows), "--seed", "1"]
        subprocess.run([*generate, "-o", str(work / "many.parquet")], check=True, capture_output=True)
        return
    simulate = [sys.executable, "-m", "hpcvdj", "simulate", "-g", str(GERMLINE), "-n", str(MANY), "--seed", "1"]
    subprocess.run([*simulate, "-o", str(work / "many.parquet")], check=True, capture_output=True)
    if of == "together":
        (work / "tables").mkdir()
        table = pq.read_table(work / "many.parquet")
        for number, (first, last) in enumerate(pairwise(TABLE_BOUNDS)):
            pq.write_table(table.slice(first, last - first), work / "tables" / f"{number}.parquet")


def drawn(number: int, of: str, chance: random.Random) -> Case:
    """A case of the runs that are killed."""
    if of in ("slices", "together", "pgen", "infer"):
        (method,) = next(iter(KINDS[of].values()))
        case = Case(number, of, method, chance.randint(1, 3), chance.choice(VICTIMS))
        if of != "slices":
            case.kind = chance.choice(tuple(KINDS[of]))
        awaited = "search.state" if of == "infer" else "part-*.h5" if case.kind.endswith("slices") else ""
        case.awaited = chance.choice(("", awaited)) if awaited else ""
        return case
    if of == "tables":
        kind = chance.choice(tuple(TABLES))
        case = Case(number, kind, kind, 1, chance.choice(VICTIMS), chance.choice(("", "part-*.state")))
        case.ranks = case.some_ranks(chance)
        return case
    if of == "counts":
        return Case(number, of, chance.choice(list(MAX_N)), chance.randint(1, 3), chance.choice(VICTIMS))
    kind, method = chance.choice(list(MOTIF_KINDS)), chance.choice(MOTIF_METHODS)
    case = Case(number, kind, method, chance.randint(1, 3), chance.choice((*VICTIMS, "storing root")))
    case.awaited = ".out.h5.part" if case.victim == "storing root" else chance.choice(("", "tile-*.state"))
    return case


def serial(work: Path, kinds: dict[str, tuple[str, ...]]) -> tuple[dict[tuple[str, str], Any], dict[str, float]]:
    """The content of a serial run by kind and method, and the seconds of each method's."""
    expected, seconds = {}, {}
    (work / "whole").mkdir()
    for kind, methods in kinds.items():
        for method in methods:
            case = Case(-1, kind, method, 1, "")
            output = work / "whole" / f"{kind}-{method}-{case.output}"
            before = time.monotonic()
            subprocess.run(
                command(case, output, 1, resume=False), check=True, capture_output=True,
                env={**os.environ, "NUMBA_NUM_THREADS": "1"},
            )  # fmt: skip
            seconds[method] = time.monotonic() - before
            expected[kind, method] = content(output, kind)
    return expected, seconds


def main() -> int:
    """Run the cases; exit code 1 if any went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--of", choices=tuple(KINDS), default="counts", help="which runs")
    parser.add_argument("--runs", type=int, default=200, help="cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="raw rows, CSV")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        inputs_of(Path(work), options.of)
        expected, seconds = serial(Path(work), KINDS[options.of])
        print(f"serial runs: {seconds}")
        cases = []
        started = time.monotonic()
        for number in range(options.first, options.first + options.runs):
            chance = random.Random(f"{options.seed}-{number}")
            case = drawn(number, options.of, chance)
            folder = Path(work) / str(number)
            folder.mkdir()
            run(case, folder, expected[case.kind, case.method], seconds[case.method], chance)
            shutil.rmtree(folder)
            cases.append(case)
            if options.output:
                write(options.output, cases)
            print(f"{len(cases)}/{options.runs} {time.monotonic() - started:.0f} s {case}", flush=True)
    good = sum(case.equal and not case.debris for case in cases)
    killed = sum(case.kills for case in cases)
    saved = sum(case.saved > 0 for case in cases)
    print(f"{good} of {len(cases)} cases right and clean; {killed} kills; {saved} cases with saved work")
    return 0 if good == len(cases) else 1


def write(path: Path, cases: list[Case]) -> None:
    """The raw rows so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Case)])
        writer.writeheader()
        writer.writerows(asdict(case) for case in cases)


if __name__ == "__main__":
    sys.exit(main())
