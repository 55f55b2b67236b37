"""Damage files at random, give them to the commands that read them, and look at what happens.

python tests/robustness/mutate.py --cases 3000 --seed 1 -o bytes.csv
python tests/robustness/mutate.py --changes structure --cases 3000 --seed 1 -o structure.csv

A case takes one kind of file, changes some of its bytes (flips, cuts, repeats or inserts them) or what is in it
(`structure.py`), and runs a command on it in a process of its own, which may take 20 seconds and 2 GB.  It must end
with 0, or with 2 and one line.  Where the content is checksummed, or the change does not make another legitimate
result, a command that ends with 0 must then write what it writes for the file as it was.  Needs Linux; every process is
forked from one that has imported everything, so a case takes some hundredths of a second.
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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Before numba is imported; the search for doctests imports this file, too.
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    os.environ.setdefault("COLUMNS", "200")

import h5py
import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import structure
from numba.core import entrypoints

from hpcvdj import cli
from hpcvdj.cli import common
from hpcvdj.recombination.alphabet import translate
from hpcvdj.results.slice_files import SliceFiles
from hpcvdj.runs import driver
from hpcvdj.runs.folder import RunFolder
from hpcvdj.runs.ranks import World
from hpcvdj.values.at_once import BEGUN, UnitStore

ROOT = Path(__file__).parents[2]
GERMLINE = ROOT / "inputs" / "germline" / "mouse_trb_paper.tsv"
SMALL = ROOT / "inputs" / "mouse_trb" / "small.tsv"
ERROR = "hpcvdj: error: "
LOG = ".stderr"
MODULES = ".modules"
SECONDS, PATIENT_SECONDS = 20, 60
MEMORY = 2 << 30
ROWS, EXCLUDED = 60, (7, 33)
FEW_TASKS = 5.0
"""The work of the first piece of a counting run that is killed at its fourth save, in the midst of a unit."""

SAVES, KILLED = 4, 77


COUNT = ("count", "t.tsv", "-g", str(GERMLINE), "--max-n", "2")
IN_SLICES = (*COUNT, "--batch-rows", "20")
ENUMERATED = (
    "count", "u.tsv", *COUNT[2:-1], "3", "--method", "bitwise", "--threads-per-block", "1", "--checkpoint-every", "0",
)  # fmt: skip
MODEL = ("-m", "human_trb_m15", "--backend", "cpu")
ANNOTATE = (*MODEL, "--kappa", "1")
ENRICH = (*MODEL, "--kappa", "1", "--min-neighbours", "1")
COMPARE = ("motifs", "compare", "s.fasta", "-k", "6", "-d", "1", "--strands", "both")


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, the command that reads it, and what that writes.

    checksummed  whether what a command writes does not depend on bytes of the file that it cannot check
    comparable   whether the command writes the same for the same file
    """

    file: str
    command: tuple[str, ...]
    target: str
    checksummed: bool = False
    comparable: bool = True

    @property
    def structured(self) -> bool:
        """Whether `structure.py` can change the file."""
        return Path(self.file).suffix in (".h5", ".state") or Path(self.file).name == "run.json"


def resumed(command: tuple[str, ...], target: str, file: str) -> Kind:
    """A file in the folder of an unfinished run, which the run continues with."""
    return Kind(file, (*command, "-o", "TARGET", "--resume"), target)


