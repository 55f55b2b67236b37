"""What the benchmarks share: command line, raw rows with how they were measured, pages, commands timed from outside.

A benchmark is a generator of rows, dictionaries or dataclass instances.  `record` writes them as CSV, each as soon as
it is measured, below comment lines with the command, the machine and the versions.  Rows that have lists in them are
added to a file of JSON lines.
"""

import argparse
import csv
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
"""The repository; commands run here, so that they record relative paths."""

sys.path.insert(1, str(ROOT))  # some benchmarks take what the tests have, such as OLGA as a peer

HPCVDJ = (sys.executable, "-m", "hpcvdj")
"""The command `hpcvdj` of this interpreter."""

LOCI = ["human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb"]

PEERS = "olga", "vdjtools", "righor", "fastsk", "pandas", "polars", "airr"
"""Programs whose versions are in the raw files, if they are installed."""


def record(
    about: str | None,
    measured: Callable[[argparse.Namespace], Iterable[Any]],
    study: Any = None,
    **arguments: tuple[Any, str],
) -> list[dict[str, Any]]:
    """Read the command line, measure, write the rows and return them; the program ends if a page's check fails.

    about      the docstring of the script, for its help
    study      a Study: README.md of its folder is made from the rows
    arguments  default and help of each option; a list takes several values, False is a flag
    """
    options = _parsed(about or "", study, arguments)
    rows: list[dict[str, Any]] = []
    if not options.render:
        target = options.output / "raw.csv" if study else options.output
        facts = _facts(options, study)
        target.parent.mkdir(parents=True, exist_ok=True)
        from hpcvdj.studies.rows import write_rows

        for row in measured(options):
            rows.append(asdict(row) if is_dataclass(row) else row)
            if target.suffix == ".jsonl":
                with target.open("a") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
            else:
                write_rows(target, facts, [
                    {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
                    for row in rows
                ])  # fmt: skip
            print(*rows[-1].values(), sep=", ", flush=True)
    if study:
        from hpcvdj.studies.pages import render

        sys.exit(0 if render(options.output, study) else "what must be equal DIFFERS")
    return rows


def _parsed(about: str, study: Any, arguments: dict[str, tuple[Any, str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    if study:
        folder = ROOT / "results" / study.name
        parser.add_argument("--output", metavar="DIR", type=Path, default=folder, help="folder of the raw rows, page")
        parser.add_argument("--render", action="store_true", help="only make README.md again, from raw.csv")
    else:
        parser.set_defaults(render=False)
        parser.add_argument("--output", metavar="FILE", type=Path, required=True, help="raw rows: .csv or .jsonl")
    for name, (default, text) in arguments.items():
        option, several = "--" + name.replace("_", "-"), isinstance(default, list)
        if default is False:
            parser.add_argument(option, action="store_true", help=text)
            continue
        shown = " ".join(map(str, default)) if several else default
        text += "" if default is None or shown == "" else f" (default: {shown})"
        kind = type(default[0]) if several and default else str if several or default is None else type(default)
        parser.add_argument(option, nargs="*" if several else None, type=kind, default=default, help=text, metavar="X")
    return parser.parse_args()


def _facts(options: argparse.Namespace, study: Any) -> dict[str, str]:
    """How the rows are measured; also sets the number of threads, where it is an option."""
    from hpcvdj.runs.ranks import set_threads
    from hpcvdj.runs.run import Run

    run = Run()
    if "threads" in options:
        options.threads = set_threads(run.world, options.threads)
    from hpcvdj.studies.rows import launch_facts

    script = Path(sys.argv[0])
    command = ["python", f"benchmarks/{script.name}", *sys.argv[1:]]
    facts = launch_facts(study.name if study else script.stem, command, run)
    facts["load average at the start"] = f"{os.getloadavg()[0]:.2f}"
    return facts | {name: metadata.version(name) for name in PEERS if find_spec(name)}


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table between tabs."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What some work returns, and its wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def rate_row(rates: Sequence[float], **what: Any) -> dict[str, Any]:
    """A row of a table of rates: `what` was measured, and the median and the range of its rates."""
    named = {"rate": statistics.median(rates), "slowest": min(rates), "fastest": max(rates)}
    return what | {name: f"{rate:.4g}" for name, rate in named.items()}


@dataclass(frozen=True)
class Finished:
    """A command that ended: its exit code, stdout, wall and processor seconds, and peak memory in bytes.

    The memory is that of the largest process, by the kernel's account of the ended child and the children it waited
    for.  It is at least this process's own size at the start.
    """

    status: int
    stdout: str
    wall: float
    cpu: float
    peak_rss: int

    @property
    def used(self) -> dict[str, float]:
        """Time and memory, for a raw row."""
        return {"seconds": self.wall, "cpu_seconds": self.cpu, "peak_mb": self.peak_rss / 1e6}


def run(command: Sequence[object], *, check: bool = True, **environ: str) -> Finished:
    """Run a command in the repository and time it from outside.

    check  end the benchmark if the command fails
    """
    words = list(map(str, command))
    environment = {name: os.environ[name] for name in os.environ.keys() - {"NUMBA_NUM_THREADS", "OMP_WAIT_POLICY"}}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        child = subprocess.Popen(words, cwd=ROOT, env={**environment, **environ}, stdout=out, stderr=log)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        for stream in (out, log):
            stream.seek(0)
        if child.returncode:
            said = f"{shlex.join(words)} ended with {child.returncode}:\n{log.read()}"
            sys.exit(said) if check else say(said)
        # Linux counts ru_maxrss in KiB, macOS in bytes.
        scale = 1 if sys.platform == "darwin" else 1024
        return Finished(child.returncode, out.read(), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale)


def say(text: str) -> None:
    """Progress, on stderr and at once."""
    print(text, file=sys.stderr, flush=True)
