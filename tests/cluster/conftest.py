"""A Slurm to submit the job scripts to: the one that answers here, or one of a single node brought up for the tests."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpcvdj.results.reader import Result
from tests.conftest import GERMLINE, ROOT, SMALL

HERE = Path(__file__).parent
CANNOT_HAVE = 3
"""What slurm-up.sh exits with where Slurm cannot be had: no root, no packages."""

FINISHED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}


@dataclass
class Job:
    """A submitted job, or one element of an array."""

    name: str
    environment: dict[str, str]

    def command(self, *words, check=True):
        """Run a command of Slurm's; what it prints."""
        return subprocess.run(words, capture_output=True, text=True, check=check, env=self.environment).stdout

    def facts(self):
        """What Slurm knows of the job."""
        return dict(re.findall(r"(\w+)=(\S*)", self.command("scontrol", "show", "job", "--oneliner", self.name)))

    def log(self):
        """What the job has printed so far."""
        path = Path(self.facts()["StdOut"])
        return path.read_text() if path.is_file() else ""

    def wait(self, condition, seconds=400):
        """Wait until `condition(facts)` holds, which it must before the job is over; the facts."""
        end = time.monotonic() + seconds
        while not condition(facts := self.facts()):
            assert facts["JobState"] not in FINISHED, f"the job is over: {self.log()}"
            assert time.monotonic() < end, f"waited {seconds} s: {facts}\n{self.log()}"
            time.sleep(0.3)
        return facts

    def ended(self, seconds=400):
        """Wait until the job has ended; the facts."""
        return self.wait(lambda facts: facts["JobState"] in FINISHED, seconds)

    def succeeded(self, seconds=200):
        """Wait for the job, which must end well; the facts."""
        facts = self.ended(seconds)
        assert facts["JobState"] == "COMPLETED", self.log()
        return facts

    def kill(self, *ranks):
        """Kill ranks of `hpcvdj count`."""
        if self.facts()["BatchHost"] != socket.gethostname():
            pytest.skip("the job runs on another host, where its ranks are out of reach")
        running = dict(self._processes())
        for rank in ranks:
            os.kill(running[rank], signal.SIGKILL)

    def _processes(self):
        """Rank and process id of each."""
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                environment = dict(
                    pair.split(b"=", 1) for pair in (folder / "environ").read_bytes().split(b"\0") if b"=" in pair
                )
            except OSError:
                continue
            mine = environment.get(b"SLURM_JOB_ID") == self.name.encode() and b"SLURM_PROCID" in environment
            if mine and b"count" in words and b"srun" not in words[0]:
                yield int(environment[b"SLURM_PROCID"]), int(folder.name)


def answers(environment):
    """Whether a Slurm answers."""
    try:
        done = subprocess.run(["sinfo", "--noheader"], capture_output=True, env=environment, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """The environment in which Slurm's commands and this Python's hpcvdj are found; jobs share compiled kernels."""
    if os.environ.get("HPCVDJ_TEST_SLURM") != "1":
        pytest.skip("submits jobs, and as root installs and starts a Slurm where none runs: HPCVDJ_TEST_SLURM=1 allows")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PMI", "OMPI_"))}
    environment |= {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment["HPCVDJ_SLURM"] = str(ROOT / "slurm")
    environment["NUMBA_CACHE_DIR"] = str(tmp_path_factory.mktemp("numba"))
    if answers(environment):
        yield environment
        return
    # Short, since sockets lie in it.
    folder = Path(tempfile.mkdtemp(prefix="hpcvdj-slurm-"))
    try:
        up = subprocess.run([HERE / "slurm-up.sh", folder], capture_output=True, text=True, timeout=280, check=False)
        if up.returncode == CANNOT_HAVE:
            pytest.skip(up.stderr.strip())
        assert up.returncode == 0, up.stderr
        yield environment | {"SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        subprocess.run([HERE / "slurm-down.sh", folder], check=True)
        shutil.rmtree(folder)


@pytest.fixture
def submit(slurm, tmp_path):
    """A function that submits a job script from the root of the repository; what still runs at the end is cancelled."""
    jobs = []

    def submit(script, *arguments, options=(), environment=None):
        options = ["--time=10", "--mem-per-cpu=200M", "--cpus-per-task=1", f"--output={tmp_path}/%x-%j.out", *options]
        words = ["sbatch", "--parsable", *options, ROOT / "slurm" / script, *arguments]
        done = subprocess.run(
            list(map(str, words)), capture_output=True, text=True, check=False, env=environment or slurm, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        jobs.append(Job(done.stdout.strip().partition(";")[0], slurm))
        return jobs[-1]

    yield submit
    for job in jobs:
        if job.facts()["JobState"] not in FINISHED:
            job.command("scancel", job.name)
            job.ended()


@pytest.fixture(scope="session")
def serial(tmp_path_factory):
    """A function that counts a table without Slurm, with `direct`: the counters that a job must give."""

    def serial(junctions=SMALL, max_n=2):
        path = tmp_path_factory.mktemp("serial") / "serial.h5"
        words = ["count", junctions, "-g", GERMLINE, "-o", path, "--max-n", max_n, "--backend", "cpu"]
        subprocess.run([sys.executable, "-m", "hpcvdj", *map(str, words)], check=True, cwd=ROOT, capture_output=True)
        return counters(path)

    return serial


def counters(path):
    """All counters of a result file."""
    with Result(path) as result:
        return result.counters[:]
