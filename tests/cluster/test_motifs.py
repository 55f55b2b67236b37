"""Comparisons of motifs as jobs: the result of a serial run, and that of a job that went back to the queue."""

import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.motifs.tables.cases import random_text
from tests.motifs.test_run import content

pytestmark = pytest.mark.timeout(900)

OPTIONS = ("-k", "8", "-d", "1", "--score", "cosine", "--top", "5")


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    path = tmp_path_factory.mktemp("motifs") / "some.fasta"
    rng = np.random.default_rng(1)
    path.write_text("".join(f">{i}\n{random_text(rng, 60, 'ACGT')}\n" for i in range(1500)))
    return path


@pytest.fixture(scope="module")
def serial(fasta):
    """The edges that a job must find."""
    path = fasta.with_name("serial.h5")
    words = ["motifs", "compare", fasta, "-o", path, *OPTIONS, "--backend", "cpu"]
    subprocess.run([sys.executable, "-m", "hpcvdj", *map(str, words)], check=True, cwd=ROOT, capture_output=True)
    return content(path)


def test_edges_are_those_of_a_serial_run(submit, fasta, serial, tmp_path):
    target = tmp_path / "motifs.h5"
    job = submit("motifs.sbatch", fasta, target, *OPTIONS, options=["--ntasks-per-node=2"])
    job.succeeded()
    assert content(target) == serial
    assert "2 rank(s)" in job.log()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".h5", ".out"], "no debris"


def test_a_job_goes_back_to_the_queue_and_on(submit, fasta, serial, tmp_path):
    """USR1 to the script is what Slurm sends before the time limit, which would take it a minute at least."""
    target = tmp_path / "motifs.h5"
    arguments = (fasta, target, *OPTIONS, "--method", "bitslice")
    job = submit("motifs.sbatch", *arguments, options=["--ntasks-per-node=2"])
    job.wait(lambda facts: list(tmp_path.glob("motifs.h5.checkpoint/tile-*.npz")))
    job.command("scancel", "--batch", "--signal=USR1", job.name)
    job.wait(lambda facts: facts["JobState"] == "PENDING" and facts["Restarts"] == "1")
    assert not target.exists(), "a result is there when it is complete, not before"
    job.command("scontrol", "update", f"JobId={job.name}", "StartTime=now+8")
    job.succeeded()
    assert job.log().count("== job") == 2
    assert content(target) == serial
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".h5", ".out"], "no debris"
