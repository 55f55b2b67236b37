"""Start ranks that differ: in version, settings, environment, files, or what they can import; and look at what happens.

python tests/robustness/differing_ranks.py --cases 100 --seed 1 2 -o results/robustness/campaigns/differing_ranks.csv

A case draws a command, how one of its two or three ranks differs, and which one.  Allowed is what a single rank makes,
or an exit code other than 0 with one line of hpcvdj within `LIMIT` seconds and nothing under the target's name.
A rank that cannot import what it needs must fail.  Needs Linux and mpiexec.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mutate
from campaign import Case, campaign, parsed
from kill_and_resume import MPIEXEC, descendants
from kill_outputs import content, with_copies

LIMIT = 60
"""Seconds that ranks which differ may take; the launcher and the imports of three ranks included."""

COMMANDS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "count": (("count", "t.tsv", "-g", "g.tsv", "--max-n", "2"), "o.h5", ("--max-n", "3")),
    "count a table": (("count", "t.tsv", "-g", "g.tsv", "--max-n", "2"), "o.tsv", ("--d-forms", "distinct")),
    "pgen": (("pgen", "y.tsv", *mutate.MODEL), "o.tsv", ("--genes", "any")),
    "enrich": (("enrich", "y.tsv", *mutate.ENRICH, "--keep-misfits"), "o.tsv", ("--max-q", "0.5")),
    "sharing": (("sharing", "y.tsv", "c.tsv", *mutate.MODEL, "--q", "1", "--draws", "1000"), "o.tsv", ("--seed", "9")),
    "generate": (("generate", *mutate.MODEL, "-n", "50"), "o.tsv", ("-n", "60")),
    "motifs compare": (mutate.COMPARE, "o.h5", ("--score", "cosine", "--top", "2")),
}
"""By name: the words, the target, and words that another rank has besides."""


@dataclass(frozen=True)
class Difference:
    """How a rank differs.

    program  Python that it runs before the command
    env      its environment
    prepare  called with its working folder
    options  whether it has other options
    must     whether the run must fail
    """

    program: str = ""
    env: tuple[tuple[str, str], ...] = ()
    prepare: Callable[[Path], None] | None = None
    options: bool = False
    must: bool = False


def _without(module: str) -> str:
    return f"""
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {module!r}:
            raise ImportError("{module}: libx.so: cannot open shared object file")
