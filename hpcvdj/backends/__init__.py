"""Backends: where the kernels run.  A backend's heavy imports happen when it is chosen, not before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import InputError
from hpcvdj.methods.base import Problem, Unit

BACKENDS = ("cuda", "cpu")
"""The backends of this version, in the order in which `auto` prefers them."""


class Started(Protocol):
    """Tasks that are being counted."""

    def result(self) -> NDArray[np.uint64]:
        """Wait for them: uint64 [sequences of the unit, its n-lengths].

        The array is the kernel's own: the second `start` after the one that it came from may overwrite it.
        """
        ...


class Kernel(Protocol):
    """A method's kernel, loaded with a problem."""

    def start(self, unit: Unit, first: int, last: int) -> Started:
        """Begin to count the pathways that tasks first … last-1 of `unit` find."""
        ...

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """`start` and wait."""
        ...


@dataclass(frozen=True)
class Done:
    """Tasks that were counted before `start` returned."""

    counters: NDArray[np.uint64]

    def result(self) -> NDArray[np.uint64]:
        """What they found."""
        return self.counters


class SynchronousKernel:
    """A kernel that counts when it is called."""

    def __call__(self, unit: Unit, first: int, last: int) -> NDArray[np.uint64]:
        """Count tasks first … last-1 of `unit`."""
        raise NotImplementedError

    def start(self, unit: Unit, first: int, last: int) -> Started:
        """Count them now."""
        return Done(self(unit, first, last))


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
