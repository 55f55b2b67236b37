"""Ranks: the only module that imports mpi4py.

Without an MPI library the program runs serially, as a world of one rank.  A launcher that started several ranks
without the library they need is an error: each rank would run alone and write the same file.
"""

import atexit
import logging
import math
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import HpcvdjError, LauncherError, LostRankError, installing

log = logging.getLogger(__name__)

T = TypeVar("T")

ROOT = 0
"""The rank that reads, writes and prints."""

_LAUNCHER_SIZES = (
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "PALS_SIZE",
    "SLURM_STEP_NUM_TASKS",
)
_LAUNCHER_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID")

LAST_WORDS_SECONDS = 0.3
"""How long a failing rank waits for the launcher to forward its message before it ends all ranks."""

PATIENCE_SECONDS = 120.0
"""How long a rank waits in a collective for the other ranks, whose steps take seconds."""

_SPIN_SECONDS, _NAP_SECONDS = 0.002, 0.0002

_LAST_WORDS_APART = _GRACE_SECONDS = 1.0

_BROADCAST_BYTES = 1 << 30
"""Arrays are broadcast in parts: older MPI libraries count bytes in 32 bits."""


def launched_ranks() -> int:
    """How many ranks the launcher says it started, from its environment; 1 without a launcher."""
    sizes = (os.environ.get(name, "") for name in _LAUNCHER_SIZES)
    return max((int(size) for size in sizes if size.isdigit()), default=1)


def launched_rank() -> int:
    """This process's rank by the launcher's environment, before MPI starts: root prints usage errors."""
    names = (*_LAUNCHER_RANKS, "SLURM_PROCID") if "SLURM_STEP_NUM_TASKS" in os.environ else _LAUNCHER_RANKS
    ranks = (os.environ.get(name, "") for name in names)
    return next((int(rank) for rank in ranks if rank.isdigit()), ROOT)


NO_LIBRARY = "none (serial)"
"""The name of the MPI library of a serial run."""


