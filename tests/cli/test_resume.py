"""`hpcvdj count` told to stop, or killed: the next --resume gives the counters of a run that went through."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hpcvdj.results.reader import Result
from tests.cli.test_mpiexec import MPIEXEC
from tests.commands import error_line, hpcvdj_command
from tests.conftest import GERMLINE, SMALL

ROWS = 80
SLOW = ["--method", "bitwise", "--max-n", "4"]


def command(output, *options):
    table = output.with_name("t.tsv")
    table.write_text("".join(SMALL.read_text().splitlines(keepends=True)[: ROWS + 1]))
    words = ["-q", "count", table, "-g", GERMLINE, "--backend", "cpu", *SLOW, "-o", output, *options]
    return list(map(str, words))


def start(output, *options, ranks=1):
    """A run of some seconds."""
    launcher = [MPIEXEC, "-n", str(ranks)] if ranks > 1 else []
    return subprocess.Popen(
        [*launcher, sys.executable, "-m", "hpcvdj", *command(output, "--checkpoint-every", "0.1", *options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip


def here(output, *options, code=0):
    """The stderr of the run in this process."""
    return hpcvdj_command(*command(output, *options), code=code)[1]


def end(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("direct") / "o.h5"
    here(path, "--method", "direct")
    return counters(path)


def counters(path):
    with Result(path) as result:
        return result.counters[:]


def stop_while_counting(process, output, number=signal.SIGTERM):
    """Send the signal once something is counted and saved."""
    folder = output.with_name(output.name + ".parts")
    for _ in range(600):
        if list(folder.glob("part-*")):
            break
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive),
        pytest.param(signal.SIGUSR1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_signal_leaves_a_checkpoint_and_resume_completes_it(tmp_path, expected, number):
    output = tmp_path / "o.h5"
    process = start(output)
    stop_while_counting(process, output, number)
    code, _, err = end(process)
    assert code == 75, err
    # On a fast machine everything is counted by then, and the result is being written.
    assert re.search(rf"{number.name}: stopped (with|while)", err), err
    assert not output.exists()
    assert len(err.strip().splitlines()) == 1
    assert "--resume" in here(output, code=2)
    code, _, err = end(start(output, "--resume"))
    assert code == 0, err
    assert np.array_equal(counters(output), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.h5", "t.tsv"]
    assert "is complete already" in here(output, "--resume")


@pytest.mark.exhaustive
def test_a_killed_run_continues_where_it_saved(tmp_path, expected):
    output = tmp_path / "o.h5"
    process = start(output)
    stop_while_counting(process, output)
    assert end(process)[0] == 75
    process = start(output, "--resume")
    stop_while_counting(process, output, signal.SIGKILL)
    assert end(process)[0] == -signal.SIGKILL
    assert not output.exists()
    assert end(start(output, "--resume"))[0] == 0
    assert np.array_equal(counters(output), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.h5", "t.tsv"]


@pytest.mark.slow
def test_other_parameters_are_refused(tmp_path):
    output = tmp_path / "o.h5"
    process = start(output)
    stop_while_counting(process, output)
    assert end(process)[0] == 75
    assert "d_forms was paper, is distinct" in here(output, "--resume", "--d-forms", "distinct", code=2)
    here(output, "--overwrite", "--max-n", "1")
    assert "is of another run (max_n was 1, is 4)" in here(output, "--resume", code=2)


@pytest.mark.exhaustive
def test_ranks_agree_to_stop_and_others_continue(tmp_path, expected):
    pytest.importorskip("mpi4py")
    output = tmp_path / "o.h5"
    process = start(output, ranks=2)
    try:
        stop_while_counting(process, output, signal.SIGUSR1)
        code, _, err = end(process)
    finally:
        process.kill()
    assert code == 75, err
    assert "SIGUSR1: stopped with" in err
    code, _, err = end(start(output, "--resume", "--threads-per-block", "16", ranks=3))
    assert code == 0, err
    assert np.array_equal(counters(output), expected)


@pytest.mark.parametrize("max_n", ["2", "all"])
def test_a_complete_table_is_not_made_again(tmp_path, max_n):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tsv").write_bytes(SMALL.read_bytes())
    words = ["count", tmp_path / "in", "-g", GERMLINE, "--together", "-o", tmp_path / "o.tsv", "--max-n", max_n]
    hpcvdj_command(*words)
    _, err = hpcvdj_command(*words, "--resume")
    assert "o.tsv: is complete already; there is nothing to resume" in err
    facts = json.loads((tmp_path / "o.tsv.json").read_text())
    assert facts["rows_read"] == 500
    assert facts["config"]["method"] == "direct"
    _, err = hpcvdj_command(*words[:-1], 1, "--resume", code=2)
    assert "o.tsv: is of another run (max_n was" in error_line(err)
