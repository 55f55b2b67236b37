"""The start of a command: it loads little, and converts its arguments as typer itself does."""

import os
import re
import subprocess
import sys

import pytest

from tests.commands import hpcvdj_command

NEEDLESS = {
    "coverage.control", "h5py", "numba.cpython.unicode", "numba.np.arrayobj", "pandas.core",
    "pyarrow.parquet", "pydantic", "pydoc", "rich", "ssl",
}  # fmt: skip
"""What a table of probabilities needs as little as its help, once all kernels are compiled."""


@pytest.mark.slow
def test_a_table_of_probabilities_loads_little(tmp_path):
    table = tmp_path / "rows.tsv"
    hpcvdj_command("generate", "-m", "human_trb_m15", "-n", 5, "--seed", 1, "-o", table)
    words = ["pgen", table, "-m", "human_trb_m15", "-o", tmp_path / "o.tsv", "--overwrite"]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "hpcvdj", *words], capture_output=True, text=True, check=True
        )
    loaded = set(re.findall(r"^import time: .*\| +(\S+)$", done.stderr, re.MULTILINE))
    assert {"numba", "pyarrow", "typer"} <= loaded
    assert loaded & NEEDLESS == set()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["no\udc80file.tsv"], "the file name is not UTF-8; rename the file"),
        (["nofilé.tsv"], "nofilé.tsv: no such file"),
        (["rows.tsv", "--mismatches", "two"], "--mismatches two: give a number from 0 to 1"),
    ],
)
def test_arguments_that_are_wrong(tmp_path, words, text):
    done = subprocess.run(
        [sys.executable, "-m", "hpcvdj", "pgen", *words, "-m", "human_trb_m15", "-o", "o.tsv"],
        capture_output=True, text=True, cwd=tmp_path, errors="surrogateescape",
    )  # fmt: skip
    assert done.returncode == 2
    assert re.search(text, done.stderr)


@pytest.mark.parametrize(("given", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_products_of_numpy_take_one_thread_unless_users_say_otherwise(given, threads):
    """Threads of a library of products wait on every core, and their number decides how sums are rounded."""
    code = "import hpcvdj.cli, os; hpcvdj.cli.main = lambda: print(os.environ['OPENBLAS_NUM_THREADS'])"
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; from hpcvdj.__main__ import main; main()"], capture_output=True, text=True,
        check=True, env=kept | given,
    )  # fmt: skip
    assert done.stdout.split() == [threads]
