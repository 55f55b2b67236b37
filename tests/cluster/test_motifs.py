"""A comparison of motifs as a job that goes back to the queue and on: the result of a serial run."""

import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.kernels.kmers.cases import random_text
from tests.motifs.comparing import content

pytestmark = pytest.mark.timeout(900)

OPTIONS = ("-k", "7", "-d", "1", "--method", "matrix")
"""Little to compile, which each start of a job does anew."""


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    path = tmp_path_factory.mktemp("motifs") / "some.fasta"
    rng = np.random.default_rng(1)
    path.write_text("".join(f">{i}\n{random_text(rng, 40, 'ACGT')}\n" for i in range(1100)))
    return path


@pytest.fixture(scope="module")
def serial(fasta):
    """The counters that a job must give."""
    path = fasta.with_name("serial.h5")
    words = ["motifs", "compare", fasta, "-o", path, *OPTIONS, "--backend", "cpu"]
    subprocess.run([sys.executable, "-m", "hpcvdj", *map(str, words)], check=True, cwd=ROOT, capture_output=True)
    return content(path)


@pytest.mark.slow
def test_a_job_goes_back_to_the_queue_and_on(submit, fasta, serial, tmp_path):
    """USR1 to the script is what Slurm sends before the time limit, which would take it a minute at least."""
    target = tmp_path / "motifs.h5"
    job = submit("motifs.sbatch", fasta, target, *OPTIONS, options=["--ntasks-per-node=2"])
    job.wait(lambda facts: target.with_name("motifs.h5.checkpoint").is_dir())
    job.command("scancel", "--batch", "--signal=USR1", job.name)
    job.wait(lambda facts: facts["JobState"] == "PENDING" and facts["Restarts"] == "1")
    assert not target.exists(), "a result is there when it is complete, not before"
    job.command("scontrol", "update", f"JobId={job.name}", "StartTime=now+8")
    job.succeeded()
    assert job.log().count("== job") == 2
    assert "2 rank(s)" in job.log()
    assert np.array_equal(content(target), serial)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".h5", ".out"], "no debris"
