"""Stop one rank of a run (SIGSTOP) at chosen moments, and measure how long the other ranks wait for it.

python tests/robustness/stopped_ranks.py --repeats 2 -o results/robustness/stopped/count.csv

A case is a command, the moment, and the rank that stops.  The runs have 3 ranks and --patience 5.  What stops a rank is
planted in the program that the ranks run, which is otherwise the command `hpcvdj`.  Needs Linux and mpiexec.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path

from kill_and_resume import GERMLINE, MPIEXEC, SMALL, descendants, inputs_of, ranks_of

RANKS, PATIENCE, SECONDS = 3, 5, 60
GRACE = 5
"""Seconds in addition to the patience within which the other ranks must have ended."""

COMMANDS = {
    "count": ["count", str(SMALL), "-g", str(GERMLINE), "--method", "bitwise", "--max-n", "3", "--backend", "cpu"],
    "motifs compare": ["motifs", "compare", "many.fasta", "-k", "8", "-d", "1", "--strands", "both", "--top", "3"],
}
MOMENTS = ("start", "reading", "computing", "combining", "writing", "leaving")

PROGRAM = """
import os, signal, sys, time
VICTIM, MOMENT = int(os.environ["PMI_RANK"]) == {victim}, {moment!r}
open("rank-" + os.environ["PMI_RANK"], "w").write(str(os.getpid()))
def stop(pid=os.getpid()):
    open("stopped", "w").write(str(time.monotonic()))
    os.kill(pid, signal.SIGSTOP)
if VICTIM and MOMENT == "start":
    stop()
def before(kind, name, calls=1):
    "Stop this rank, or have root stop the other one, at a call of a method."
    called, left = getattr(kind, name), [calls]
    def stopping(*arguments, **options):
        left[0] -= 1
        if not left[0]:
            stop(os.getpid() if VICTIM else int(open("rank-{victim}").read()))
        return called(*arguments, **options)
    setattr(kind, name, stopping)
import hpcvdj.motifs.comparison as compare
from hpcvdj.motifs.results import MotifWriter
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.results import result_output
from hpcvdj.runs.driver import Driver
from hpcvdj.runs.ranks import World
import hpcvdj.cli as cli, hpcvdj.cli.common as common
compare.layout_of = lambda *ignored: {{"load": 512, "height": 64}}
if MOMENT == "reading":
    before(Inputs, "read")
    before(compare, "_read")
elif MOMENT == "computing" and VICTIM:
    before(Driver, "_end", 3)
    before(compare._TileWork, "compute", 2)
elif MOMENT == "combining" and VICTIM:
    before(World, "start_reduce", 5)
elif MOMENT == "writing":
    before(result_output, "write_result")
    before(MotifWriter, "finish")
elif MOMENT == "leaving" and VICTIM:
    import atexit
    begin = common.world
    def started():
        world = begin()
        atexit.register(stop)
        return world
    common.world = started
cli.main()
"""


@dataclass
class Case:
    """One case, and what came of it.

    others_ended, job_ended, victim_ended  seconds from the stop until the other ranks, mpiexec, and the stopped rank
                                           had ended
    said                                   the first line of hpcvdj on stderr
    """

    number: int
    command: str
    moment: str
    victim: int
    others_ended: float = -1.0
    job_ended: float = -1.0
    exit_code: int = 0
    victim_ended: float = -1.0
    result: bool = False
    said: str = ""

    @property
    def over(self) -> bool:
        """Whether all have ended."""
        return min(self.others_ended, self.job_ended, self.victim_ended) >= 0

    @property
    def good(self) -> bool:
        """Whether the ranks ended in time, with a code of failure; before root writes there is no result."""
        in_time = self.over and max(self.others_ended, self.job_ended, self.victim_ended) <= PATIENCE + GRACE
        may_have = self.moment == "leaving" or (self.moment == "writing" and self.victim != 0)
        return in_time and self.exit_code != 0 and (may_have or not self.result)


def alive(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run(case: Case, folder: Path) -> None:
    """Start the ranks, wait for the stop, and wait for the end; notes what it finds in `case`."""
    program = folder / "program.py"
    program.write_text(PROGRAM.format(victim=case.victim, moment=case.moment))
    words = [*COMMANDS[case.command], "-o", "o.h5", "--patience", str(PATIENCE), "--checkpoint-every", "0"]
    if case.command != "count":
        words = words[:-2]
    job = subprocess.Popen(
        [MPIEXEC, "-n", str(RANKS), sys.executable, str(program), "-q", *words], cwd=folder, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    ranks: dict[int, int] = {}
    deadline = time.monotonic() + SECONDS
    try:
        while not (folder / "stopped").exists() or not (folder / "stopped").read_text():
            assert job.poll() is None, (case, job.stderr and job.stderr.read())
            assert time.monotonic() < deadline, case
            ranks |= ranks_of(job.pid)
            time.sleep(0.01)
        stopped = float((folder / "stopped").read_text())
        ranks |= ranks_of(job.pid)
        others = [pid for rank, pid in ranks.items() if rank != case.victim]
        # PATIENCE_SECONDS, the limit without --patience, is 120 s: this many seconds show it.
        while (
            time.monotonic() < stopped + 3 * SECONDS and min(case.others_ended, case.job_ended, case.victim_ended) < 0
        ):
            now = round(time.monotonic() - stopped, 2)
            if case.others_ended < 0 and not any(map(alive, others)):
                case.others_ended = now
            if case.victim_ended < 0 and not alive(ranks[case.victim]):
                case.victim_ended = now
            if case.job_ended < 0 and job.poll() is not None:
                case.job_ended, case.exit_code = now, job.returncode
            time.sleep(0.01)
    finally:
        for pid in [job.pid, *descendants(job.pid), *ranks.values()]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
    lines = job.communicate()[1].splitlines()
    case.said = next((line for line in lines if line.startswith("hpcvdj: ")), " | ".join(lines)[:200])
    case.result = (folder / "o.h5").exists()


def campaign(cases: list[Case], output: Path | None = None) -> list[Case]:
    """Run the cases; the rows also go to `output`."""
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            inputs_of(Path(folder), "motifs")
            run(case, Path(folder))
        print(case, flush=True)
        if output:
            output.parent.mkdir(parents=True, exist_ok=True)
            with open(output, "w", newline="") as stream:
                writer = csv.DictWriter(stream, [field.name for field in fields(Case)], lineterminator="\n")
                writer.writeheader()
                writer.writerows(asdict(case) for case in cases[: case.number + 1])
    return cases


def main() -> int:
    """Run the cases; exit code 1 if any went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commands", nargs="*", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--moments", nargs="*", choices=MOMENTS, default=list(MOMENTS))
    parser.add_argument("--victims", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="raw rows, CSV")
    options = parser.parse_args()
    drawn = product(range(options.repeats), options.commands, options.moments, options.victims)
    cases = [Case(number, command, moment, victim) for number, (_, command, moment, victim) in enumerate(drawn)]
    campaign(cases, options.output)
    good = sum(case.good for case in cases)
    print(f"{good} of {len(cases)} cases right; the last ranks ended after {max(case.job_ended for case in cases)} s")
    return 0 if good == len(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
