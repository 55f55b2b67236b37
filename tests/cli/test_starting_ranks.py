"""Ranks of which one does not come to the start of MPI: the others end, and one line says why."""

import time

import pytest

from tests.cli.test_mpiexec import MPIEXEC, launch
from tests.conftest import GERMLINE, SMALL

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec")

SECONDS = 20
"""Within which all ranks have ended; the patience with each other is 120 s unless a test says otherwise."""


def start(folder, planted, *options, victims=(1,), ranks=2):
    """Count on `ranks` ranks; `planted` is run by those of `victims` before the command."""
    program = folder / "program.py"
    program.write_text(
        f"import os, signal, sys\nif int(os.environ['PMI_RANK']) in {victims}:\n    {planted}\n"
        "import hpcvdj.__main__ as command\ncommand.main()\n"
    )
    begun = time.monotonic()
    words = ["-q", "count", SMALL, "-g", GERMLINE, "-o", folder / "o.h5", "--backend", "cpu", *options]
    done = launch(ranks, program, *words, timeout=60)
    assert time.monotonic() - begun < SECONDS
    assert not (folder / "o.h5").exists()
    assert done.returncode != 0
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith("hpcvdj: ")]


ABSENT = "sys.modules['{}'] = None"
"""`import` then fails as it does where there is no such package."""


@pytest.mark.slow_others
@pytest.mark.parametrize("victims", [(0,), (1,), (0, 1)])
def test_ranks_without_mpi4py(tmp_path, victims):
    code, (said,) = start(tmp_path, ABSENT.format("mpi4py"), victims=victims)
    assert code == 1
    assert said.startswith("hpcvdj: error: started as 2 ranks, but there is no MPI library to join them")


@pytest.mark.slow_others("package")
@pytest.mark.parametrize("victims", [(1,), (0, 1)])
@pytest.mark.parametrize("package", ["numpy", "h5py"])
def test_ranks_without_a_package(tmp_path, package, victims):
    """numpy is missed while modules are loaded, h5py once the command is known, on ranks that print nothing yet."""
    code, (said,) = start(tmp_path, ABSENT.format(package), victims=victims)
    assert code == 1
    assert package in said


INTERRUPTED = {
    "loading": "import hpcvdj.cli.startup as m; m.load_little = lambda: os.kill(os.getpid(), signal.SIGINT)",
    "beginning": "import hpcvdj.cli.common as m; m.unmute = lambda: os.kill(os.getpid(), signal.SIGINT)",
    "working": "import hpcvdj.cli.common as m; m.set_threads = lambda *_: os.kill(os.getpid(), signal.SIGINT)",
}


@pytest.mark.slow_others
@pytest.mark.parametrize("moment", INTERRUPTED)
def test_a_rank_that_is_interrupted(tmp_path, moment):
    code, said = start(tmp_path, INTERRUPTED[moment], ranks=3)
    if moment == "loading":
        assert not said
    else:
        assert (code, len(said)) == (75, 1)
        assert said[0].startswith("hpcvdj: SIGINT: stopped")


@pytest.mark.slow
def test_a_rank_that_is_stopped(tmp_path):
    """mpiexec alone would say "Alarm clock"."""
    _, said = start(tmp_path, "os.kill(os.getpid(), signal.SIGSTOP)", "--patience", "2", victims=(0,), ranks=3)
    assert said[0].startswith("hpcvdj: error: rank 1 waited 2 s for MPI to start: a rank did not come")


@pytest.mark.slow
def test_what_a_rank_prints_that_hangs_at_the_end(tmp_path):
    """Where MPI itself would wait without end."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys\nfrom hpcvdj.runs.ranks import world\nw = world()\nw.patience = 2\n"
        "if w.rank == 0:\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    begun = time.monotonic()
    done = launch(3, program, timeout=60)
    assert time.monotonic() - begun < SECONDS
    assert done.returncode != 0
    assert "hpcvdj: error: rank 1 waited 3 s for the other ranks" in done.stderr
