"""The provenance of a result: versions, machine, ranks and command line, as attributes of a result file."""

import hashlib
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import hpcvdj
from hpcvdj.runs.ranks import World

LIBRARIES = ("numpy", "numba", "pyarrow", "h5py", "mpi4py", "typer", "rich")
"""Libraries whose versions a result records."""

_NUMBERS = (
    "NUMBA_CPU_FEATURES",
    "NUMBA_CPU_NAME",
    "NUMBA_DISABLE_JIT",
    "NUMBA_ENABLE_AVX",
    "NUMBA_LOOP_VECTORIZE",
    "NUMBA_OPT",
)
"""Settings of numba that may change digits of the results of kernels."""


def library_versions() -> dict[str, str]:
    """Return the version of each of `LIBRARIES`, or `not installed`."""
    return {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def computing() -> str:
    """Return what the numbers of a rank depend on: versions of hpcvdj, Python and libraries, and settings of numba.

    The sizes of its modules and kernels identify hpcvdj, too, because a checkout keeps its version for a long time.
    """
    folder = Path(hpcvdj.__file__).parent
    sources = sorted(path for kind in ("py", "cu", "cuh") for path in folder.rglob(f"*.{kind}"))
    sizes = "".join(f"{path.relative_to(folder)} {path.stat().st_size}\n" for path in sources)
    digest = hashlib.sha256(sizes.encode()).hexdigest()[:12]
    libraries = [f"{name} {_version(name)}" for name in ("numpy", "numba", "scipy")]
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name in _NUMBERS]
    return ", ".join(
        [f"hpcvdj {hpcvdj.__version__} ({digest})", f"Python {platform.python_version()}", *libraries, *settings]
    )


def run_facts(world: World) -> dict[str, Any]:
    """Return what every output of this run records: HDF5 attributes by name."""
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
