"""The job scripts without Slurm: shellcheck, and how they handle signals and exit codes, with a stand-in for srun."""

import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPTS = [path for pattern in ("slurm/*.s*", "tests/cluster/*.sh", ".ci/run") for path in sorted(ROOT.glob(pattern))]
JOBS = [f"{name}.sbatch" for name in ("count", "count-gpu", "array", "motifs", "infer", "cohort", "scaling")]
SHELLCHECK = shutil.which("shellcheck", path=Path(sys.executable).parent) or shutil.which("shellcheck")


@pytest.mark.slow
@pytest.mark.skipif(SHELLCHECK is None, reason="no shellcheck")
def test_shellcheck():
    assert len(SCRIPTS) >= 10
    done = subprocess.run([SHELLCHECK, "-x", *SCRIPTS], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def job(tmp_path):
    """A function that starts a job script as Slurm would, with stand-ins for the commands.

    srun runs its command without options; scontrol records its arguments and the caches that exist; hpcvdj runs the
    shell code `count`.
    """
    started = []

    def job(count, script="count.sbatch", arguments=("in.tsv", "g.tsv", "out.h5"), **environment):
        commands = {
            "srun": 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"',
            "scontrol": f'echo "$@" $(ls {tmp_path} | grep hpcvdj-) >>{tmp_path}/scontrol',
            "hpcvdj": f'mkdir -p "$CUPY_CACHE_DIR"; echo "$@" >>{tmp_path}/hpcvdj\n'
            f'[ "$1" != info ] || exit "${{INFO:-0}}"\n{count}',
        }
        for name, body in commands.items():
            path = tmp_path / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/usr/bin/env bash\n{body}\n")
            path.chmod(0o755)
        slurm = {"JOB_ID": "7", "JOB_NODELIST": "n1", "JOB_NUM_NODES": "1", "CPUS_PER_TASK": "2"}
        paths = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "TMPDIR": str(tmp_path), "SLURM_SUBMIT_DIR": str(ROOT)}
        variables = paths | {f"SLURM_{name}": value for name, value in slurm.items()} | environment
        with open(tmp_path / "log", "a") as log:
            process = subprocess.Popen(
                ["bash", ROOT / "slurm" / script, *arguments],
                env=variables, stdout=log, stderr=log, cwd=tmp_path, start_new_session=True,
            )  # fmt: skip
        started.append(process)
        return process

    yield job
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


READY = 'trap "sleep 0.2; exit 75" USR1 TERM; touch ready; while :; do sleep 0.05; done'
"""A count that takes a moment to save its work when a signal arrives; the script must wait for it."""


def send(process, folder, number):
    """Send the job script a signal as soon as it counts; returns its exit code."""
    end = time.monotonic() + 30
    while not (folder / "ready").exists():
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.02)
    process.send_signal(number)
    return process.wait(timeout=30)


def lines(path):
    """The lines of a file; none if the file does not exist."""
    return path.read_text().splitlines() if path.exists() else []


def test_a_job_near_its_time_limit_goes_back_to_the_queue(job, tmp_path):
    assert send(job(READY), tmp_path, signal.SIGUSR1) == 75
    assert lines(tmp_path / "scontrol") == ["requeue 7"]
    command = "count in.tsv --germline g.tsv --output out.h5 --resume --backend cpu"
    assert lines(tmp_path / "hpcvdj") == ["info", command]


def test_a_rank_that_cannot_handle_the_signal_yet_is_no_failure(job, tmp_path):
    """USR1 ends Python before its handlers are installed; srun then returns 128 + 10."""
    assert send(job("touch ready; exec sleep 30"), tmp_path, signal.SIGUSR1) == 128 + signal.SIGUSR1
    assert lines(tmp_path / "scontrol") == ["requeue 7"]


def test_a_cancelled_job_saves_its_work_and_is_not_requeued(job, tmp_path):
    assert send(job(READY), tmp_path, signal.SIGTERM) == 75
    assert lines(tmp_path / "scontrol") == []
    assert "stopped with a checkpoint" in (tmp_path / "log").read_text()


