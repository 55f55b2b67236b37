"""Some cases of each campaign; the programs beside this test take as many as are asked for."""

import subprocess
import sys

import pytest

from tests.cli.test_mpiexec import MPIEXEC
from tests.conftest import ROOT

CAMPAIGNS = {
    "over_inputs.py": ("--commands", "count", "export", "convert a folder", "models show"),
    "changed_results.py": ("--runs", "count, in slices", "motifs compare"),
    "counts_as_written.py": (),
}


def campaign(script, cases, *words):
    words = [sys.executable, f"tests/robustness/{script}", "--seed", "3", "--cases", str(cases), *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cases} cases, " in done.stdout


@pytest.mark.parametrize("script", CAMPAIGNS)
def test_a_few_cases(script):
    campaign(script, 8, *CAMPAIGNS[script])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("script", CAMPAIGNS)
def test_more_cases(script):
    campaign(script, 20)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
def test_ranks_that_differ():
    pytest.importorskip("mpi4py")
    campaign("differing_ranks.py", 23)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_individuals():
    words = [sys.executable, "tests/robustness/many_individuals.py", "--individuals", "100", "300"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
