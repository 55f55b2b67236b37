"""The CUDA backend: one GPU to a rank, kernels compiled at run time for that GPU by NVRTC through cupy.

A kernel call has four phases: split the tasks into batches and tiles, transfer what the GPU lacks, launch, gather the
counters.  cupy raises on a launch or a transfer that fails.
"""

from __future__ import annotations

import ctypes
import importlib
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

    def load(self, method: str, problem: Problem, threads_per_block: int) -> Kernel:
        """The kernel of `method`, compiled (or taken from cupy's cache), and the problem's tables on the GPU."""
        module, _, name = _KERNELS[method].partition(".")
        kernel: Kernel = getattr(importlib.import_module(f"{__name__}.{module}"), name)(problem, threads_per_block)
        return kernel
