"""Where a result comes from: versions, machine, ranks and command line, as attributes of a result file."""

import os
import platform
import shlex
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


def run_facts(world: World) -> dict[str, Any]:
    """What every output of this run records: HDF5 attributes by name."""
    return {
        "hpcvdj_version": hpcvdj.__version__,
        "command_line": shlex.join(sys.argv),
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "mpi_library": world.library,
        "mpi_size": world.size,
        "slurm_job_id": os.environ.get("SLURM_JOB_ID", ""),
        **{f"version_{name}": version for name, version in library_versions().items()},
    }
