"""`hpcvdj motifs compare` under mpiexec: told to stop, killed, hanging, failing; the next --resume gives the same."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.cli.test_mpiexec import MPIEXEC
from tests.commands import LITTLE
from tests.motifs.comparing import K, content, exact
from tests.robustness.kill_and_resume import ranks_of

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")

EDGES = ["--top", "3", "--score", "cosine"]
SLOW = (
    LITTLE
    + """
import errno, os, sys, time
import hpcvdj.motifs.comparison as compare, hpcvdj.motifs.results as results, hpcvdj.runs.folder as folder
from hpcvdj.motifs.comparison import _TileWork
from hpcvdj.motifs.results import MotifWriter
from hpcvdj.runs.ranks import world
compare.layout_of = lambda *ignored: {"load": 6, "height": 4}
results.CHUNK = 2
compute, put, save, done = _TileWork.compute, MotifWriter.put_tile, folder.write_state, []
def slow(self, tile):
    time.sleep(0.2)
    done.append(tile)
    return compute(self, tile)
_TileWork.compute = slow
"""
)
"""Small tiles, each of which takes its time."""

MAIN = """
from hpcvdj.__main__ import main
sys.argv = ["hpcvdj", "-q", "motifs", "compare", *sys.argv[1:]]
main()
"""


@pytest.fixture
def start(tmp_path, fasta):
    """A function that starts a comparison, with something planted in it; what still runs at the end is killed."""
    started = []

    def start(*options, ranks=2, planted="", target="o.h5"):
        program = tmp_path / f"program{len(started)}.py"
        program.write_text(SLOW + planted + MAIN)
        words = [fasta, "-o", tmp_path / target, "-k", K, "--strands", "both", "--backend", "cpu", *options]
        process = subprocess.Popen(
            [MPIEXEC, "-n", str(ranks), sys.executable, str(program), *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "NUMBA_NUM_THREADS": "1"},
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def end(process):
    """Exit code and what was said."""
    _, err = process.communicate(timeout=100)
    return process.returncode, err


def wait_for(process, tmp_path, tiles):
    """Until so many tiles are done."""
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("o.h5.checkpoint/tile-*.state"))) < tiles:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def resumed(start, tmp_path, *options, ranks=3):
    """The counters, or edges, of a run that goes on, and lies alone in the end."""
    code, err = end(start("--resume", *options, ranks=ranks))
    assert code == 0, err
    assert sorted(path.name for path in tmp_path.glob("*o.h5*")) == ["o.h5"], "no debris"
    return content(tmp_path / "o.h5")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "all_ranks"), [([], True), pytest.param(EDGES, False, marks=pytest.mark.exhaustive)]
)
def test_a_signal_leaves_the_tiles_and_others_go_on(start, tmp_path, options, all_ranks):
    process = start("--method", "pigeonhole", *options)
    wait_for(process, tmp_path, 4)
    os.kill(process.pid if all_ranks else ranks_of(process.pid)[1], signal.SIGTERM)
    code, err = end(process)
    assert code == 75, err
    assert "SIGTERM: stopped with" in err
    assert err.count("hpcvdj:") == 1
    assert not (tmp_path / "o.h5").exists()
    kept = len(list(tmp_path.glob("o.h5.checkpoint/tile-*.state")))
    assert 4 <= kept < 32
    found = resumed(start, tmp_path, "--method", "matrix", *options)
    if not options:
        assert np.array_equal(found, exact())
        return
    assert end(start(*options, ranks=1, target="whole.h5"))[0] == 0
    assert found == content(tmp_path / "whole.h5")


@pytest.mark.exhaustive
def test_a_rank_that_hangs_is_given_up(start, tmp_path):
    process = start("--patience", "2")
    wait_for(process, tmp_path, 4)
    os.kill(ranks_of(process.pid)[1], signal.SIGSTOP)
    code, err = end(process)
    assert code not in (0, 75)
    assert err.count("hpcvdj: error: rank 0 waited 3 s for the other ranks") == 1
    assert "Traceback" not in err
    assert not (tmp_path / "o.h5").exists()
    assert np.array_equal(resumed(start, tmp_path), exact())


@pytest.mark.exhaustive
def test_root_that_hangs_while_it_stores_is_given_up(start, tmp_path):
    hang = "MotifWriter.put_tile = lambda *arguments: time.sleep(1000)\n"
    # So patient that ranks can start in that time, too.
    code, err = end(start("--patience", "6", ranks=3, planted=hang))
    assert code not in (0, 75)
    assert err.count("hpcvdj: error: rank 1 waited 7 s for the other ranks") == 1
    assert not (tmp_path / "o.h5").exists()
    assert np.array_equal(resumed(start, tmp_path, ranks=2), exact())


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_a_killed_rank_ends_all(start, tmp_path, rank):
    process = start()
    wait_for(process, tmp_path, 4)
    os.kill(ranks_of(process.pid)[rank], signal.SIGKILL)
    assert end(process)[0] not in (0, 75)
    assert not (tmp_path / "o.h5").exists()
    assert np.array_equal(resumed(start, tmp_path), exact())


@pytest.mark.exhaustive
def test_a_rank_that_raises_ends_all(start, tmp_path):
    wrong = """
