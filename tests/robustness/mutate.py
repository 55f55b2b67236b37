"""Damage files at random, give them to the commands that read them, and look at what happens.

python tests/robustness/mutate.py --cases 3000 --seed 1 -o results/mutations/raw.csv

A case takes one kind of file, changes some of its bytes (flips, cuts, repeats or inserts them), and runs a command on
it in a process of its own, which may take 20 seconds and 2 GB.  It must end with 0, or with 2 and one line.  The
content of gzip streams and of results is checksummed: a command that ends with 0 must then write what it writes for
the file as it was.  Needs Linux; every process is forked from one that has imported everything, so a case takes some
hundredths of a second.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, fields
from pathlib import Path

if __name__ == "__main__":
    # Before numba is imported; the search for doctests imports this file, too.
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    os.environ.setdefault("COLUMNS", "200")

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numba.core import entrypoints

from hpcvdj import cli
from hpcvdj.cli import common
from hpcvdj.runs.ranks import World

ROOT = Path(__file__).parents[2]
GERMLINE = ROOT / "inputs" / "germline" / "mouse_trb_paper.tsv"
SMALL = ROOT / "inputs" / "mouse_trb" / "small.tsv"
IMPORTED = (
    "hpcvdj.counting.count", "hpcvdj.counting.species", "hpcvdj.germline_import", "hpcvdj.motifs.clusters",
    "hpcvdj.motifs.compare", "hpcvdj.motifs.results", "hpcvdj.results.export", "hpcvdj.sharing.convergence",
    "hpcvdj.kernels.pathways.direct_cpu", "hpcvdj.kernels.sums", "hpcvdj.kernels.kmers.join_cpu", "dnaio", "xopen",
    "hpcvdj.kernels.kmers.kmers_cpu", "hpcvdj.kernels.kmers.tile_cpu", "hpcvdj.kernels.kmers.matrix_cpu", "networkx",
)  # fmt: skip
"""What commands import when they begin."""

SECONDS = 20
MEMORY = 2 << 30
ROWS = 60


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, the command that reads it, and whether its content is checksummed."""

    file: str
    command: tuple[str, ...]
    target: str
    checksummed: bool = False


KINDS = {
    "tsv": Kind("t.tsv", ("count", "FILE", "-g", str(GERMLINE), "-o", "TARGET", "--max-n", "2"), "o.h5"),
    "gzip": Kind("t.tsv.gz", ("count", "FILE", "-g", str(GERMLINE), "-o", "TARGET", "--max-n", "2"), "o.h5"),
    "parquet": Kind("t.parquet", ("count", "FILE", "-g", str(GERMLINE), "-o", "TARGET", "--max-n", "2"), "o.h5"),
    "germline": Kind("g.tsv", ("count", "t.tsv", "-g", "FILE", "-o", "TARGET", "--max-n", "2"), "o.h5"),
    "germline set": Kind("s.json", ("germline", "import", "FILE", "-o", "TARGET"), "i.tsv"),
    "fasta": Kind("s.fasta", ("motifs", "compare", "FILE", "-o", "TARGET", "-k", "6", "-d", "1", "--top", "1"), "n.h5"),
    "result": Kind("r.h5", ("export", "FILE", "-o", "TARGET"), "e.tsv", checksummed=True),
    "report": Kind("r.h5", ("convergence", "FILE", "-o", "TARGET", "--rows", "all"), "c.tsv", checksummed=True),
    "comparison": Kind("m.h5", ("motifs", "cluster", "FILE", "-o", "TARGET"), "l.tsv", checksummed=True),
    "run record": Kind(
        "p.h5.parts/run.json",
        ("count", "t.tsv", "-g", str(GERMLINE), "-o", "p.h5", "--max-n", "2", "--batch-rows", "20", "--resume"),
        "p.h5",
    ),
    "part": Kind(
        "p.h5.parts/part-000000.h5",
        ("count", "t.tsv", "-g", str(GERMLINE), "-o", "p.h5", "--max-n", "2", "--batch-rows", "20", "--resume"),
        "p.h5",
    ),
}  # fmt: skip


@dataclass
class Case:
    """One case and what came of it."""

    number: int
    kind: str
    change: str
    exit_code: int = 0
    seconds: float = 0.0
    megabytes: int = 0
    fault: str = ""
    said: str = ""


def germline_set() -> str:
    """A small AIRR GermlineSet."""
    sequence = "ACTGAAGCTTTCTTTGGACAAGGCACC"
    common = {"sequence_type": "J", "locus": "TRB", "coding_sequence": sequence, "functional": True}
    alleles = [{"label": f"TRBJ1-{k}*01", **common, "j_codon_frame": 3} for k in range(1, 4)]
    return json.dumps({"GermlineSet": [{"germline_set_ref": "x", "allele_descriptions": alleles}]}, indent=1)


def prepare(folder: Path) -> None:
    """The files as they should be, in `folder`."""
    lines = SMALL.read_text().splitlines(keepends=True)[: ROWS + 1]
    (folder / "t.tsv").write_text("".join(lines))
    (folder / "t.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    pq.write_table(
        pacsv.read_csv(folder / "t.tsv", pacsv.ReadOptions(use_threads=False), pacsv.ParseOptions(delimiter="\t")),
        folder / "t.parquet",
    )
    shutil.copy(GERMLINE, folder / "g.tsv")
    (folder / "s.json").write_text(germline_set())
    chance = random.Random(1)
    texts = ("".join(chance.choices("ACGT", k=40)) for _ in range(20))
    (folder / "s.fasta").write_text("".join(f">s{k} x\n{text}\n" for k, text in enumerate(texts)))
    count = ("count", "t.tsv", "-g", str(GERMLINE), "--max-n", "2")
    for words in (
        (*count, "-o", "r.h5"), ("motifs", "compare", "s.fasta", "-o", "m.h5", "-k", "6", "-d", "1", "--top", "2"),
        (*count, "-o", "p.h5", "--batch-rows", "20"),
    ):  # fmt: skip
        code, said, *_ = ended(words, folder)
        assert code == 0, (code, said)
    # As after a kill before the parts were joined, with one part to count.
    (folder / "p.h5").unlink()
    (folder / "p.h5.parts" / "part-000002.h5").unlink()