sys.meta_path.insert(0, Refusing())
"""


def _other_rows(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.glob(f"{name}.tsv"):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join([lines[0], *reversed(lines[1:-2])]))

    return change


def _gone(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)


VERSION = """
from importlib import metadata
version = metadata.version
metadata.version = lambda name: "0.0.1" if name == {0!r} else version(name)
"""
DIFFERENCES = {
    "another hpcvdj": Difference("import hpcvdj; hpcvdj.__version__ = '0.0.1'", must=True),
    **{f"another {name}": Difference(VERSION.format(name), must=True) for name in ("numpy", "numba", "scipy")},
    "other options": Difference(options=True, must=True),
    "no numpy": Difference(_without("numpy"), must=True),
    "no h5py": Difference(_without("h5py")),
    "no numba": Difference(_without("numba"), must=True),
    "no pyarrow": Difference(_without("pyarrow")),
    "other tables": Difference(prepare=_other_rows("[tyc]")),
    "another germline table": Difference(prepare=_other_rows("g")),
    "no files": Difference(prepare=_gone),
    "numba's cache": Difference(env=(("NUMBA_CACHE_DIR", "cache"),)),
    "threads": Difference(env=(("NUMBA_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1"))),
    "fast mathematics": Difference(env=(("NUMBA_CPU_NAME", "generic"), ("NUMBA_CPU_FEATURES", ""))),
    "locale": Difference(env=(("LC_ALL", "C"), ("LANG", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0"))),
    "another locale": Difference(env=(("LC_ALL", "de_DE.UTF-8"),)),
    "hashes and time zone": Difference(env=(("PYTHONHASHSEED", "7"), ("TZ", "Asia/Tokyo"))),
    "optimised": Difference(env=(("PYTHONOPTIMIZE", "2"),)),
    "warnings are errors": Difference(env=(("PYTHONWARNINGS", "error::DeprecationWarning"),)),
    "no home": Difference(env=(("HOME", "/nonexistent"), ("TMPDIR", "/nonexistent"))),
    "narrow": Difference(env=(("COLUMNS", "20"), ("TERM", "dumb"), ("NO_COLOR", "1"))),
}  # fmt: skip

MAIN = "\nfrom hpcvdj.__main__ import main\nmain()\n"


def prepare(work: Path, expected: dict[str, Any]) -> None:
    """The tables, and what a single rank makes of them."""
    mutate.prepare(work)
    with_copies(work / "y.tsv", work / "c.tsv")
    for name, (words, target, _) in COMMANDS.items():
        code, said, *_ = mutate.ended((*words, "-o", target), work)
        assert code == 0, said
        expected[name] = result(work / target)
        for left in work.glob("o.*"):
            left.unlink()


def result(target: Path) -> Any:
    return mutate.content(target) if target.suffix == ".h5" else content(target)


def run(case: Case, work: Path, chance: random.Random, expected: dict[str, Any]) -> None:
    """Draw a case, run it, and compare."""
    how = list(DIFFERENCES)[case.number % len(DIFFERENCES)]
    name = chance.choice(list(COMMANDS))
    words, target, further = COMMANDS[name]
    difference, size = DIFFERENCES[how], chance.choice((2, 2, 3))
    other = chance.randrange(size)
    case.kind = f"{name}: rank {other} of {size} has {how}"
    folders = [work] * size
    if difference.prepare is not None:
        # Relative names: the other rank has files of its own.
        folders[other] = work.parent / "other"
        shutil.rmtree(folders[other], ignore_errors=True)
        shutil.copytree(work, folders[other])
        difference.prepare(folders[other])
    line: list[str] = []
    for rank, folder in enumerate(folders):
        own = difference if rank == other else Difference()
        program = work.parent / f"rank {rank}.py"
        program.write_text(own.program + MAIN)
        options = further if own.options else ()
        # Results are at the same place whatever the folder of a rank.
        arguments = ["-q", *words, *options, "-o", str(work / target), "--patience", "20"]
        if name == "generate":
            arguments = arguments[:-2]
        env = [word for key, value in own.env for word in ("-env", key, value)]
        line += [*([":"] * bool(line)), "-n", "1", "-wdir", str(folder), *env, sys.executable, str(program), *arguments]
    case.command = f"mpiexec {shlex.join([*words, '-o', target])}"
    case.exit_code, said, case.seconds = launched(line)
    ours = [own for own in said if own.startswith("hpcvdj: ") and "do not trust its tests" not in own]
    errors = [own for own in ours if "error:" in own]
    case.said = (errors or said[-1:] or [""])[-1].replace(f"{work}/", "").replace(f"{work.parent}/", "")[:200]
    written = (work / target).exists()
    if case.exit_code is None:
        case.exit_code, case.fault = -1, f"not ended after {LIMIT} s"
    elif any("Traceback" in own for own in said):
        case.fault = "a traceback"
    elif case.exit_code == 0:
        # Root reads: its files are those of the run.
        same = written and (result(work / target) == expected[name] or (difference.prepare and not other))
        case.fault = "must fail" if difference.must else "" if same else "another result"
    elif written:
        case.fault = "failed, and wrote"
    elif len(errors) != 1:
        case.fault = f"{len(errors)} lines"


def launched(line: list[str]) -> tuple[Any, list[str], float]:
    """Exit code (None if it had to be ended), lines on stderr and seconds of an mpiexec command."""
    begun = time.monotonic()
    job = subprocess.Popen(
        [MPIEXEC, *line], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        env={**os.environ, "COLUMNS": "200", "PYTHONPATH": str(mutate.ROOT)},
    )  # fmt: skip
    code = None
    try:
        _, said = job.communicate(timeout=LIMIT)
        code = job.returncode
    except subprocess.TimeoutExpired:
        for pid in [job.pid, *descendants(job.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _, said = job.communicate()
    return code, said.splitlines(), round(time.monotonic() - begun, 2)


if __name__ == "__main__":
    results: dict[str, Any] = {}
    sys.exit(campaign(
        parsed(__doc__ or "", 46).parse_args(), Case, partial(prepare, expected=results), partial(run, expected=results)
    ))  # fmt: skip
