"""Jobs that are stopped and go on: by their time limit, and by hand after scancel."""

import pytest

from hpcvdj.results import Result
from tests.cluster.conftest import FINISHED, counters
from tests.conftest import GERMLINE, SMALL

LONG = ("--method", "bitwise", "--max-n", "5")


@pytest.fixture
def twice(tmp_path):
    """The small example with every row twice: about a minute of LONG's work for two ranks of one core."""
    header, *rows = SMALL.read_text().splitlines(keepends=True)
    table = tmp_path / "twice.tsv"
    table.write_text("".join([header, *rows, *("again_" + row for row in rows)]))
    return table


def released(job):
    """Let a job that was sent back to the queue start, which Slurm has wait for two minutes."""
    # Not at once: what is left of the step of the same number would take the new one's socket away with it.
    job.command("scontrol", "update", f"JobId={job.name}", "StartTime=now+8", check=False)


@pytest.mark.timeout(600)
def test_a_job_goes_on_after_its_time_limit(submit, serial, tmp_path, twice):
    target = tmp_path / "counts.h5"
    # One minute is the shortest limit, and Slurm looks at limits twice a minute.
    options = ["--time=1", "--signal=B:USR1@45", "--ntasks-per-node=2"]
    job = submit("count.sbatch", twice, GERMLINE, target, *LONG, options=options)
    restarts = 0
    while job.wait(lambda facts: int(facts["Restarts"]) > restarts or facts["JobState"] in FINISHED)["JobState"] == "PENDING":
        restarts += 1
        assert not target.exists(), "a result is there when it is complete, not before"
        assert target.with_name("counts.h5.checkpoint").is_dir()
        released(job)
    assert job.facts()["JobState"] == "COMPLETED", job.log()
    assert restarts, "the job was never stopped: its work is too short for this machine"
    assert job.log().count("back to the queue") == restarts
    assert (counters(target) == serial(twice, 5)).all()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".h5", ".out", ".tsv"], "no debris"


def test_a_cancelled_job_stays_away_until_it_is_submitted_again(submit, serial, tmp_path):
    target = tmp_path / "counts.h5"
    arguments = (SMALL, GERMLINE, target, "--method", "bitwise", "--max-n", "4")
    job = submit("count.sbatch", *arguments, options=["--ntasks-per-node=2"])
    job.wait(lambda facts: target.with_name("counts.h5.checkpoint").is_dir())
    job.command("scancel", job.name)
    assert job.ended()["JobState"] == "CANCELLED"
    assert not target.exists()
    # With another number of ranks.
    again = submit("count.sbatch", *arguments, options=["--ntasks-per-node=3"])
    again.succeeded()
    assert job.facts()["JobState"] == "CANCELLED"
    assert (counters(target) == serial(max_n=4)).all()
    with Result(target) as result:
        assert result.provenance["slurm_job_id"] == again.name


def test_a_finished_job_submitted_again_changes_nothing(submit, tmp_path):
    target = tmp_path / "counts.h5"
    arguments = (SMALL, GERMLINE, target, "--max-n", "1")
    submit("count.sbatch", *arguments, options=["--ntasks-per-node=2"]).succeeded()
    written = target.stat().st_mtime_ns
    submit("count.sbatch", *arguments, options=["--ntasks-per-node=2"]).succeeded()
    assert target.stat().st_mtime_ns == written