KINDS = {
    "tsv": Kind("t.tsv", ("count", "FILE", *COUNT[2:], "-o", "TARGET"), "o.h5"),
    "gzip": Kind("t.tsv.gz", ("count", "FILE", *COUNT[2:], "-o", "TARGET"), "o.h5"),
    "parquet": Kind("t.parquet", ("count", "FILE", *COUNT[2:], "-o", "TARGET"), "o.h5"),
    "germline": Kind("g.tsv", ("count", "t.tsv", "-g", "FILE", "-o", "TARGET", "--max-n", "2"), "o.h5"),
    "germline set": Kind("s.json", ("germline", "import", "FILE", "-o", "TARGET"), "i.tsv"),
    "fasta": Kind("s.fasta", ("motifs", "compare", "FILE", "-o", "TARGET", "-k", "6", "-d", "1", "--top", "1"), "n.h5"),
    "result": Kind("r.h5", ("export", "FILE", "-o", "TARGET"), "e.tsv", checksummed=True),
    "report": Kind("r.h5", ("report", "FILE", "-o", "TARGET"), "r.html", comparable=False),
    "complete": Kind("r.h5", (*COUNT, "-o", "FILE", "--resume"), "r.h5"),
    "view": Kind("v.h5", ("export", "FILE", "-o", "TARGET"), "e.tsv", checksummed=True),
    "viewed part": Kind("v.h5.parts/part-000001.h5", ("export", "v.h5", "-o", "TARGET"), "e.tsv", checksummed=True),
    "together": Kind("w.h5", ("export", "FILE", "-o", "TARGET"), "e.tsv", checksummed=True),
    "edges": Kind("m.h5", ("motifs", "cluster", "FILE", "-o", "TARGET"), "l.tsv", checksummed=True),
    "edges exported": Kind("m.h5", ("motifs", "export", "FILE", "-o", "TARGET"), "x.tsv", checksummed=True),
    "edges drawn": Kind("m.h5", ("motifs", "plot", "FILE", "-o", "TARGET"), "p.png"),
    "all pairs": Kind(
        "d.h5", ("motifs", "export", "FILE", "-o", "TARGET", "--min-score", "0"), "x.tsv", checksummed=True
    ),
    "run record": resumed(IN_SLICES, "p.h5", "p.h5.parts/run.json"),
    "part": resumed(IN_SLICES, "p.h5", "p.h5.parts/part-000000.h5"),
    "facts of a part": resumed(IN_SLICES, "p.h5", "p.h5.parts/part-000000.state"),
    "units record": resumed(ENUMERATED, "q.h5", "q.h5.parts/run.json"),
    "units": resumed(ENUMERATED, "q.h5", "q.h5.parts/part-000000.state"),
    "unit under way": resumed(ENUMERATED, "q.h5", f"q.h5.parts/{BEGUN}.state"),
    "tile": resumed(COMPARE, "k.h5", "k.h5.checkpoint/tile-0-0-20-0-20.state"),
    "tile record": resumed(COMPARE, "k.h5", "k.h5.checkpoint/run.json"),
    "enriched": Kind("y.tsv", ("enrich", "FILE", *ENRICH, "-o", "TARGET"), "z.tsv"),
    "shared": Kind("c.tsv", ("sharing", "FILE", "y.tsv", *MODEL, "-o", "TARGET"), "z.tsv"),
    "contaminated": Kind(
        "c.tsv", ("contamination", "FILE", "y.tsv", *MODEL, "--min-low", "1", "-o", "TARGET"), "z.tsv"
    ),
    "database": Kind("b.tsv", ("annotate", "y.tsv", *ANNOTATE, "--database", "FILE", "-o", "n"), "n/y.epitopes.tsv"),
    "annotated": Kind("c.tsv", ("annotate", "FILE", *ANNOTATE, "--database", "b.tsv", "-o", "n"), "n/c.epitopes.tsv"),
}
"""Byte changes go to all kinds."""


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
    sequences = {
        "V": "ACT" * 103 + "TGTGCCAGCAG",
        "D": "GGGACAGGGGGC",
        "J": "TGAACACTGAAGCTTTCTTTGGACAAGGCACCAGACTCACAGTTGTAG",
    }
    alleles = [
        {"label": f"TRB{kind}{k}-1*01", "sequence_type": kind, "locus": "TRB", "coding_sequence": sequence,
         "functional": True, "j_codon_frame": 3}
        for kind, sequence in sequences.items() for k in range(1, 4)
    ]  # fmt: skip
    return json.dumps({"GermlineSet": [{"germline_set_ref": "x", "allele_descriptions": alleles}]}, indent=1)