def test_a_job_is_not_requeued_after_the_largest_number_of_restarts(job, tmp_path):
    assert send(job(READY, SLURM_RESTART_COUNT="3", HPCVDJ_MAX_RESTARTS="3"), tmp_path, signal.SIGUSR1) == 75
    assert lines(tmp_path / "scontrol") == []
    assert "time limit reached 4 times, not requeued" in (tmp_path / "log").read_text()


def test_a_job_that_finishes_after_the_signal_is_not_requeued(job, tmp_path):
    assert send(job('trap "exit 0" USR1; touch ready; while :; do sleep 0.05; done'), tmp_path, signal.SIGUSR1) == 0
    assert lines(tmp_path / "scontrol") == []


@pytest.mark.parametrize("code", [0, 1, 2, 137])
def test_the_exit_code_is_that_of_the_ranks(job, tmp_path, code):
    assert job(f"exit {code}").wait(timeout=30) == code
    assert lines(tmp_path / "scontrol") == []
    assert not (tmp_path / "hpcvdj-7").exists()


def test_nothing_is_counted_if_info_fails(job, tmp_path):
    assert job("exit 0", INFO="1").wait(timeout=30) == 1
    assert lines(tmp_path / "hpcvdj") == ["info"]
    assert not (tmp_path / "hpcvdj-7").exists()


def test_each_job_has_its_own_caches(job, tmp_path):
    written = f'echo "$CUPY_CACHE_DIR $NUMBA_CACHE_DIR $NUMBA_NUM_THREADS" >{tmp_path}/caches'
    assert job(written).wait(timeout=30) == 0
    assert lines(tmp_path / "caches") == [f"{tmp_path}/hpcvdj-7/cupy {tmp_path}/hpcvdj-7/numba 2"]


def test_jobs_share_the_caches_that_a_site_sets(job, tmp_path):
    own = {f"{name}_CACHE_DIR": f"{tmp_path}/shared-{name}" for name in ("CUPY", "NUMBA")}
    assert job(f'echo "$CUPY_CACHE_DIR $NUMBA_CACHE_DIR" >{tmp_path}/caches', **own).wait(timeout=30) == 0
    assert lines(tmp_path / "caches") == [f"{tmp_path}/shared-CUPY {tmp_path}/shared-NUMBA"]
    assert (tmp_path / "shared-CUPY").is_dir()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm")
@pytest.mark.parametrize(("restarts", "left"), [("0", True), ("1", False)])
def test_a_restart_removes_the_shared_memory_of_killed_ranks(job, restarts, left):
    """Shared memory that a process uses, or that is new, remains."""
    paths = [Path(f"/dev/shm/mpich_shm_hpcvdj{os.getpid()}_{name}") for name in ("killed", "used", "new")]
    try:
        for path in paths:
            path.write_bytes(b"x" * mmap.PAGESIZE)
        for path in paths[:2]:
            os.utime(path, (time.time() - 60,) * 2)
        with open(paths[1], "r+b") as stream, mmap.mmap(stream.fileno(), 0):
            assert job("exit 0", SLURM_RESTART_COUNT=restarts).wait(timeout=30) == 0
        assert [path.exists() for path in paths] == [left, True, True]
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("script", JOBS)
def test_too_few_arguments_are_refused(job, tmp_path, script):
    assert job("exit 0", script, ("in.tsv",)).wait(timeout=30) == 2
    assert f"{script}: error: expected" in (tmp_path / "log").read_text()
    assert lines(tmp_path / "hpcvdj") == []


@pytest.mark.parametrize("script", JOBS)
def test_a_script_that_does_not_find_common_sh_says_so(job, tmp_path, script):
    assert job("exit 0", script, SLURM_SUBMIT_DIR=str(tmp_path)).wait(timeout=30) == 2
    assert "set HPCVDJ_SLURM" in (tmp_path / "log").read_text()


