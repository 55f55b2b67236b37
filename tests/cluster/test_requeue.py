"""Jobs that are stopped and go on: by their time limit, and by hand after scancel."""

import math
import subprocess
import sys

import pytest

from hpcvdj.results.reader import Result
from tests.cluster.conftest import counters
from tests.conftest import GERMLINE, ROOT, SMALL

pytestmark = pytest.mark.timeout(900)

LONG = ("--method", "bitwise", "--max-n", "4")


@pytest.fixture(scope="module")
def table_for(tmp_path_factory):
    """A function that makes a table which two ranks of one core count with LONG in about so many seconds, or longer.

    The table is a part of the small example, or several copies.  One is counted with two n-nucleotides less, on one
    core: an n-nucleotide more takes four times as long, two ranks half.
    """
    folder = tmp_path_factory.mktemp("tables")
    words = ["count", SMALL, "-g", GERMLINE, "-o", folder / "trial.h5", "--method", "bitwise", "--backend", "cpu"]
    words += ["--max-n", "2", "--threads", "1"]
    subprocess.run([sys.executable, "-m", "hpcvdj", *map(str, words)], check=True, cwd=ROOT, capture_output=True)
    with Result(folder / "trial.h5") as result:
        one_copy = 4**2 / 2 * result.dataset("timings/kernel_seconds")[:].sum()

    def table_for(seconds):
        header, *rows = SMALL.read_text().splitlines(keepends=True)
        path = folder / f"{seconds}.tsv"
        size = math.ceil(len(rows) * seconds / one_copy)
        path.write_text(header + "".join(f"{k}_{rows[k % len(rows)]}" for k in range(size)))
        return path

    return table_for


@pytest.mark.slow
def test_a_job_goes_on_after_its_time_limit(submit, serial, table_for, tmp_path):
    target, table = tmp_path / "counts.h5", table_for(65)
    # One minute is the shortest limit.  Slurm looks at limits each 30 s, and sends the signal if it would be due before
    # it looks again: 20 to 50 s after the start, when counting has begun and goes on for a while.
    options = ["--time=1", "--signal=B:USR1@10", "--ntasks-per-node=2"]
    job = submit("count.sbatch", table, GERMLINE, target, *LONG, options=options)
    job.wait(lambda facts: facts["JobState"] == "PENDING" and facts["Restarts"] == "1")
    assert "back to the queue" in job.log()
    assert not target.exists(), "a result is there when it is complete, not before"
    assert target.with_name("counts.h5.parts").is_dir()
    # Slurm has it wait for two minutes.  A few seconds it must: what is left of a step of the first start would take
    # the socket of its namesake in the second away.
    job.command("scontrol", "update", f"JobId={job.name}", "StartTime=now+8", "TimeLimit=10")
    job.succeeded(seconds=500)
    assert job.log().count("== job") == 2
    assert (counters(target) == serial(table, 4)).all()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".h5", ".out"], "no debris"


def test_a_killed_job_goes_on_under_the_same_number(submit, serial, table_for, tmp_path):
    """What the killed ranks left in shared memory must not meet the ranks of the second start."""
    target, table = tmp_path / "counts.h5", table_for(6)
    job = submit("count.sbatch", table, GERMLINE, target, *LONG, options=["--ntasks-per-node=2"])
    job.wait(lambda facts: target.with_name("counts.h5.parts").is_dir())
    job.kill(0, 1)
    assert job.ended()["JobState"] == "FAILED"
    job.command("scontrol", "requeue", job.name)
    job.command("scontrol", "update", f"JobId={job.name}", "StartTime=now+18")
    job.wait(lambda facts: facts["JobState"] == "RUNNING")
    job.succeeded()
    assert (counters(target) == serial(table, 4)).all()


@pytest.mark.slow
def test_a_cancelled_job_stays_away_until_it_is_submitted_again(submit, serial, table_for, tmp_path):
    target, table = tmp_path / "counts.h5", table_for(12)
    job = submit("count.sbatch", table, GERMLINE, target, *LONG, options=["--ntasks-per-node=2"])
    job.wait(lambda facts: target.with_name("counts.h5.parts").is_dir())
    job.command("scancel", job.name)
    assert job.ended()["JobState"] == "CANCELLED"
    assert not target.exists()
    # With another number of ranks.
    again = submit("count.sbatch", table, GERMLINE, target, *LONG, options=["--ntasks-per-node=3"])
    again.succeeded()
    assert job.facts()["JobState"] == "CANCELLED"
    assert (counters(target) == serial(table, 4)).all()
    with Result(target) as result:
        assert result.provenance["slurm_job_id"] == again.name


def test_a_finished_job_submitted_again_changes_nothing(submit, slurm, tmp_path):
    """The first compiles its kernels in a folder of its own."""
    target = tmp_path / "counts.h5"
    arguments = (SMALL, GERMLINE, target, "--max-n", "1")
    own_caches = {name: value for name, value in slurm.items() if name != "NUMBA_CACHE_DIR"}
    submit("count.sbatch", *arguments, options=["--ntasks-per-node=2"], environment=own_caches).succeeded()
    written = target.stat().st_mtime_ns
    submit("count.sbatch", *arguments, options=["--ntasks-per-node=2"]).succeeded()
    assert target.stat().st_mtime_ns == written