def prepare(folder: Path) -> None:
    """The files as they should be, in `folder`."""
    lines = SMALL.read_text().splitlines(keepends=True)[: ROWS + 1]
    for row in EXCLUDED:
        lines[row] = lines[row].replace("TRB", "TRX")
    (folder / "t.tsv").write_text("".join(lines))
    (folder / "u.tsv").write_text("".join(lines[:13]))
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
    (folder / "tables").mkdir()
    for name in "ab":
        shutil.copy(folder / "t.tsv", folder / "tables" / f"{name}.tsv")
    for words in (
        ("generate", *MODEL[:2], "-n", str(ROWS), "--productive", "-o", "y.tsv"),
        ("generate", *MODEL[:2], "-n", str(ROWS), "--productive", "--seed", "1", "-o", "c.tsv"),
        (*COUNT, "-o", "r.h5"), (*IN_SLICES, "-o", "v.h5"), (*COMPARE, "-o", "d.h5"),
        ("count", "tables", "--together", *COUNT[2:], "-o", "w.h5"), (*COMPARE, "-o", "m.h5", "--top", "2"),
    ):  # fmt: skip
        code, said, *_ = ended(words, folder, learning=True)
        assert code == 0, (code, said)
    write_database(folder / "y.tsv", folder / "b.tsv")
    # As after kills right after a save.
    for words, saver, saves in (
        ((*IN_SLICES, "-o", "p.h5"), (SliceFiles, "finish"), 2),
        ((*ENUMERATED, "-o", "q.h5"), (UnitStore, "save"), SAVES),
        ((*COMPARE, "-o", "k.h5"), (RunFolder, "save"), 1),
    ):
        code, said, *_ = ended(words, folder, lambda saver=saver, saves=saves: end_after(*saver, saves))
        assert code == KILLED, (code, said)


def write_database(drawn: Path, database: Path) -> None:
    """Write records of known specificity: every junction of a table that hpcvdj drew, each of one of two epitopes."""
    header, *rows = (line.split("\t") for line in drawn.read_text().splitlines())
    junction, v, j = (header.index(name) for name in ("junction", "v_call", "j_call"))
    records = [("epitope", "junction_aa", "v_call", "j_call")]
    records += [(f"e{k % 2}", translate([row[junction]])[0], row[v], row[j]) for k, row in enumerate(rows)]
    database.write_text("".join("\t".join(record) + "\n" for record in records))


def end_after(kind: type[Any], method: str, calls: int) -> None:
    """Have this process end in the midst of its work, right after a method was called so many times."""
    called, left = getattr(kind, method), [calls]
    driver.FIRST_WORK = FEW_TASKS

    def last(*arguments: Any) -> None:
        called(*arguments)
        left[0] -= 1
        if not left[0]:
            os._exit(KILLED)

    setattr(kind, method, last)


def ended(
    words: tuple[str, ...],
    folder: Path,
    before: Callable[[], None] = lambda: None,
    *,
    learning: bool = False,
    limited: bool = False,
) -> tuple[int, str, float, int]:
    """Exit code, stderr, seconds and bytes of memory of a command in a process of its own; -signal if one ended it.

    before    called in that process
    learning  import here what the command imported: the next one need not
    limited   end it after `SECONDS`; the first commands compile kernels
    """
    started = time.monotonic()
    child = begun(words, folder, before, learning=learning, limited=limited)
    _, status, usage = os.wait4(child, 0)
    said = (folder / LOG).read_text(errors="replace")
    if learning and (folder / MODULES).exists():
        for name in (folder / MODULES).read_text().split():
            with suppress(ImportError):
                importlib.import_module(name)
        (folder / MODULES).unlink()
    return os.waitstatus_to_exitcode(status), said, time.monotonic() - started, usage.ru_maxrss * 1024


def begun(
    words: tuple[str, ...],
    folder: Path,
    before: Callable[[], None] = lambda: None,
    *,
    learning: bool = False,
    limited: bool = False,
) -> int:
    """The process of a command that runs in `folder`; arguments as of `ended`."""
    child = os.fork()
    if child:
        return child
    try:
        os.chdir(folder)
        for stream, target in ((1, os.devnull), (2, LOG)):
            os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        signal.alarm(SECONDS if limited else 0)
        sys.argv = ["hpcvdj", "-q", *words]
        before()
        cli.main()
    except SystemExit as end:
        sys.stderr.flush()
        if learning:
            Path(MODULES).write_text("\n".join(sys.modules))
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(99)


def serial(*, patient: bool = False) -> None:
    """Have commands run as worlds of one rank, without MPI.

    patient  allow each a minute, as machines may have other work, and any memory, as figures need more than 2 GB
    """
    global SECONDS, MEMORY
    if patient:
        SECONDS, MEMORY = PATIENT_SECONDS, resource.RLIM_INFINITY
    entrypoints.init_all()
    common.world = World  # type: ignore[assignment]
    cli.abort = lambda code: None  # type: ignore[assignment]


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


