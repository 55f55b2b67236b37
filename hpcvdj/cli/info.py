"""`hpcvdj info`."""

import os
import platform
import socket
from itertools import groupby

from hpcvdj.cli import common
from hpcvdj.runs.ranks import starting, usable_cores
from hpcvdj.runs.settings import Launch, Threads


def command(threads: Threads = None) -> None:
    """Print what this installation would use: versions, ranks and where they run, threads, HDF5.

    Start it as you would start count (mpiexec -n 4 hpcvdj info) to see that launcher and MPI library match.
    """
    starting.always = True
    run = common.begin(Launch(threads))
    from hpcvdj.kernels.backends import gpu_count, open_backend
    from hpcvdj.runs.provenance import library_versions

    backend = open_backend(local_rank=run.world.local_rank())
    facts = run.gather((socket.gethostname(), os.getpid(), backend.describe(), sorted(usable_cores())))
    if facts is None:
        return
    import h5py

    from hpcvdj import __version__

    common.answer(f"hpcvdj     {__version__}, Python {platform.python_version()}")
    common.answer("libraries  " + ", ".join(f"{name} {version}" for name, version in library_versions().items()))
    common.answer(f"MPI        {run.world.library}; {run.ranks} rank(s)")
    parallel = "parallel" if h5py.get_config().mpi else "serial"
    common.answer(f"HDF5       {h5py.version.hdf5_version}, {parallel} h5py; root writes the result")
    without = "" if gpu_count() else "; cuda finds no GPU, or no cupy (extras cuda12, cuda13)"
    common.answer(f"backend    auto uses {backend.name} ({backend.software()}){without}")
    for rank, (host, pid, hardware, cores) in enumerate(facts):
        common.answer(f"rank {rank:<5} {host}, pid {pid}: {hardware}; cores {_ranges(cores)}")


def _ranges(numbers: list[int]) -> str:
    """Return numbers as ranges: `0-3,8` for 0 1 2 3 8."""
    groups = groupby(enumerate(numbers), key=lambda item: item[1] - item[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
