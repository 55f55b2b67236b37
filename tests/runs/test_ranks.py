"""hpcvdj.runs.ranks in a world of one rank, and what it makes of a launcher's environment."""

import os
import subprocess
import sys

import numpy as np
import pytest

from hpcvdj.runs.launcher import launched_rank, launched_ranks
from hpcvdj.runs.ranks import NO_LIBRARY, World
from tests.commands import new_process

NO_MPI = (
    "import sys; sys.modules['mpi4py'] = None\n"
    "import logging; logging.basicConfig(level=logging.INFO, stream=sys.stdout)\n"
    "from hpcvdj.errors import HpcvdjError\n"
    "from hpcvdj.runs.ranks import log_if_serial, world\n"
    "try: print('size', world().size); log_if_serial(world())\n"
    "except HpcvdjError as error: print('error', error)\n"
)

FEWER_THREADS = """
import os, numba, numpy as np
numbers = np.arange(1000)
@numba.njit(parallel=True)
def total(x): return x.sum()
total(numbers)
from hpcvdj.runs.ranks import World, set_threads
cores = numba.get_num_threads()
assert set_threads(World(), cores + 5) == numba.get_num_threads() == cores
assert set_threads(World(), 1) == numba.get_num_threads() == 1
assert total(numbers.astype(float)) == 499500
"""


@pytest.mark.slow
def test_threads_after_numba_has_begun():
    """As in a notebook: a changed number in the environment is an error at the next compilation."""
    subprocess.run([sys.executable, "-c", FEWER_THREADS], check=True, timeout=120)


def test_a_world_of_one():
    world = World()
    counters = np.arange(3, dtype=np.uint64)
    assert world.is_root
    assert world.size == 1
    assert world.sum(counters) is counters
    assert world.broadcast("x") == "x"
    assert world.gather("x") == ["x"]
    assert world.cores() >= 1
    world.barrier()


def test_ranks_add_up_integers_only():
    """The order of additions would show in the last bits of floats."""
    with pytest.raises(TypeError, match="float64"):
        World().sum(np.ones(2))


MPI_STARTED = "import sys; from hpcvdj.runs.ranks import world; print(world().size, 'mpi4py.MPI' in sys.modules)"


@pytest.mark.parametrize("traces", [{}, {"SLURM_JOB_ID": "7"}, {"PALS_APID": "7"}, {"MPI": "yes"}])
def test_mpi_starts_where_there_may_be_a_launcher(launcher_free, traces):
    """Some MPI libraries end a program on a login node."""
    pytest.importorskip("mpi4py")
    environment = {**os.environ, **traces}
    done = subprocess.run(
        [sys.executable, "-c", MPI_STARTED], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert done.stdout.split() == ["1", str(bool(traces))]


def test_mpi_that_a_program_started_is_used(launcher_free):
    pytest.importorskip("mpi4py")
    started = "from mpi4py import MPI; from hpcvdj.runs.ranks import world; print(world().library)"
    done = subprocess.run([sys.executable, "-c", started], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() != NO_LIBRARY


def test_info_starts_mpi(launcher_free):
    """It says whether launcher and library match, and which library it is."""
    pytest.importorskip("mpi4py")
    out, _ = new_process("info")
    assert NO_LIBRARY not in out


@pytest.mark.parametrize(
    ("environment", "rank", "ranks"),
    [
        ({}, 0, 1),
        ({"PMI_SIZE": "4", "PMI_RANK": "3"}, 3, 4),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, 1, 2),
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"}, 5, 8),
        ({"SLURM_PROCID": "0"}, 0, 1),
    ],
)
def test_the_launchers_environment(launcher_free, monkeypatch, environment, rank, ranks):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (launched_rank(), launched_ranks()) == (rank, ranks)


def test_without_an_mpi_library_it_runs_serially_and_can_say_so(launcher_free):
    done = subprocess.run([sys.executable, "-c", NO_MPI], capture_output=True, text=True, check=True)
    assert done.stdout.count("running serially") == 1
    assert "size 1" in done.stdout


def test_ranks_without_an_mpi_library_are_refused(launcher_free, monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "4")
    done = subprocess.run([sys.executable, "-c", NO_MPI], capture_output=True, text=True, check=True)
    assert "error started as 4 ranks, but there is no MPI library" in done.stdout
    assert "hpcvdj[mpich]" in done.stdout


def test_a_launcher_of_another_library_is_refused(launcher_free, monkeypatch):
    pytest.importorskip("mpi4py")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    code = NO_MPI.split("\n", 1)[1].replace("import logging", "import sys, logging")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "started 3 ranks, but the MPI library" in done.stdout
    assert "sees 1" in done.stdout
