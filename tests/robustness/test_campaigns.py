"""Some cases of each campaign; the programs beside this test take as many as are asked for."""

import subprocess
import sys

import pytest

from tests.cli.test_mpiexec import MPIEXEC
from tests.conftest import ROOT

CASES = {"over_inputs.py": 8, "changed_results.py": 6, "counts_as_written.py": 4}


def campaign(script, cases):
    words = [sys.executable, f"tests/robustness/{script}", "--seed", "3", "--cases", str(cases)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cases} cases, " in done.stdout


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("script", CASES)
def test_cases(script):
    campaign(script, CASES[script])


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
def test_ranks_that_differ():
    pytest.importorskip("mpi4py")
    campaign("differing_ranks.py", 12)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_many_individuals():
    script = ROOT / "tests/robustness/many_individuals.py"
    words = [sys.executable, str(script), "--individuals", "60", "180", "--commands", "sharing"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