def wrong(self, tile):
    if len(done) > 3 and world().rank == 1:
        raise ZeroDivisionError("planted")
    return slow(self, tile)
_TileWork.compute = wrong
"""
    code, err = end(start("--patience", "50", ranks=3, planted=wrong))
    assert code not in (0, 75)
    assert err.count("ZeroDivisionError: planted") == 1
    assert not (tmp_path / "o.h5").exists()
    assert np.array_equal(resumed(start, tmp_path, ranks=2), exact())


@pytest.mark.exhaustive
def test_a_full_disk_is_one_line_from_one_rank(start, tmp_path):
    """All ranks meet it at once."""
    full = """
def full(*given):
    if len(done) > 3:
        raise OSError(errno.ENOSPC, "No space left on device")
    save(*given)
folder.write_state = full
"""
    code, err = end(start(ranks=3, planted=full))
    assert code == 1, err
    assert err.count("error:") == 1
    assert "the disk is full" in err
    assert "What was saved before is complete: free space, then continue with --resume" in err
    assert not list(tmp_path.glob("o.h5.checkpoint/.*"))
    assert len(list(tmp_path.glob("o.h5.checkpoint/tile-*.state"))) >= 3
    assert np.array_equal(resumed(start, tmp_path, ranks=2), exact())


@pytest.mark.exhaustive
def test_a_full_disk_while_storing_is_one_line(start, tmp_path):
    full = """
def full(self, strand, row, *arguments):
    if row:
        raise OSError(errno.ENOSPC, "No space left on device")
    put(self, strand, row, *arguments)
MotifWriter.put_tile = full
"""
    code, err = end(start(ranks=3, planted=full))
    assert code == 1, err
    assert err.count("error:") == 1
    assert "o.h5: the disk is full" in err
    assert "What was saved before is complete: free space, then continue with --resume" in err
    assert [path.name for path in tmp_path.glob("*o.h5*")] == ["o.h5.checkpoint"]
    assert not (tmp_path / "o.h5.checkpoint" / "result.part").exists()
    forbidden = "_TileWork.compute = None\n"
    code, err = end(start("--resume", planted=forbidden))
    assert code == 0, err
    assert np.array_equal(content(tmp_path / "o.h5"), exact())


@pytest.mark.exhaustive
def test_changed_input_is_refused_by_name(start, tmp_path, fasta):
    process = start()
    wait_for(process, tmp_path, 4)
    os.kill(process.pid, signal.SIGTERM)
    assert end(process)[0] == 75
    fasta.write_text(fasta.read_text() + ">one_more\nACGTACGT\n")
    code, err = end(start("--resume"))
    assert code == 2
    assert err.count("error:") == 1
    assert "o.h5.checkpoint: belongs to another run (sequences_sha256 has other content)" in err
    assert list(tmp_path.glob("o.h5.checkpoint/tile-*.state"))
