"""The CUDA backend: one GPU to a rank, kernels compiled at run time for that GPU by NVRTC through cupy.

A kernel call has four phases: split the tasks into batches and tiles, transfer what the GPU lacks, launch, gather the
counters.  cupy raises on a launch or a transfer that fails.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import os
import shutil
import tempfile
from typing import Any

from hpcvdj.backends import Kernel
from hpcvdj.errors import MachineError
from hpcvdj.methods.base import Problem

_KERNELS = {"direct": "direct.DirectKernel", "bitwise": "bitwise.BitwiseKernel", "baseline": "baseline.BaselineKernel"}

INSTALL = "install hpcvdj[cuda13] (or hpcvdj[cuda12] for a driver older than CUDA 13)"


def device_count() -> int:
    """GPUs that this process sees; 0 without cupy, a driver or a GPU."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # cupy's import and its runtime fail in many ways where there is no CUDA
        return 0


def use_job_cache() -> None:
    """Under Slurm, let cupy keep compiled kernels in a node-local folder of this process, unless the user named one.

    cupy's own place is the home folder, which on a cluster many ranks would write at once over the network.
    """
    if "SLURM_JOB_ID" in os.environ and "CUPY_CACHE_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix=f"hpcvdj-{os.environ['SLURM_JOB_ID']}-")
        os.environ["CUPY_CACHE_DIR"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


class CudaBackend:
    """The GPU number `local_rank` modulo the GPUs that this process sees."""

    name = "cuda"
    unit_work = 1 << 26

    def __init__(self, local_rank: int = 0) -> None:
        try:
            import cupy
        except ImportError as error:
            raise MachineError(f"--backend cuda needs cupy ({error}): {INSTALL}") from None
        count = device_count()
        if count == 0:
            raise MachineError("--backend cuda: no GPU, or no driver for one; nvidia-smi should list it")
        self.device = local_rank % count
        use_job_cache()
        cupy.cuda.Device(self.device).use()
        self._properties: dict[str, Any] = cupy.cuda.runtime.getDeviceProperties(self.device)

    @property
    def uuid(self) -> str:
        """The GPU's UUID, as `nvidia-smi -L` prints it."""
        # From the driver: cupy's device properties cut the UUID at its first zero byte.
        buffer = ctypes.create_string_buffer(16)
        ctypes.CDLL("libcuda.so.1").cuDeviceGetUuid(buffer, ctypes.c_int(self.device))
        raw = buffer.raw.hex()
        return "GPU-" + "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:32]))

    def describe(self) -> str:
        """The GPU's name, number and UUID."""
        return f"{self._properties['name'].decode()}, device {self.device}, {self.uuid}"

    def software(self) -> str:
        """Versions of cupy, of the CUDA runtime and of the CUDA that the driver supports."""
        import cupy

        runtime = cupy.cuda.runtime
        versions = {"CUDA runtime": runtime.runtimeGetVersion(), "CUDA driver": runtime.driverGetVersion()}
        named = (f"{name} {number // 1000}.{number % 1000 // 10}" for name, number in versions.items())
        return ", ".join((f"cupy {cupy.__version__}", *named))

    def load(self, method: str, problem: Problem, threads_per_block: int) -> Kernel:
        """The kernel of `method`, compiled (or taken from cupy's cache), and the problem's tables on the GPU."""
        from hpcvdj.backends.cuda.device import failures_named

        module, _, name = _KERNELS[method].partition(".")
        with failures_named():
            kernel: Kernel = getattr(importlib.import_module(f"{__name__}.{module}"), name)(problem, threads_per_block)
        return kernel
