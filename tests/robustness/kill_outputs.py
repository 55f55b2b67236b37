"""Kill commands that write tables, pages and figures at random moments, and run them again.

python tests/robustness/kill_outputs.py --kills 320 --seed 1 -o results/robustness/killed/outputs.csv

A case draws a command, SIGKILL or SIGTERM, when, and whether an older file is there, which --overwrite replaces.  After
the kill each target must be absent, the older file, or complete and equal to that of an undisturbed run.  The same
command must then succeed, give the same, and leave nothing else.  Half of the kills wait for the hidden partial file.
Tables of `count`, `pgen`, `generate` and `convert` go on with the slices that are finished (--resume).
`kill_and_resume.py` kills `hpcvdj count` and `hpcvdj motifs compare`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import mutate
import numpy as np

from hpcvdj.storage.folders import atomic_folder, exclusive_folder

OLD = b"an older file"
ROWS = 20_000
COHORT = ("e.tsv", "f.tsv")
"""Tables of two individuals."""

COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "export tsv": (("export", "r.h5"), ("o.tsv",)),
    "export gz": (("export", "r.h5"), ("o.tsv.gz",)),
    "export parquet": (("export", "r.h5"), ("o.parquet",)),
    "report": (("report", "r.h5"), ("o.html",)),
    "germline import": (("germline", "import", "s.json"), ("o.tsv", "o.refused.tsv")),
    "pgen tsv": (("pgen", "e.tsv", *mutate.MODEL[:2], "--batch-rows", "400", "--resume"), ("o.tsv", "o.tsv.json")),
    "pgen gz": (("pgen", "e.tsv", *mutate.MODEL[:2], "--resume"), ("o.tsv.gz", "o.tsv.gz.json")),
    "count parquet": (
        ("count", "t.tsv", "-g", str(mutate.GERMLINE), "--batch-rows", "3000", "--resume"),
        ("o.parquet", "o.parquet.json"),
    ),
    "enrich": (("enrich", "e.tsv", *mutate.ENRICH), ("o.tsv", "o.tsv.json", "p.svg")),
    "sharing": (("sharing", *COHORT, *mutate.MODEL), ("o.tsv", "o.tsv.json", "overlap.tsv", "p.svg")),
    "contamination": (
        ("contamination", *COHORT, *mutate.MODEL, "--min-low", "1000"),
        ("o.tsv", "o.tsv.json", "p.svg", "clean/e.tsv"),
    ),
    "annotate": (
        ("annotate", *COHORT, *mutate.ANNOTATE, "--database", "d.tsv"),
        tuple(f"o/{name}.{table}" for name in "ef" for table in ("epitopes.tsv", "epitopes.tsv.json", "hits.tsv")),
    ),
    "generate tsv": (("generate", *mutate.MODEL[:2], "-n", "300000", "--resume"), ("o.tsv",)),
    "generate parquet": (
        ("generate", *mutate.MODEL[:2], "-n", "90000", "--productive", "--resume"),
        ("o.parquet",),
    ),
    "convert gz": (("convert", "t.tsv", "--resume"), ("o.tsv.gz",)),
    "convert parquet": (("convert", "t.tsv", *COHORT, "--resume"), ("o.parquet",)),
    "simulate tsv": (("simulate", "-g", str(mutate.GERMLINE), "-n", str(ROWS)), ("o.tsv",)),
    "simulate parquet": (("simulate", "-g", str(mutate.GERMLINE), "-n", str(ROWS)), ("o.parquet",)),
    "motifs export tsv": (("motifs", "export", "m.h5"), ("o.tsv",)),
    "motifs export graphml": (("motifs", "export", "m.h5"), ("o.graphml",)),
    "motifs export npz": (("motifs", "export", "m.h5"), ("o.npz",)),
    "motifs cluster": (("motifs", "cluster", "m.h5"), ("o.parquet",)),
    "motifs plot png": (("motifs", "plot", "m.h5"), ("o.png",)),
    "motifs plot svg": (("motifs", "plot", "m.h5"), ("o.svg",)),
}
"""By name: the words of the command, and its targets, the first of which is -o."""

OPTIONS = {"p.png": "--plot", "p.svg": "--plot", "overlap.tsv": "--overlap", "clean/e.tsv": "--write-clean"}
"""The option that names a target, or the folder that has it."""

OF_THE_RUN = ("command_line", "created_utc", "facts_sha256")
"""What a file of facts says that another run of the same command does not."""


@dataclass
class Case:
    """One case: what was drawn, and what was found."""

    number: int
    command: str
    signal: str
    older: bool
    awaited: bool
    seconds: float = 0.0
    exit_code: int = 0
    after_kill: str = ""
    left_by_kill: str = ""
    rerun: int = 0
    equal: bool = False
    debris: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing was wrong."""
        return "other" not in self.after_kill and self.rerun == 0 and self.equal and not self.debris


