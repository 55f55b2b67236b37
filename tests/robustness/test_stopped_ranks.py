"""A rank that stops is given up within the patience; the program beside this test stops ranks at more moments."""

import subprocess
import sys

import pytest

from tests.cli.test_mpiexec import MPIEXEC
from tests.conftest import ROOT

pytest.importorskip("mpi4py")


@pytest.mark.exhaustive
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")
@pytest.mark.parametrize(
    ("command", "victim", "moments"),
    [("count", "1", ("start", "combining")), ("motifs compare", "0", ("writing", "leaving"))],
)
def test_a_rank_that_stops(command, victim, moments):
    words = [sys.executable, "tests/robustness/stopped_ranks.py", "--commands", command, "--victims", victim]
    done = subprocess.run([*words, "--moments", *moments], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 cases right" in done.stdout
