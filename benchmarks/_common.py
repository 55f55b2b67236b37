"""What the benchmarks share: raw rows on disk, Markdown made from them, commands timed from outside.

A study is a folder with `raw.csv` (every repeat, below `# name: value` lines that say where it was measured) and
`README.md`, which is made from `raw.csv` alone: no figure is typed in.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
"""The repository; commands run here, so that what they record are relative paths."""

GERMLINE = Path("inputs/germline/mouse_trb_paper.tsv")

RAW, REPORT = "raw.csv", "README.md"

_THREAD_SETTINGS = ("NUMBA_NUM_THREADS", "OMP_WAIT_POLICY")

T = TypeVar("T")


def environment(script: str, threads: int) -> dict[str, str]:
    """Where and with what a study is measured: the `# name: value` lines of its raw file."""
    from hpcvdj import __version__
    from hpcvdj.runs.ranks import usable_cores
    from hpcvdj.runs.provenance import library_versions

    return {
        "command": shlex.join(["python", f"benchmarks/{script}", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "processor": f"{processor()}, {len(usable_cores())} cores usable",
        "threads": str(threads),
        "load average at the start": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        "hpcvdj": __version__,
        **library_versions(),
    }


def processor() -> str:
    """The processor's model name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def forget_thread_settings() -> None:
    """Drop what the environment says of threads, so that the options of the benchmark hold."""
    for name in _THREAD_SETTINGS:
        os.environ.pop(name, None)


def write_raw(folder: Path, facts: dict[str, str], rows: Sequence[Any]) -> None:
    """`rows`, dataclass instances of one kind, below the `facts`."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / RAW, "w", newline="") as stream:
        stream.writelines(f"# {name}: {value}\n" for name, value in facts.items())
        names = [field.name for field in fields(rows[0])]
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


def read_raw(folder: Path, kind: type[T]) -> tuple[dict[str, str], list[T]]:
    """The facts and rows of a study; each field of `kind` is a str, int or float, as its default says."""
    path = folder / RAW
    if not path.is_file():
        sys.exit(f"{path}: no raw rows to render; measure first, without --render")
    lines = path.read_text().splitlines()
    head = [line[2:].partition(": ") for line in lines if line.startswith("# ")]
    types = {field.name: type(field.default) for field in fields(kind)}  # type: ignore[arg-type]
    table = csv.DictReader(line for line in lines if not line.startswith("# "))
    rows = [kind(**{name: types[name](text) for name, text in row.items()}) for row in table]
    return {name: value for name, _, value in head}, rows


def parser(description: str, output: Path) -> argparse.ArgumentParser:
    """The command line of a benchmark, as far as all have it."""
    parser = argparse.ArgumentParser(
        description=f"{description} Relative paths start at the repository.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--output", metavar="DIR", type=Path, default=output, help="folder for raw.csv and README.md")
    parser.add_argument("--render", action="store_true", help="remake README.md from raw.csv, measure nothing")
    return parser


def study(
    options: argparse.Namespace,
    measure: Callable[[argparse.Namespace], tuple[dict[str, str], list[Any]]],
    render: Callable[[Path], bool],
    equal: str,
    different: str,
) -> int:
    """Measure, unless only asked to render, and render; the exit code: 1 if what must be equal is not."""
    folder = ROOT / options.output
    if not options.render:
        write_raw(folder, *measure(options))
    same = render(folder)
    print(equal if same else f"{different}: see {REPORT}")
    print(f"written {options.output / REPORT}")
    return 0 if same else 1


def facts_table(facts: dict[str, str]) -> str:
    """The facts as Markdown."""
    return markdown(("measured", ""), [(name, f"`{v}`" if name == "command" else v) for name, v in facts.items()])


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def spread(values: Sequence[float], form: Callable[[float], str], middle: float | None = None) -> str:
    """The median of `values` (or another `middle`) with their range; one value stands alone."""
    centre = form(statistics.median(values) if middle is None else middle)
    return f"{centre} ({form(min(values))}…{form(max(values))})" if len(values) > 1 else centre


def spread_of_durations(values: Sequence[float], middle: float | None = None) -> str:
    """The same for seconds, all in the unit that fits the middle."""
    unit, size = _time_unit(statistics.median(values) if middle is None else middle)
    return f"{spread([v / size for v in values], three_digits, middle and middle / size)} {unit}"


def duration(seconds: float) -> str:
    """Seconds in the unit that people would use."""
    unit, size = _time_unit(seconds)
    return f"{three_digits(seconds / size)} {unit}"


def _time_unit(seconds: float) -> tuple[str, float]:
    units = (("h", 3600.0), ("min", 60.0), ("s", 0.05), ("ms", 0.0))
    name = next(unit for unit, size in units if seconds >= 2 * size)
    return name, {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3}[name]


def three_digits(value: float) -> str:
    """A number to three significant digits, never in exponent form."""
    if value == 0 or abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:#.3g}"


@dataclass(frozen=True)
class Finished:
    """A command that ended well: its stdout, wall and processor seconds, and peak memory of its largest process."""

    stdout: str
    wall: float
    cpu: float
    peak_rss: int


def run(command: Sequence[str], **environ: str) -> Finished:
    """Run a command in the repository and time it from outside; ends the benchmark if it fails.

    Peak memory comes from the kernel's account of the ended child and the children it waited for.  It is at least
    this process's own size at the start, so a benchmark that reports it stays small itself.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _THREAD_SETTINGS}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        child = subprocess.Popen(list(command), cwd=ROOT, env={**environment, **environ}, stdout=out, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, log):
            stream.seek(0)
        if child.returncode:
            sys.exit(f"{shlex.join(command)} ended with {child.returncode}:\n{log.read()}")
        # Linux counts ru_maxrss in KiB, macOS in bytes.
        scale = 1 if sys.platform == "darwin" else 1024
        return Finished(out.read(), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale)


def hpcvdj(*arguments: str | Path | int) -> list[str]:
    """The command `hpcvdj` of this interpreter."""
    return [sys.executable, "-m", "hpcvdj", *map(str, arguments)]


def mpiexec(ranks: int, launcher: str, command: Sequence[str]) -> list[str]:
    """`command` on `ranks` ranks; on one rank, without a launcher."""
    if ranks == 1:
        return list(command)
    beside = Path(sys.executable).parent / launcher
    found = str(beside) if beside.is_file() else shutil.which(launcher)
    if found is None:
        sys.exit(f"{launcher}: not found; install hpcvdj[mpich], name another with --mpiexec, or measure one rank only")
    return [found, "-n", str(ranks), *command]


def say(text: str) -> None:
    """Progress, on stderr and at once."""
    print(text, file=sys.stderr, flush=True)
