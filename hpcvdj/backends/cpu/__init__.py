"""The CPU backend: numba kernels over the threads of one process."""

from __future__ import annotations

import importlib
import platform
from pathlib import Path

import numba

from hpcvdj.backends import Kernel
from hpcvdj.methods.base import CPU_UNIT_WORK, Problem, Unit

_KERNELS = {"direct": "DirectKernel", "bitwise": "BitwiseKernel", "baseline": "BaselineKernel"}


class CpuBackend:
    """All cores that this process may use, or `NUMBA_NUM_THREADS` of them."""

    name = "cpu"
    unit_work = CPU_UNIT_WORK

    def describe(self) -> str:
        """Processor and threads."""
        return f"{_processor()}, {numba.get_num_threads()} thread(s)"

    def software(self) -> str:
        """The compiler's version."""
        return f"numba {numba.__version__}"

    def load(self, method: str, problem: Problem, threads_per_block: int = 0) -> Kernel:
        """The kernel of `method` with the germline's tables ready."""
        module = importlib.import_module(f"{__name__}.{method}")
        kernel: Kernel = getattr(module, _KERNELS[method])(problem)
        if problem.repertoire.pairs:
            # No task at all, but numba compiles (or loads what it compiled before) here, not in the first unit.
            rows = range(int(problem.repertoire.offsets[1]))
            kernel(Unit(range(1), rows, range(1), len(rows)), 0, 0)
        return kernel


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