class World:
    """The ranks of this program.  `comm` is mpi4py's communicator, or None for a world of one rank."""

    def __init__(self, comm: Any = None, library: str = NO_LIBRARY) -> None:
        self._comm = comm
        self.library = library
        self.patience = PATIENCE_SECONDS
        self.rank: int = comm.Get_rank() if comm is not None else ROOT
        self.size: int = comm.Get_size() if comm is not None else 1

    @property
    def is_root(self) -> bool:
        """Whether this rank reads, writes and prints."""
        return self.rank == ROOT

    def wait(self, request: Any, begun: float | None = None) -> None:
        """Wait for a collective; LostRankError if `patience` runs out.

        Python's signal handlers run meanwhile, which they would not in a blocking call.

        begun  the time.monotonic() since which this rank is patient; by default it begins to be now
        """
        called = time.monotonic()
        while not request.Test():
            now = time.monotonic()
            waited = now - (begun or called)
            # Ranks give up one after another, so that the first one speaks for all.
            impatient = waited > self.patience + self.rank * _LAST_WORDS_APART
            # If it was this rank that was slow, the others have come meanwhile.
            if impatient and (begun is None or now - called > _GRACE_SECONDS):
                raise LostRankError(
                    f"rank {self.rank} waited {waited:.0f} s for the other ranks: one of them hangs, is cut off, or "
                    "needs longer for one step than --patience allows; check its node, then run the command again"
                )
            if now - called > _SPIN_SECONDS:
                time.sleep(_NAP_SECONDS)

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The element-wise sum of the ranks' `values` (one shape on every rank), on every rank: the paper's all-reduce.

        TypeError unless they are integers: floating-point sums would depend on the order of the ranks.
        """
        if not np.issubdtype(values.dtype, np.integer):
            raise TypeError(f"ranks add up integers only, not {values.dtype}: gather the values of disjoint tasks")
        return self._reduce(values, "SUM")

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The element-wise maximum over ranks, on every rank: a step takes as long as its slowest rank."""
        return self._reduce(values, "MAX")

    def _reduce(self, values: NDArray[Any], operation: str) -> NDArray[Any]:
        if self.size == 1:
            return values
        result = np.empty_like(values, order="C")
        self.wait(self.start_reduce(np.ascontiguousarray(values), result, operation))
        return result

    def start_reduce(self, values: NDArray[Any], result: NDArray[Any], operation: str) -> Any:
        """Begin an all-reduce by an operation of MPI's; returns its request."""
        from mpi4py import MPI

        return self._comm.Iallreduce(values, result, op=getattr(MPI, operation))

    def gather_rows(self, values: NDArray[Any], ranges: Sequence[tuple[int, int]]) -> NDArray[Any]:
        """Root gets rows ranges[r] of rank r's `values`, each in its place; the other ranks get their own values back.

        The values have one shape on every rank; the ranges follow each other and cover all rows.
        """
        if self.size == 1:
            return values
        from mpi4py import MPI

        first, last = ranges[self.rank]
        # A row as one element: the number of single values would exceed 32 bits.
        row = MPI.BYTE.Create_contiguous(values.itemsize * values.shape[1]).Commit()
        own = np.ascontiguousarray(values[first:last])
        gathered = np.empty_like(values, order="C") if self.is_root else None
        places = [b - a for a, b in ranges], [a for a, _ in ranges]
        self.wait(self._comm.Igatherv([own, len(own), row], [gathered, *places, row] if self.is_root else None, ROOT))
        row.Free()
        return gathered if gathered is not None else values

    def broadcast(self, value: Any) -> Any:
        """Root's `value` (any picklable object, small) on every rank."""
        if self.size == 1:
            return value
        data = np.frombuffer(pickle.dumps(value) if self.is_root else b"", np.uint8)
        size = np.array([len(data)])
        self.wait(self._comm.Ibcast(size, ROOT))
        data = data.copy() if self.is_root else np.empty(size[0], np.uint8)
        self.wait(self._comm.Ibcast(data, ROOT))
        return value if self.is_root else pickle.loads(data.tobytes())

    def broadcast_array(self, array: NDArray[Any] | None) -> NDArray[Any]:
        """Root's `array` on every rank; the other ranks pass None."""
        if self.size == 1:
            assert array is not None
            return array
        shape, dtype = self.broadcast((array.shape, array.dtype.str) if array is not None else None)
        result = np.ascontiguousarray(array) if array is not None else np.empty(shape, dtype)
        flat = result.reshape(-1).view(np.uint8)
        for first in range(0, flat.size, _BROADCAST_BYTES):
            self.wait(self._comm.Ibcast(flat[first : first + _BROADCAST_BYTES], ROOT))
        return result

    def gather(self, value: Any) -> list[Any] | None:
        """Every rank's `value` (any picklable object) in rank order on root, None on the other ranks."""
        return self._gathered(value, everywhere=False)

    def gather_everywhere(self, value: Any) -> list[Any]:
        """Every rank's `value` (any picklable object, small) in rank order, on every rank."""
        return self._gathered(value, everywhere=True) or []

    def _gathered(self, value: Any, *, everywhere: bool) -> list[Any] | None:
        if self.size == 1:
            return [value]
        from mpi4py import MPI

        data, sizes = np.frombuffer(pickle.dumps(value), np.uint8), np.empty(self.size, np.int64)
        self.wait(self._comm.Iallgather(np.array([len(data)]), sizes))
        ends = np.cumsum(sizes)
        joined = np.empty(ends[-1] if everywhere or self.is_root else 0, np.uint8)
        parts = [joined, (sizes, ends - sizes), MPI.BYTE]
        if everywhere:
            self.wait(self._comm.Iallgatherv(data, parts))
        else:
            self.wait(self._comm.Igatherv(data, parts if self.is_root else None, ROOT))
            if not self.is_root:
                return None
        return [pickle.loads(joined[end - size : end].tobytes()) for size, end in zip(sizes, ends, strict=True)]

    def barrier(self) -> None:
        """Wait for every rank; LostRankError if `patience` runs out."""
        if self.size > 1:
            self.wait(self._comm.Ibarrier())

    def local_rank(self) -> int:
        """This rank's number among the ranks of its host: it decides which of the host's GPUs is its own."""
        return self._on_this_host(None)[0]

    def cores(self) -> int:
        """Cores for this rank: its own if the launcher bound it to some, else its share of the host's."""
        own = usable_cores()
        return max(1, len(own) // self._on_this_host(own)[1].count(own))

    def _on_this_host(self, value: T) -> tuple[int, list[T]]:
        """This rank's number among the ranks of its host, and the values of these."""
        host = _host()
        ranks = self.gather_everywhere((self.rank, host, value))
        values = [(rank, own) for rank, other, own in ranks if other == host]
        return [rank for rank, _ in values].index(self.rank), [own for _, own in values]

    def require_same(self, what: str, value: str, remedy: str = "start all ranks with the same command") -> None:
        """Raise LauncherError, on every rank, unless `value` is the same on all."""
        values = self.gather_everywhere(value)
        other = next((rank for rank, own in enumerate(values) if own != values[ROOT]), None)
        if other is not None:
            error = LauncherError(
                f"rank {other} has other {what} than rank {ROOT}: {values[other]!r}, not {values[ROOT]!r}; {remedy}"
            )
            error.on_every_rank = True
            raise error

    def on_root(self, work: Callable[[], T]) -> T | None:
        """`work()` on root, None on the other ranks; an HpcvdjError on root is raised on every rank."""
        result: T | None = None
        error: HpcvdjError | None = None
        if self.is_root:
            try:
                result = work()
            except LostRankError:
                raise
            except HpcvdjError as failure:
                error = failure
        error = self.broadcast(error)
        if error is not None:
            error.on_every_rank = True
            raise error
        return result


def _host() -> str:
    """What only the processes of this host have in common: containers may share a name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return socket.gethostname()


def usable_cores() -> set[int]:
    """The cores that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def set_threads(current: World, threads: int | None = None) -> int:
    """Give this rank `threads` threads, or its share of the host's cores; returns how many.

    Once numba is loaded, its number of threads can only be lowered.
    """
    count = threads or current.cores()
    if numba := sys.modules.get("numba"):
        # A changed variable would be an error at the next compilation.
        count = min(count, numba.config.NUMBA_NUM_THREADS)
        numba.set_num_threads(count)
    elif threads or "NUMBA_NUM_THREADS" not in os.environ:
        os.environ["NUMBA_NUM_THREADS"] = str(count)
    # numba's OpenMP layer otherwise spins between parallel regions: 12 ms a call on two cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return count


def log_if_serial(current: World) -> None:
    """Say how to use more ranks, if there is no MPI library; for commands whose work ranks share."""
    if current.library == NO_LIBRARY:
        log.info("no MPI library found: running serially; for more ranks %s", installing("mpich"))


class Starting:
    """How MPI starts.

    patience  seconds that the ranks wait for each other then
    """

    patience = PATIENCE_SECONDS


starting = Starting()


@cache
def world() -> World:
    """The ranks that this process belongs to; MPI starts on the first call.

    LauncherError if the launcher started more ranks than the MPI library knows of.
    """
    launched = launched_ranks()
    try:
        with _limited(launched):
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        # Without an MPI library to load, mpi4py raises RuntimeError, not ImportError.
        if launched > 1:
            raise LauncherError(
                f"started as {launched} ranks, but there is no MPI library to join them "
                f"({str(error).splitlines()[0]}); {installing('mpich')}, or load your "
                "cluster's MPI module and install mpi4py against it"
            ) from None
        return World()
    size = MPI.COMM_WORLD.Get_size()
    library = MPI.Get_library_version().strip().splitlines()[0]
    library = " ".join(library.replace("\0", "").split())
    if size != launched and launched > 1:
        raise LauncherError(
            f"the launcher started {launched} ranks, but the MPI library ({library}) sees {size}: launcher and library "
            "do not match; start with the mpiexec of that library (under Slurm with mpich: srun --mpi=pmi2)"
        )
    if size == 1:
        return World(None, library)
    current = World(MPI.COMM_WORLD, library)
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        """Let a rank that fails with an exception end all ranks; plain Python would leave them waiting for it."""
        previous(kind, value, trace)
        abort()

    sys.excepthook = hook
    # The last thing that ranks do together is to leave MPI.
    atexit.register(lambda: signal.alarm(_alarm_seconds(current.patience)))
    return current


@contextmanager
def _limited(launched: int) -> Iterator[None]:
    """End this process if MPI does not start within the patience, which no Python code could do then."""
    if launched == 1:
        yield
        return
    previous = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_alarm_seconds(starting.patience))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def _alarm_seconds(patience: float) -> int:
    """Studies have infinite patience, but not for the start and the end of MPI."""
    return math.ceil(patience if math.isfinite(patience) else PATIENCE_SECONDS)


def abort(exit_code: int = 1) -> None:
    """End every rank with `exit_code`, waiting ones too; returns only in a world of one rank."""
    if world().size == 1:
        return
    from mpi4py import MPI

    sys.stdout.flush()
    sys.stderr.flush()
    # mpiexec reads the ranks' output through pipes and drops what is still in them when the ranks are killed.
    time.sleep(LAST_WORDS_SECONDS)
    MPI.COMM_WORLD.Abort(exit_code)
