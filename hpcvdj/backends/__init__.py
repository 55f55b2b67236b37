"""Backends: where the kernels run.  A backend's heavy imports happen when it is chosen, not before."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.methods.base import Problem, Unit

BACKENDS = ("cuda", "cpu")
"""The backends of this version, in the order in which `auto` prefers them."""


class Kernel(Protocol):
    """A method's kernel, loaded with a problem."""

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """Pathways that tasks first … last-1 of `unit` find: uint64 [sequences of the unit, its n-lengths].

        The array is the kernel's own: its next call may overwrite it.
        """
        ...


class Backend(Protocol):
    """A kind of processor."""

    name: str
    unit_work: int

    def describe(self) -> str:
        """The hardware in words, for logs and results."""
        ...

    def software(self) -> str:
        """Versions of what compiles and runs the kernels, for results."""
        ...

    def load(self, method: str, problem: Problem, threads_per_block: int) -> Kernel:
        """The kernel of a method, with the problem's data where the kernel wants it."""
        ...


def open_backend(name: str = "auto", local_rank: int = 0) -> Backend:
    """The backend called `name`, or for `auto` a GPU if there is one, else the CPU.

    `local_rank` chooses among a host's GPUs.  InputError for an unknown name, MachineError for `cuda` without CUDA.
    """
    if name not in ("auto", *BACKENDS):
        raise InputError(f"no backend {name!r}; there are auto, {', '.join(BACKENDS)}")
    from hpcvdj.backends.cuda import CudaBackend, device_count

    if name == "cuda" or (name == "auto" and device_count()):
        return CudaBackend(local_rank)
    from hpcvdj.backends.cpu import CpuBackend

    return CpuBackend()