def ended(words: tuple[str, ...], folder: Path) -> tuple[int, str, float, int]:
    """Exit code, stderr, seconds and bytes of memory of a command in a process of its own; -signal if one ended it."""
    log = folder / ".stderr"
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            for stream, target in ((1, os.devnull), (2, log)):
                os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            signal.alarm(SECONDS)
            sys.argv = ["hpcvdj", "-q", *words]
            cli.main()
        except SystemExit as end:
            sys.stderr.flush()
            os._exit(end.code if isinstance(end.code, int) else 1)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(99)
    _, status, usage = os.wait4(child, 0)
    said = log.read_text(errors="replace")
    return os.waitstatus_to_exitcode(status), said, time.monotonic() - begun, usage.ru_maxrss * 1024


def damaged(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The bytes with a random change, and its name."""
    changed = bytearray(data)
    at, size = chance.randrange(len(data)), min(len(data), 1 << chance.randrange(0, 12))
    change = chance.choice(("bit", "bytes", "cut", "repeat", "insert", "zero", "end"))
    if change == "bit":
        changed[at] ^= 1 << chance.randrange(8)
    elif change == "bytes":
        for _ in range(chance.randrange(1, 9)):
            changed[chance.randrange(len(data))] = chance.randrange(256)
    elif change == "cut":
        del changed[at : at + size]
    elif change == "repeat":
        changed[at:at] = changed[at : at + size]
    elif change == "insert":
        changed[at:at] = chance.randbytes(size)
    elif change == "zero":
        changed[at : at + size] = bytes(len(changed[at : at + size]))
    else:
        del changed[at:]
    return bytes(changed), f"{change} at {at}"


def run(case: Case, clean: Path, work: Path, expected: bytes | None, chance: random.Random) -> Case:
    """Damage a file and run its command."""
    kind = KINDS[case.kind]
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(clean, work)
    data, case.change = damaged((work / kind.file).read_bytes(), chance)
    (work / kind.file).write_bytes(data)
    words = tuple({"FILE": kind.file, "TARGET": kind.target}.get(word, word) for word in kind.command)
    case.exit_code, said, case.seconds, memory = ended(words, work)
    case.megabytes = memory >> 20
    lines = [line for line in said.splitlines() if "warning" not in line]
    case.said = lines[0][:200] if lines else ""
    target = work / kind.target
    if case.exit_code < 0:
        case.fault = f"ended by signal {-case.exit_code}"
    elif "Traceback" in said or "unexpected" in said or case.exit_code not in (0, 1, 2):
        case.fault = "unexpected error"
    elif case.exit_code and sum(line.startswith("hpcvdj: error: ") for line in lines) != 1:
        case.fault = "not one line"
    elif case.exit_code and target.exists():
        case.fault = "a file under the target's name"
    elif not case.exit_code and kind.checksummed and target.read_bytes() != expected:
        case.fault = "another content without a word"
    return case


def parsed() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def campaign(cases: int, seed: int, kinds: list[str], stream: io.TextIOBase | None = None) -> list[Case]:
    """Run cases of each kind in turn; the rows also go to `stream` as they come."""
    writer = csv.writer(stream, lineterminator="\n") if stream else None
    if writer:
        writer.writerow([field.name for field in fields(Case)])
    done = []
    with tempfile.TemporaryDirectory() as folder:
        clean, work = Path(folder) / "clean", Path(folder) / "work"
        clean.mkdir()
        prepare(clean)
        expected = {}
        for name in kinds:
            kind = KINDS[name]
            if kind.checksummed:
                shutil.rmtree(work, ignore_errors=True)
                shutil.copytree(clean, work)
                words = tuple({"FILE": kind.file, "TARGET": kind.target}.get(word, word) for word in kind.command)
                code, said, *_ = ended(words, work)
                assert code == 0, said
                expected[name] = (work / kind.target).read_bytes()
        # The counted table is found where it was counted.
        for number in range(cases):
            name = kinds[number % len(kinds)]
            case = Case(number, name, "")
            done.append(run(case, clean, work, expected.get(name), random.Random(f"{seed} {number}")))
            if writer:
                writer.writerow(asdict(case).values())
    return done


if __name__ == "__main__":
    options = parsed()
    entrypoints.init_all()
    for module in IMPORTED:
        importlib.import_module(module)
    # Worlds of one rank, without MPI.
    cli.world = common.world = World  # type: ignore[assignment]
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output or os.devnull, "w", newline="") as rows:
        results = campaign(options.cases, options.seed, options.kinds, rows)
    for case in results:
        if case.fault:
            print(case)
    refused = sum(case.exit_code != 0 for case in results)
    print(f"{len(results)} cases, {refused} refused, {sum(bool(case.fault) for case in results)} faults")
    print(f"at most {max(case.seconds for case in results):.1f} s, {max(case.megabytes for case in results)} MB")
    sys.exit(any(case.fault for case in results))
