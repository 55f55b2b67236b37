"""What the benchmarks share: their command line, tables of rates, durations in words, commands timed from outside.

A benchmark is a study of `hpcvdj.studies.pages`: a folder with `raw.csv` (every repeat, below comment lines that say
how it was measured) and `README.md`, which is made from `raw.csv` alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hpcvdj.studies.pages import PAGE, Study, render
from hpcvdj.studies.tables import spread

ROOT = Path(__file__).resolve().parents[1]
"""The repository; commands run here, so that they record relative paths."""

GERMLINE = Path("inputs/germline/mouse_trb_paper.tsv")

_THREAD_SETTINGS = ("NUMBA_NUM_THREADS", "OMP_WAIT_POLICY")


class Benchmark(Study):
    """A script that measures.

    about   for its help
    output  its default folder
    """

    about: ClassVar[str]
    output: ClassVar[Path]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the benchmark's own options; `threads` must be one of them."""
        raise NotImplementedError

    def facts(self, options: argparse.Namespace) -> dict[str, str]:
        """More comment lines for the raw file."""
        return {}

    def measure(self, options: argparse.Namespace) -> Iterable[Any]:
        """The raw rows."""
        raise NotImplementedError

    def main(self) -> int:
        """Measure, unless only asked to render, and render; 1 if what must be equal differs."""
        parser = argparse.ArgumentParser(
            description=f"{self.about} Relative paths start at the repository.",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        parser.add_argument("--output", metavar="DIR", type=Path, default=self.output, help="folder of the study")
        parser.add_argument("--render", action="store_true", help="only make README.md again, from raw.csv")
        self.add_arguments(parser)
        options = parser.parse_args()
        folder = ROOT / options.output
        if not options.render:
            self._measure(options, folder / "raw.csv")
        same = render(folder, self)
        print(f"written {folder / PAGE}{'' if same else ': what must be equal DIFFERS'}")
        return 0 if same else 1

    def _measure(self, options: argparse.Namespace, target: Path) -> None:
        from hpcvdj.runs.ranks import set_threads
        from hpcvdj.runs.run import Run
        from hpcvdj.studies.rows import launch_facts, write_rows

        for name in _THREAD_SETTINGS:
            os.environ.pop(name, None)
        run = Run()
        load = {"load average at the start": f"{os.getloadavg()[0]:.2f}"}
        # numba reads the number of threads when it is imported, so it is set before the first use of a kernel.
        options.threads = set_threads(run.world, options.threads)
        command = ["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]
        facts = launch_facts(self.name, command, run) | load | self.facts(options)
        write_rows(target, facts, list(self.measure(options)))


def rate_parser(about: str | None) -> argparse.ArgumentParser:
    """The command line of a script that only writes a table of rates; `about` is its docstring."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--output", metavar="CSV", type=Path, required=True, help="file of raw rows")
    parser.add_argument("--models", nargs="+", default=["mouse_trb", "human_trb", "human_tra", "human_igh"])
    return parser


def rate_row(rates: Sequence[float], **what: Any) -> dict[str, Any]:
    """A row of such a table: `what` was measured, and the median and the range of its rates."""
    named = {"rate": statistics.median(rates), "slowest": min(rates), "fastest": max(rates)}
    return what | {name: f"{rate:.4g}" for name, rate in named.items()}


def write_rates(target: Path, fields: Sequence[str], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write rows to a file and to stdout, each as soon as it is measured, and return them.

    A field that a row lacks is empty.
    """
    written = []
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "w", newline="") as stream:
        writer = csv.DictWriter(stream, fields, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            stream.flush()
            print(*row.values(), sep=", ", flush=True)
            written.append(row)
    return written


def durations(values: Sequence[float], centre: float | None = None) -> str:
    """The median of seconds, or another `centre`, with their range, all in the unit that fits it."""
    unit, size = _time_unit(statistics.median(values) if centre is None else centre)
    return f"{spread([value / size for value in values], three_digits, centre and centre / size)} {unit}"


def _time_unit(seconds: float) -> tuple[str, float]:
    units = (("h", 7200.0, 3600.0), ("min", 120.0, 60.0), ("s", 0.1, 1.0), ("ms", 0.0, 1e-3))
    return next((name, size) for name, least, size in units if seconds >= least)


def three_digits(value: float) -> str:
    """A number with three significant digits, never with an exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:#.3g}"


def cores_used(repeats: Iterable[Any]) -> str:
    """Processor seconds over wall seconds; less than the threads asked for if others use the machine too."""
    return f"{statistics.median(row.cpu_seconds / row.seconds for row in repeats):.2f}"


@dataclass(frozen=True)
class Finished:
    """A command that ended well: its stdout, wall and processor seconds, and peak memory of its largest process."""

    stdout: str
    wall: float
    cpu: float
    peak_rss: int


def run(command: Sequence[object], **environ: str) -> Finished:
    """Run a command in the repository and time it from outside; ends the benchmark if it fails.

    Peak memory comes from the kernel's account of the ended child and the children it waited for.  It is at least
    this process's own size at the start.
    """
    words = list(map(str, command))
    environment = {name: value for name, value in os.environ.items() if name not in _THREAD_SETTINGS}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        child = subprocess.Popen(words, cwd=ROOT, env={**environment, **environ}, stdout=out, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, log):
            stream.seek(0)
        if child.returncode:
            sys.exit(f"{shlex.join(words)} ended with {child.returncode}:\n{log.read()}")
        # Linux counts ru_maxrss in KiB, macOS in bytes.
        scale = 1 if sys.platform == "darwin" else 1024
        return Finished(out.read(), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale)


HPCVDJ = (sys.executable, "-m", "hpcvdj")
"""The command `hpcvdj` of this interpreter."""


def mpiexec(ranks: int, launcher: str) -> list[str]:
    """What to write before a command to start it as `ranks` ranks; nothing for one rank."""
    if ranks == 1:
        return []
    path = shutil.which(launcher, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if path is None:
        sys.exit(f"{launcher}: not found; install hpcvdj[mpich], name another with --mpiexec, or measure one rank only")
    return [path, "-n", str(ranks)]


def say(text: str) -> None:
    """Progress, on stderr and at once."""
    print(text, file=sys.stderr, flush=True)