MOTIFS = "motifs compare s.fasta --output o.h5 --resume"


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, "--backend cpu"),
        ({"SLURM_MEM_PER_CPU": "2048"}, "--backend cpu --memory 2048e-3"),
        ({"SLURM_MEM_PER_CPU": "2048", "SLURM_GPUS_PER_TASK": "1"}, "--backend cuda --strict-binding"),
    ],
)
def test_motifs_use_the_resources_of_the_job(job, tmp_path, environment, options):
    assert job("exit 0", "motifs.sbatch", ("s.fasta", "o.h5", "-k", "8"), **environment).wait(timeout=30) == 0
    assert lines(tmp_path / "hpcvdj") == ["info", f"{MOTIFS} {options} -k 8"]


def test_motifs_near_their_time_limit_go_back_to_the_queue(job, tmp_path):
    assert send(job(READY, "motifs.sbatch", ("s.fasta", "o.h5")), tmp_path, signal.SIGUSR1) == 75
    assert lines(tmp_path / "scontrol") == ["requeue 7"]


@pytest.mark.parametrize(
    ("environment", "options"),
    [({}, "--backend cpu"), ({"SLURM_GPUS_PER_TASK": "1"}, "--backend cuda --strict-binding")],
)
def test_inference_uses_the_resources_of_the_job(job, tmp_path, environment, options):
    assert job("exit 0", "infer.sbatch", ("cohort", "own", "-m", "human_trb"), **environment).wait(timeout=30) == 0
    assert lines(tmp_path / "hpcvdj") == ["info", f"infer cohort --output own --resume {options} -m human_trb"]


def test_inference_near_its_time_limit_goes_back_to_the_queue(job, tmp_path):
    assert send(job(READY, "infer.sbatch", ("cohort", "own", "-g", "g.tsv")), tmp_path, signal.SIGUSR1) == 75
    assert lines(tmp_path / "scontrol") == ["requeue 7"]


@pytest.mark.parametrize(
    ("environment", "options"),
    [({}, "--backend cpu"), ({"SLURM_GPUS_PER_TASK": "1"}, "--backend cuda --strict-binding")],
)
def test_a_cohort_is_asked_with_the_resources_of_the_job(job, tmp_path, environment, options):
    words = ("sharing", "donors", "-m", "human_trb", "-o", "shared.tsv")
    assert job("exit 3", "cohort.sbatch", words, **environment).wait(timeout=30) == 3
    assert lines(tmp_path / "hpcvdj") == ["info", f"sharing {options} donors -m human_trb -o shared.tsv"]
    assert job("exit 0", "cohort.sbatch", ("count", "donors")).wait(timeout=30) == 2
    assert "expected enrich, sharing, contamination or associate" in (tmp_path / "log").read_text()


def test_a_stopped_cohort_job_does_not_go_back_to_the_queue(job, tmp_path):
    words = ("enrich", "donors", "-m", "human_trb", "-o", "enriched")
    assert send(job(READY, "cohort.sbatch", words), tmp_path, signal.SIGTERM) == 75
    assert not (tmp_path / "scontrol").exists()


def array(job, tmp_path, listed, **environment):
    """Start an element of an array with a list of repertoires; returns its exit code."""
    (tmp_path / "list").write_text(listed)
    return job("exit 0", "array.sbatch", ("list", "g.tsv", "out"), **environment).wait(timeout=30)


def test_an_element_counts_the_repertoire_in_its_line(job, tmp_path):
    assert array(job, tmp_path, "x/a.tsv.gz\nx/b.parquet\nx/c c.tsv\n", SLURM_ARRAY_TASK_ID="3") == 0
    command = "count x/c c.tsv --germline g.tsv --output out/c c.h5 --resume --backend cpu"
    assert lines(tmp_path / "hpcvdj")[1:] == [command]


@pytest.mark.parametrize(
    ("listed", "element", "message"),
    [("a.tsv\n", "2", "line 2"), ("a.tsv\n", "", "--array=1-1"), ("x/a.tsv\ny/a.tsv.gz\n", "1", "out/a.h5")],
)
def test_a_bad_list_is_refused(job, tmp_path, listed, element, message):
    assert array(job, tmp_path, listed, SLURM_ARRAY_TASK_ID=element) == 2
    assert message in (tmp_path / "log").read_text()
    assert lines(tmp_path / "hpcvdj") == []
