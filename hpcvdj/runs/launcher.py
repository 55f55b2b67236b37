"""The ranks that the launcher, such as mpiexec or srun, started, according to its environment, before MPI starts.

This module imports only the standard library, so that a rank whose environment is broken can still end the others.
"""

import os
import sys
import time

ROOT = 0
"""The rank that reads, writes and prints."""

_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE", "SLURM_STEP_NUM_TASKS")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID")

_TRACES = ("PMI", "OMPI_", "MPI", "HYD", "I_MPI", "MV2_", "PALS_", "ALPS_", "PRTE_", "FLUX_", "JSM_", "SLURM_", "PBS_",
           "LSB_", "COBALT_")  # fmt: skip
"""How variables begin that launchers, MPI libraries and schedulers set."""

_LAST_WORDS_SECONDS = 0.3
"""Seconds that a failing rank gives the launcher to forward its message before it ends all ranks."""

_ROOT_SPEAKS_SECONDS = 1.0
"""Seconds that a rank that fails before MPI starts waits for root, which may report the same failure."""


def launched_ranks() -> int:
    """Return how many ranks the launcher started, according to its environment; 1 without a launcher."""
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return max((int(size) for size in sizes if size.isdigit()), default=1)


def may_have_ranks() -> bool:
    """Whether the environment has any trace of a launcher, of an MPI library or of a scheduler."""
    return any(name.startswith(_TRACES) for name in os.environ)


def launched_rank() -> int:
    """Return the rank of this process, according to the launcher's environment; root prints usage errors."""
    names = (*_RANKS, "SLURM_PROCID") if "SLURM_STEP_NUM_TASKS" in os.environ else _RANKS
    ranks = (os.environ.get(name, "") for name in names)
    return next((int(rank) for rank in ranks if rank.isdigit()), ROOT)


def let_root_speak() -> None:
    """Give root time to end all ranks, in case it fails for the same reason as this rank."""
    if launched_rank() != ROOT:
        time.sleep(_ROOT_SPEAKS_SECONDS)


def last_words() -> None:
    """Give the launcher time to read what this rank printed: it drops the rest when it ends all ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_LAST_WORDS_SECONDS)


def leave_launch(exit_code: int) -> None:
    """Let the launcher end all ranks, if this rank leaves before it has started MPI.

    MPICH's mpiexec needs this.  Other launchers end all ranks when they see the exit code, srun with an option.
    """
    if launched_ranks() > 1 and "HYDI_CONTROL_FD" in os.environ:
        last_words()
        # PMI-1 is the protocol between MPICH's mpiexec and its ranks.
        os.write(int(os.environ["PMI_FD"]), f"cmd=abort exitcode={exit_code}\n".encode())
        time.sleep(_ROOT_SPEAKS_SECONDS)
