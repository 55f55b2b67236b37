"""Campaigns: cases drawn from a seed, each in a fresh copy of a folder of inputs, and their raw rows as CSV.

A row has the words of its command, so that a case can be repeated by hand; `--seed S --first N --cases N+1` repeats
case N of seed S.
"""

from __future__ import annotations

import argparse
import csv
import os
import pickle
import random
import shlex
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import mutate

from hpcvdj.chance import check
from hpcvdj.inference import selection

DRAWN = 5000
"""Draws with which commands compare model and table; how many does not matter here."""


@dataclass
class Case:
    """A case, and what came of it.

    kind    what was drawn, in words
    fault   empty, or what went wrong
    said    the last line on stderr
    """

    seed: int
    number: int
    kind: str = ""
    command: str = ""
    exit_code: int = 0
    seconds: float = 0.0
    fault: str = ""
    said: str = ""


C = TypeVar("C", bound=Case)
T = TypeVar("T")


def parsed(description: str, cases: int) -> argparse.ArgumentParser:
    """The arguments that campaigns share."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=cases, help="the case to end before")
    parser.add_argument("--first", type=int, default=0, help="the case to begin with; rows are added to the output")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="seeds, each of which draws so many cases")
    parser.add_argument("-o", "--output", type=Path, help="raw rows, CSV")
    return parser


def campaign(
    options: argparse.Namespace,
    case_type: type[C],
    prepare: Callable[[Path], None],
    run: Callable[[C, Path, random.Random], None],
) -> int:
    """Run the cases of the options; 1 if any has a fault.

    prepare  called with the folder of the inputs
    run      called with a case, a copy of that folder, and what draws; notes what came of the case in it
    """
    mutate.serial(patient=True)
    check.DRAWN = selection.FRESH = DRAWN
    os.environ["COLUMNS"] = "200"
    done: list[C] = []
    with tempfile.TemporaryDirectory() as folder:
        clean, work = Path(folder) / "clean", Path(folder) / "work"
        # Results record where their tables are.
        work.mkdir()
        prepare(work)
        work.rename(clean)
        for seed, number in product(options.seed, range(options.first, options.cases)):
            copied(clean, work)
            case = case_type(seed, number)
            run(case, work, random.Random(f"{seed} {number}"))
            done.append(case)
            if case.fault:
                print(case, flush=True)
            if options.output:
                append(options.output, case, anew=len(done) == 1 and number == 0)
    faults = Counter(case.fault for case in done if case.fault)
    refused = sum(case.exit_code != 0 for case in done)
    print(f"{len(done)} cases, {refused} refused, {faults.total()} faults {dict(faults) or ''}".rstrip())
    print(f"at most {max(case.seconds for case in done):.1f} s")
    return 1 if faults else 0


def copied(clean: Path, work: Path) -> None:
    """A fresh copy of the inputs."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(clean, work, symlinks=True)


def append(path: Path, case: Any, *, anew: bool) -> None:
    """Add the row of a dataclass to a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w" if anew else "a", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(case)], lineterminator="\n")
        if anew:
            writer.writeheader()
        writer.writerow(asdict(case))


def made(work: Path, *commands: Sequence[str]) -> None:
    """Run commands that must succeed, in `work`."""
    for words in commands:
        code, said, *_ = mutate.ended(tuple(map(str, words)), work, learning=True)
        assert code == 0, (words, said)


def ended(case: Case, words: Sequence[str], work: Path) -> list[str]:
    """Run the command of a case in `work`; its lines on stderr, without warnings."""
    case.command = shlex.join(words).replace(f"{mutate.ROOT}/", "")
    case.exit_code, said, seconds, _ = mutate.ended(tuple(words), work, limited=True)
    case.seconds = round(case.seconds + seconds, 2)
    lines = [line for line in said.splitlines() if "warning" not in line]
    # The folder of a campaign is another one each time.
    case.said = lines[-1].replace(str(work), "").strip()[:200] if lines else ""
    if case.exit_code < 0:
        case.fault = f"ended by signal {-case.exit_code}"
    elif "Traceback" in said or "unexpected" in said or case.exit_code not in (0, 1, 2):
        case.fault = "unexpected error"
    elif "No such option" in said:
        case.fault = "an option that the command has no more"
    return lines


def in_process(work: Path, function: Callable[[], T]) -> T:
    """What a function returns in a process of its own: a process that used OpenMP must not fork."""
    child = os.fork()
    if not child:
        try:
            (work / ".value").write_bytes(pickle.dumps(function()))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)
    path = work / ".value"
    assert path.exists(), "the function failed"
    value: T = pickle.loads(path.read_bytes())
    path.unlink()
    return value


def errors_of(lines: Sequence[str]) -> list[str]:
    """The lines that are errors."""
    return [line for line in lines if line.startswith(mutate.ERROR)]