def words_of(name: str, *, overwrite: bool) -> tuple[str, ...]:
    """The command line."""
    words, targets = COMMANDS[name]
    named = {OPTIONS[target]: target.partition("/")[0] for target in targets[1:] if target in OPTIONS}
    options = [word for pair in named.items() for word in pair]
    return (*words, "-o", targets[0].partition("/")[0], *options, *(["--overwrite"] if overwrite else []))


def content(path: Path) -> Any:
    """What a file says: its bytes, without dates and what is drawn at random."""
    data = path.read_bytes()
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name].tolist() for name in arrays.files}
    if path.suffix == ".json":
        return {name: value for name, value in json.loads(data).items() if name not in OF_THE_RUN}
    if path.suffix == ".html":
        return re.sub(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC", b"", data)
    if path.suffix == ".svg":
        return re.sub(rb"<dc:date>.*?</dc:date>|\b[mpc][0-9a-f]{10}\b|image[0-9a-f]{10}", b"", data)
    return data


def prepared(work: Path) -> None:
    """What the commands read, in `work`."""
    mutate.prepare(work)
    for name in (("simulate", "-g", str(mutate.GERMLINE), "-n", str(ROWS), "-o", "t.tsv", "--overwrite"),
                 *(("generate", *mutate.MODEL[:2], "-n", "3000", "--productive", "--seed", str(seed), "-o", name)
                   for seed, name in enumerate(COHORT)),
                 ("count", "t.tsv", "-g", str(mutate.GERMLINE), "-o", "r.h5", "--overwrite")):  # fmt: skip
        code, said, *_ = mutate.ended(name, work, learning=True)
        assert code == 0, said
    mutate.write_database(work / COHORT[0], work / "d.tsv")
    with_copies(*(work / name for name in COHORT))
    bases = random.Random(1)
    texts = ("".join(bases.choices("ACGT", k=60)) for _ in range(400))
    (work / "s.fasta").write_text("".join(f">s{k}\n{text}\n" for k, text in enumerate(texts)))
    words = ("motifs", "compare", "s.fasta", "-o", "m.h5", "-k", "6", "-d", "1", "--overwrite", "--top", "20")
    code, said, *_ = mutate.ended(words, work, learning=True)
    assert code == 0, said
    sources = json.loads((work / "s.json").read_text())
    listed = sources["GermlineSet"][0]["allele_descriptions"]
    # Some thousands of alleles take a while.
    listed += [{**listed[-1], "label": f"TRBJ{k}-1*01"} for k in range(10, 3000)]
    (work / "s.json").write_text(json.dumps(sources))


def with_copies(first: Path, second: Path) -> None:
    """Give the rows of two tables read counts, and the second, carried over, some of the first."""
    header, *rows = first.read_text().splitlines()
    others = second.read_text().splitlines()[1:] + [f"carried{row}" for row in rows[:30]]
    for path, own in ((first, rows), (second, others)):
        lines = [f"{header}\tduplicate_count", *(f"{row}\t{1 + len(row) % 40}" for row in own)]
        path.write_text("\n".join(lines) + "\n")


def run(case: Case, folder: Path, expected: dict[str, Any], seconds: float, chance: random.Random) -> None:
    """Kill within `seconds`, look, and run again; notes what it finds in `case`."""
    targets = COMMANDS[case.command][1]
    before = {path.name for path in folder.iterdir()}
    if case.older:
        for target in targets:
            make_older(folder / target, folder)
    moment = 10 * seconds if case.awaited else chance.uniform(0, seconds)
    child = mutate.begun(words_of(case.command, overwrite=case.older), folder, limited=True)
    started, status, awaited = time.monotonic(), None, case.awaited
    while status is None and time.monotonic() - started < moment:
        if awaited and (list(folder.glob(".*.part")) or list(folder.glob("*.parts/.*.part"))):
            moment, awaited = time.monotonic() - started + chance.uniform(0, seconds / 5), False
        status = ended_with(child)
        time.sleep(0.0005)
    case.seconds = round(time.monotonic() - started, 4)
    if status is None:
        os.kill(child, getattr(signal, case.signal))
        status = os.waitpid(child, 0)[1]
    case.exit_code = os.waitstatus_to_exitcode(status)
    states = [state_of(folder / target, expected[target]) for target in targets]
    case.after_kill = " ".join(states)
    known = before | {target.partition("/")[0] for target in targets} | {mutate.LOG}
    case.left_by_kill = " ".join(sorted(path.name for path in folder.iterdir() if path.name not in known))
    overwrite = any(state != "absent" for state in states)
    case.rerun, said, *_ = mutate.ended(words_of(case.command, overwrite=overwrite), folder, limited=True)
    assert case.rerun == 0, (case, said)
    case.equal = all(state_of(folder / target, expected[target]) == "complete" for target in targets)
    case.debris = " ".join(sorted(path.name for path in folder.iterdir() if path.name not in known))


def make_older(target: Path, folder: Path) -> None:
    """Write an older file; in a folder of its own that hpcvdj wrote, since it replaces no other."""
    if target.parent == folder:
        target.write_bytes(OLD)
        return
    with exclusive_folder(target.parent, overwrite=True), atomic_folder(target.parent, overwrite=True) as older:
        (older / target.name).write_bytes(OLD)


def ended_with(child: int) -> int | None:
    """The status of a process that has ended."""
    pid, status = os.waitpid(child, os.WNOHANG)
    return status if pid else None


def state_of(path: Path, expected: Any) -> str:
    """`absent`, `older`, `complete`, or `other`."""
    if not path.exists():
        return "absent"
    if path.read_bytes() == OLD:
        return "older"
    return "complete" if content(path) == expected else "other"


def main() -> int:
    """Run the cases; exit code 1 if any went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=320)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("-o", "--output", type=Path, help="raw rows, CSV")
    options = parser.parse_args()
    mutate.serial(patient=True)
    cases: list[Case] = []
    with tempfile.TemporaryDirectory() as place:
        clean, work = Path(place) / "clean", Path(place) / "work"
        work.mkdir()
        prepared(work)
        work.rename(clean)
        expected, seconds = {}, {}
        for name in options.commands:
            found = []
            for learning in (True, False):
                fresh(clean, work)
                begun = time.monotonic()
                code, said, *_ = mutate.ended(words_of(name, overwrite=False), work, learning=learning)
                assert code == 0, (name, said)
                seconds[name] = time.monotonic() - begun
                found.append({target: content(work / target) for target in COMMANDS[name][1]})
            assert found[0] == found[1], f"{name}: two undisturbed runs differ"
            expected[name] = found[0]
        print(f"undisturbed runs: { {name: round(value, 2) for name, value in seconds.items()} }", flush=True)
        number = 0
        while sum(case.exit_code < 0 for case in cases) < options.kills:
            chance = random.Random(f"{options.seed} {number}")
            name = options.commands[number % len(options.commands)]
            older = chance.random() < 0.3
            case = Case(number, name, chance.choice(("SIGKILL", "SIGTERM")), older, chance.random() < 0.5)
            fresh(clean, work)
            run(case, work, expected[name], seconds[name], chance)
            cases.append(case)
            number += 1
            if options.output:
                write(options.output, cases)
    for case in cases:
        if not case.good:
            print(case)
    killed = [case for case in cases if case.exit_code < 0]
    partial = sum(".part" in case.left_by_kill for case in killed)
    print(f"{sum(case.good for case in cases)} of {len(cases)} cases right and clean; {len(killed)} kills; "
          f"{partial} left a partial file")  # fmt: skip
    return 0 if all(case.good for case in cases) else 1


def fresh(clean: Path, work: Path) -> None:
    """A new copy of what the commands read."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for name in ("r.h5", "t.tsv", "m.h5", "s.json", "d.tsv", *COHORT):
        shutil.copy(clean / name, work)


def write(path: Path, cases: list[Case]) -> None:
    """The raw rows so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Case)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(case) for case in cases)


if __name__ == "__main__":
    sys.exit(main())