def content(target: Path) -> Any:
    """What a command wrote: the bytes; of results, which have dates and times, the values by dataset."""
    if target.suffix != ".h5":
        return target.read_bytes() if target.is_file() else None
    with h5py.File(target) as file:
        order = np.argsort(file["sequences/row"][:]) if "sequences/row" in file else slice(None)
        values = {}
        for group in ("counters", "sequences", "excluded", "edges"):
            items = file.get(group, {})
            for name, dataset in {group: items}.items() if isinstance(items, h5py.Dataset) else items.items():
                if isinstance(dataset, h5py.Dataset):
                    own = order if group in ("counters", "sequences") and dataset.ndim < 4 else slice(None)
                    values[group, name] = dataset[:][own].tolist()
        return values


def command_of(kind: Kind) -> tuple[str, ...]:
    """The words of the command that reads the file."""
    return tuple({"FILE": kind.file, "TARGET": kind.target}.get(word, word) for word in kind.command)


def run(case: Case, clean: Path, work: Path, expected: Any, structural: bool, chance: random.Random) -> Case:
    """Damage a file and run its command."""
    kind = KINDS[case.kind]
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(clean, work)
    file, target = work / kind.file, work / kind.target
    if structural:
        case.change, same = structure.changed(file, chance)
    else:
        data, case.change = damaged(file.read_bytes(), chance)
        file.write_bytes(data)
        same = kind.checksummed
    before = file.read_bytes()
    case.exit_code, said, case.seconds, memory = ended(command_of(kind), work, limited=True)
    case.megabytes = memory >> 20
    lines = [line for line in said.splitlines() if "warning" not in line]
    errors = sum(line.startswith(ERROR) for line in lines)
    case.said = lines[-1][:200] if lines else ""
    if case.exit_code < 0:
        case.fault = f"ended by signal {-case.exit_code}"
    elif "Traceback" in said or f"{ERROR}unexpected " in said or case.exit_code not in (0, 1, 2):
        case.fault = "unexpected error"
    elif case.exit_code and (errors != 1 or not lines[-1].startswith(ERROR)):
        case.fault = "not one line"
    elif target == file:
        # A complete result stays as it is, whatever is wrong with it.
        case.fault = "" if file.is_file() and file.read_bytes() == before else "the target was changed"
    elif case.exit_code and target.exists() and "no row could be counted" not in said:
        case.fault = "a file under the target's name"
    elif not case.exit_code and kind.comparable:
        try:
            other = content(target) != expected and same
            case.fault = "another content without a word" if other else ""
        except OSError as error:
            case.fault = f"an unreadable result: {error}"
    return case


def parsed() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=300, help="the case to end before")
    parser.add_argument("--first", type=int, default=0, help="the case to begin with; rows are added to the output")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", choices=("bytes", "structure"), default="bytes", help="what is changed")
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), help="by default all that can be changed so")
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def campaign(numbers: range, seed: int, kinds: list[str], structural: bool, stream: io.TextIOBase) -> list[Case]:
    """Run the cases, each kind in turn; the rows also go to `stream` as they come."""
    writer = csv.writer(stream, lineterminator="\n")
    if not numbers.start:
        writer.writerow([field.name for field in fields(Case)])
    done = []
    with tempfile.TemporaryDirectory() as folder:
        clean, work = Path(folder) / "clean", Path(folder) / "work"
        # Results record where their table is: it is counted where the cases read it.
        work.mkdir()
        prepare(work)
        work.rename(clean)
        expected = {}
        for name in kinds:
            kind = KINDS[name]
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(clean, work)
            code, said, *_ = ended(command_of(kind), work, learning=True)
            assert code == 0, (name, said)
            expected[name] = content(work / kind.target)
        for number in numbers:
            name = kinds[number % len(kinds)]
            case = Case(number, name, "")
            chance = random.Random(f"{seed} {number}")
            done.append(run(case, clean, work, expected[name], structural, chance))
            writer.writerow(asdict(case).values())
            stream.flush()
    return done


if __name__ == "__main__":
    options = parsed()
    structural = options.changes == "structure"
    kinds = options.kinds or [name for name, kind in KINDS.items() if kind.structured or not structural]
    serial()
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output or os.devnull, "a" if options.first else "w", newline="") as rows:
        results = campaign(range(options.first, options.cases), options.seed, kinds, structural, rows)
    for case in results:
        if case.fault:
            print(case)
    refused = sum(case.exit_code != 0 for case in results)
    print(f"{len(results)} cases, {refused} refused, {sum(bool(case.fault) for case in results)} faults")
    print(f"at most {max(case.seconds for case in results):.1f} s, {max(case.megabytes for case in results)} MB")
    sys.exit(any(case.fault for case in results))
