"""Backends: where kernels run.  Heavy imports happen when a backend is opened, so `--help` works without a GPU."""

import atexit
import ctypes
import os
import platform
import shutil
import tempfile
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, ClassVar
from uuid import UUID

from hpcvdj.errors import InputError, MachineError, choices, installing, option, require_choice
from hpcvdj.kernels.kernel import Kernel, Unit
from hpcvdj.kernels.method import Method
from hpcvdj.options import Option
from hpcvdj.storage.ahead import import_ahead

AUTO = "auto"
"""The name that means a GPU if there is one, else the CPU."""

BackendName = Annotated[
    str,
    Option(
        "`auto` takes a GPU if there is one, `cuda` requires one, for each rank, `cpu` does not use it",
        choices=lambda: (AUTO, *choices(Backend)), more=True,
    ),
]  # fmt: skip
"""Where something is computed."""

StrictBinding = Annotated[bool, Option("fail, not warn, if two ranks have the same GPU", more=True, python=False)]


class Backend:
    """A kind of processor.

    name       as users give it
    unit_work  n-nucleotide strings × sequences that an enumerating method puts into one unit
    uuid       of the GPU; empty on CPU cores
    """

    name: ClassVar[str]
    unit_work: ClassVar[int]
    uuid: str = ""

    def __init__(self, local_rank: int = 0) -> None:
        """Open it; `local_rank` chooses among a host's GPUs.  MachineError if the machine does not have it."""

    def describe(self) -> str:
        """The hardware in words, for logs and results."""
        raise NotImplementedError

    def software(self) -> str:
        """Versions of what compiles and runs the kernels, for results."""
        raise NotImplementedError

    def load(self, method: Method, problem: Any, threads_per_block: int = 0) -> Kernel:
        """The kernel of a method, compiled, with the problem's data where the kernel needs them; InputError if none."""
        if self.name not in method.kernels:
            raise InputError(
                f"{option('method', method.name)} has no kernel for {option('backend', self.name)}; choose another "
                "of the two"
            )
        kernel: Kernel = resolve_name(method.kernels[self.name])(problem, threads_per_block)
        return kernel


class CudaBackend(Backend):
    """The GPU number `local_rank` modulo the GPUs that this process sees; kernels are compiled at run time by NVRTC."""

    name = "cuda"
    unit_work = 1 << 26

    def __init__(self, local_rank: int = 0) -> None:
        try:
            import cupy
        except ImportError as error:
            raise MachineError(
                f"{option('backend', 'cuda')} needs cupy ({error}): {installing('cuda13')}, or cuda12 for a driver "
                "older than CUDA 13"
            ) from None
        gpus = gpu_count()
        if gpus == 0:
            raise MachineError(f"{option('backend', 'cuda')}: no GPU, or no driver for one; nvidia-smi should list it")
        self.device = local_rank % gpus
        if "SLURM_JOB_ID" in os.environ and "CUPY_CACHE_DIR" not in os.environ:
            # cupy's cache is in the home folder, which on a cluster many ranks would write at once over the network.
            folder = tempfile.mkdtemp(prefix=f"hpcvdj-{os.environ['SLURM_JOB_ID']}-")
            os.environ["CUPY_CACHE_DIR"] = folder
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        cupy.cuda.Device(self.device).use()
        self._name = cupy.cuda.runtime.getDeviceProperties(self.device)["name"].decode()
        self.uuid = gpu_uuid(self.device)

    def describe(self) -> str:
        """The GPU's name, number and UUID."""
        return f"{self._name}, device {self.device}, {self.uuid}"

    def software(self) -> str:
        """Versions of cupy, of the CUDA runtime and of the CUDA that the driver supports."""
        import cupy

        runtime = cupy.cuda.runtime
        versions = {"CUDA runtime": runtime.runtimeGetVersion(), "CUDA driver": runtime.driverGetVersion()}
        named = (f"{name} {number // 1000}.{number % 1000 // 10}" for name, number in versions.items())
        return ", ".join((f"cupy {cupy.__version__}", *named))


class CpuBackend(Backend):
    """All cores that this process may use, or `NUMBA_NUM_THREADS` of them."""

    name = "cpu"
    unit_work = 1 << 20

    def describe(self) -> str:
        """Processor and threads."""
        import numba

        return f"{_processor()}, {numba.get_num_threads()} thread(s)"

    def software(self) -> str:
        """The compiler's version."""
        import numba

        return f"numba {numba.__version__}"

    def load(self, method: Method, problem: Any, threads_per_block: int = 0) -> Kernel:
        """The kernel, compiled or taken from numba's cache, with the germline's tables."""
        kernel = super().load(method, problem, threads_per_block)
        if problem.repertoire.pairs:
            # No task at all, but numba compiles (or loads what it compiled before) here, not in the first unit.
            rows = problem.repertoire.rows_of(0)
            kernel(Unit(range(1), rows, range(1), len(rows)), 0, 0)
        return kernel


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def gpu_count() -> int:
    """GPUs that this process sees; 0 without cupy, a driver or a GPU."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # cupy's import and its runtime fail in many ways where there is no CUDA
        return 0


def gpu_uuid(device: int) -> str:
    """The UUID of a GPU, as `nvidia-smi -L` prints it."""
    # From the driver: cupy's device properties cut the UUID at its first zero byte.
    buffer = ctypes.create_string_buffer(16)
    ctypes.CDLL("libcuda.so.1").cuDeviceGetUuid(buffer, ctypes.c_int(device))
    return f"GPU-{UUID(bytes=buffer.raw)}"


def import_backend_ahead(name: str) -> None:
    """Begin to import what a backend needs that is opened later."""
    if name != CpuBackend.name:
        import_ahead("cupy")


def open_backend(name: str = AUTO, local_rank: int = 0) -> Backend:
    """Open the backend called `name`; for `auto` the GPU if this process sees one, else the CPU.

    InputError for an unknown name, MachineError for `cuda` without CUDA.
    """
    known = choices(Backend)
    require_choice("backend", name, (AUTO, *known))
    if name == AUTO:
        name = CudaBackend.name if gpu_count() else CpuBackend.name
    return known[name](local_rank)
