"""The job scripts, submitted to Slurm: 1 to 8 ranks, an array, GPUs, a scaling study, and a rank that is killed."""

import re
import shutil
import subprocess
import sys

import pytest

from hpcvdj.results.reader import Result
from tests.cluster.conftest import Job, counters
from tests.conftest import GERMLINE, ROOT, SMALL

pytestmark = pytest.mark.timeout(900)

BITWISE = ("--method", "bitwise", "--max-n", "2")


@pytest.mark.parametrize(
    "ranks", [1, pytest.param(2, marks=pytest.mark.exhaustive), 4, pytest.param(8, marks=pytest.mark.slow)]
)
def test_counters_are_those_of_a_serial_run(submit, serial, tmp_path, ranks):
    target = tmp_path / "counts.h5"
    job = submit("count.sbatch", SMALL, GERMLINE, target, *BITWISE, options=[f"--ntasks-per-node={ranks}"])
    job.succeeded()
    assert (counters(target) == serial()).all()
    with Result(target) as result:
        assert result.provenance["mpi_size"] == ranks
        assert result.provenance["slurm_job_id"] == job.name
    log = job.log()
    assert [line.split()[1] for line in log.splitlines() if line.startswith("rank ")] == [str(r) for r in range(ranks)]
    assert log.count("500 counted") == 1, "root alone speaks"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.h5", f"hpcvdj-{job.name}.out"], "no debris"


def test_an_array_counts_one_repertoire_per_element(submit, serial, tmp_path):
    rows = SMALL.read_text().splitlines(keepends=True)
    for name, part in (("a.tsv", rows[1:200]), ("b.tsv", rows[200:])):
        (tmp_path / name).write_text(rows[0] + "".join(part))
    listed = tmp_path / "list.txt"
    listed.write_text(f"{tmp_path}/a.tsv\n{tmp_path}/b.tsv\n")
    job = submit("array.sbatch", listed, GERMLINE, tmp_path / "out", *BITWISE, options=["--array=1-2"])
    for element in (1, 2):
        Job(f"{job.name}_{element}", job.environment).succeeded()
    for name in ("a", "b"):
        assert (counters(tmp_path / "out" / f"{name}.h5") == serial(tmp_path / f"{name}.tsv")).all()


def test_an_array_that_would_write_a_result_twice_is_refused(submit, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("one/a.tsv.gz\ntwo/a.tsv\n")
    job = submit("array.sbatch", listed, GERMLINE, tmp_path / "out", options=["--array=1"])
    element = Job(f"{job.name}_1", job.environment)
    assert element.ended()["ExitCode"] == "2:0"
    assert "give them different names" in element.log()


def test_a_killed_rank_ends_the_job(submit, tmp_path):
    """The other ranks wait for it in a collective; without --kill-on-bad-exit they would until the time limit."""
    target = tmp_path / "counts.h5"
    # Minutes of work: it does not end by itself while this test watches.
    job = submit(
        "count.sbatch", SMALL, GERMLINE, target, "--method", "bitwise", "--max-n", "7", options=["--ntasks-per-node=4"]
    )
    job.wait(lambda facts: [path for path in tmp_path.iterdir() if path.suffix != ".out"])
    job.kill(2)
    facts = job.ended(seconds=60)
    assert facts["JobState"] == "FAILED"
    assert facts["ExitCode"] != "0:0"
    assert not target.exists()


def gpus(slurm):
    """How many GPUs Slurm has on its first node."""
    words = ["sinfo", "--noheader", "--format=%G"]
    shown = subprocess.run(words, capture_output=True, text=True, env=slurm, check=True).stdout
    found = re.search(r"gpu:(?:[^:,(]+:)?(\d+)", shown)
    return int(found[1]) if found else 0


def test_each_rank_has_a_gpu_of_its_own(submit, slurm, serial, tmp_path):
    """Which devices a rank is given is written down on its way to the real command."""
    if gpus(slurm) < 4:
        pytest.skip("the node has fewer than four GPUs")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "hpcvdj"
    real = shutil.which("hpcvdj", path=slurm["PATH"])
    command.write_text(
        f'#!/bin/sh\n[ "$1" != count ] || echo "$CUDA_VISIBLE_DEVICES" >{tmp_path}/rank-$SLURM_PROCID\n'
        f'exec {real} "$@"\n'
    )
    command.chmod(0o755)
    environment = slurm | {"PATH": f"{command.parent}:{slurm['PATH']}"}
    target = tmp_path / "counts.h5"
    arguments = (SMALL, GERMLINE, target, *BITWISE, "--backend", "cpu")
    submit("count-gpu.sbatch", *arguments, options=["--ntasks-per-node=4"], environment=environment).succeeded()
    assert sorted((tmp_path / f"rank-{rank}").read_text().strip() for rank in range(4)) == ["0", "1", "2", "3"]
    assert (counters(target) == serial()).all()


def test_a_scaling_study_has_a_job_for_each_number_of_gpus(slurm, tmp_path):
    if gpus(slurm) < 2:
        pytest.skip("the node has fewer than two GPUs")
    study = tmp_path / "study"
    words = [ROOT / "slurm" / "scaling.sh", SMALL, GERMLINE, study]
    options = ["--backend", "cpu", "--n-lengths", "0-1", "--repeats", "1", "--sample", "20"]
    environment = slurm | {"HPCVDJ_GPUS": "1 2", "SBATCH_OUTPUT": str(tmp_path / "%x-%j.out")}
    done = subprocess.run([*words, *options], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    names = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Submitted")]
    assert len(names) == 2
    for name in names:
        Job(name, slurm).succeeded()
    subprocess.run([sys.executable, "-m", "hpcvdj", "study", "render", study], check=True, capture_output=True)
    assert sorted(path.name for path in study.glob("*.csv")) == ["raw-bitwise-1.csv", "raw-bitwise-2.csv"]
    assert "totals identical for all rank counts" in (study / "README.md").read_text()
