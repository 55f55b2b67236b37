"""Commands in processes of their own: how they end, in how much memory and time."""

import os
import subprocess
import sys

import pyarrow as pa

from tests.commands import run
from tests.conftest import GERMLINE, ROOT

SECONDS = 20
"""A refusal may take this long, the program's start included."""

MEMORY = 1 << 30
"""Bytes of memory that a refusal may take."""

LIMIT = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))"


def ended(*arguments, env=None, stdout=subprocess.PIPE, quiet=True):
    """(exit code, stderr, stdout) of a command."""
    words = [sys.executable, "-m", "hpcvdj", *["-q"] * quiet, *map(str, arguments)]
    done = subprocess.run(
        words, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=3 * SECONDS,
        env={**os.environ, "COLUMNS": "200", **(env or {})}, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr.decode(errors="replace"), (done.stdout or b"").decode(errors="replace")


def refused(*arguments, exit_code=2):
    """The one line of a command that refuses its input within memory and time."""
    words = [sys.executable, "-c", f"{LIMIT}; from hpcvdj.__main__ import main; main()", "-q", *map(str, arguments)]
    done = subprocess.run(
        words, capture_output=True, timeout=SECONDS, check=False, cwd=ROOT, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200", "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    return _only_line(done.returncode, done.stderr.decode(errors="replace"), exit_code)


def all_refused(*commands):
    """The one line of each command, one after another in one process, with the memory and time of `refused`."""
    limited = "import os; os.environ['NUMBA_NUM_THREADS'] = '1'\n" + LIMIT
    ended = run(limited, *(("-q", *command) for command in commands), timeout=SECONDS)
    assert len(ended) == len(commands)
    return [_only_line(code, err) for code, _, err in ended]


def _only_line(code, err, exit_code=2):
    assert code == exit_code, err[-3000:]
    lines = err.strip().splitlines()
    assert len(lines) == 1, err[-3000:]
    assert "unexpected" not in lines[0]
    return lines[0]


def count(table, target, *options):
    return refused("count", table, "-g", GERMLINE, "-o", target, *options)


def nothing_left(folder, *known):
    """Whether a folder has only the files that a test put there."""
    return sorted(path.name for path in folder.iterdir()) == sorted(known)


def table_of(**columns):
    defaults = {"sequence_id": ["a", "b"], "v_call": ["TRBV1*01"] * 2, "j_call": ["TRBJ1-1*01"] * 2,
                "junction": ["TGTACTTGTTTT"] * 2}  # fmt: skip
    return pa.table(defaults | columns)
