"""`hpcvdj info`."""

from __future__ import annotations

import os
import socket

from hpcvdj.cli import common

NAME = "info"


def command(threads: common.Threads = None) -> None:
    """Say what this installation would use: versions, ranks and where they run, threads, HDF5.

    Start it as you would start count (mpiexec -n 4 hpcvdj info) to see that launcher and MPI library match.
    """
    world = common.begin(threads)
    from hpcvdj.kernels.backends import open_backend
    from hpcvdj.kernels.cuda import device_count
    from hpcvdj.runs.provenance import library_versions

    backend = open_backend("auto", world.local_rank())
    bound = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    facts = world.gather((socket.gethostname(), os.getpid(), backend.describe(), bound))
    if facts is None:
        return
    import platform

    import h5py

    from hpcvdj import __version__

    common.say(f"hpcvdj     {__version__}, Python {platform.python_version()}")
    common.say("libraries  " + ", ".join(f"{name} {version}" for name, version in library_versions().items()))
    common.say(f"MPI        {world.library}; {world.size} rank(s)")
    parallel = "parallel" if h5py.get_config().mpi else "serial"
    common.say(f"HDF5       {h5py.version.hdf5_version}, {parallel} h5py; root writes the result")
    without = "" if device_count() else "; cuda finds no GPU, or no cupy (extras cuda12, cuda13)"
    common.say(f"backend    auto takes {backend.name} ({backend.software()}){without}")
    for rank, (host, pid, hardware, cores) in enumerate(facts):
        common.say(f"rank {rank:<5} {host}, pid {pid}: {hardware}; cores {_ranges(cores)}")


def _ranges(numbers: list[int]) -> str:
    """`0-3,8` for 0 1 2 3 8."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts) or "unknown"
