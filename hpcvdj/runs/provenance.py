"""Where a result comes from: versions, machine, ranks and command line, as attributes of a result file."""

import getpass
import os
import platform
import shlex
import socket
import sys
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import hpcvdj
from hpcvdj.runs.ranks import World

LIBRARIES = ("numpy", "numba", "pyarrow", "h5py", "mpi4py", "typer", "rich")
"""Libraries whose versions a result records."""


def library_versions() -> dict[str, str]:
    """The version of each of `LIBRARIES`, or `not installed`."""
    return {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def rank_facts(hardware: str, software: str) -> dict[str, str]:
    """Where this rank runs, and on what."""
    return {"host": socket.gethostname(), "pid": str(os.getpid()), "hardware": hardware, "software": software}


def run_facts(world: World) -> dict[str, Any]:
    """What every output of this run records: HDF5 attributes by name."""
    return {
        "hpcvdj_version": hpcvdj.__version__,
        "command_line": shlex.join(sys.argv),
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "user": _user(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "mpi_library": world.library,
        "mpi_size": world.size,
        "slurm_job_id": os.environ.get("SLURM_JOB_ID", ""),
        **{f"version_{name}": version for name, version in library_versions().items()},
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry in the password database, as in some containers
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
