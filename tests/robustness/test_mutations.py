"""Some damaged files of each kind; the program beside this test takes thousands."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_damaged_files():
    words = [sys.executable, "tests/robustness/mutate.py", "--cases", "28", "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("28 cases, ")
