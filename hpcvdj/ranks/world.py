"""Ranks: the only module that imports mpi4py.

With no MPI library the program runs serially, as a world of one rank.  A launcher that started several ranks
without the library they need is an error: each would believe itself alone and write the same file.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import HpcvdjError, LauncherError, LostRankError

log = logging.getLogger(__name__)

T = TypeVar("T")

ROOT = 0
"""The rank that reads, writes and speaks."""

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
"""How long a rank waits in a collective for the others, whose pieces of work take seconds."""

_SPIN_SECONDS, _NAP_SECONDS = 0.002, 0.0002

_LAST_WORDS_APART = 1.0

_BROADCAST_BYTES = 1 << 30
"""Arrays are broadcast in pieces: a 32-bit count of bytes is what older MPI libraries take."""


def launched_ranks() -> int:
    """How many ranks the launcher says it started, from its environment; 1 without a launcher."""
    sizes = (os.environ.get(name, "") for name in _LAUNCHER_SIZES)
    return max((int(size) for size in sizes if size.isdigit()), default=1)


def launched_rank() -> int:
    """This process's rank by the launcher's environment, before MPI starts: who prints a usage error."""
    names = (*_LAUNCHER_RANKS, "SLURM_PROCID") if "SLURM_STEP_NUM_TASKS" in os.environ else _LAUNCHER_RANKS
    ranks = (os.environ.get(name, "") for name in names)
    return next((int(rank) for rank in ranks if rank.isdigit()), ROOT)


NO_LIBRARY = "none (serial)"
"""What stands for the MPI library where there is none."""


class World:
    """The ranks of this run.  `comm` is mpi4py's communicator, or None for a world of one rank."""

    def __init__(self, comm: Any = None, library: str = NO_LIBRARY) -> None:
        self._comm = comm
        self.library = library
        self.patience = PATIENCE_SECONDS
        self.rank: int = comm.Get_rank() if comm is not None else ROOT
        self.size: int = comm.Get_size() if comm is not None else 1

    @property
    def is_root(self) -> bool:
        """Whether this rank reads, writes and speaks."""
        return self.rank == ROOT

    def _wait(self, request: Any) -> None:
        """Wait for a collective; LostRankError if `patience` runs out.

        Python's signal handlers run meanwhile, which they would not in a blocking call.
        """
        started = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - started
            # Ranks lose patience one after another, so that the first speaks for all.
            if waited > self.patience + self.rank * _LAST_WORDS_APART:
                raise LostRankError(
                    f"rank {self.rank} waited {waited:.0f} s for the other ranks: one of them hangs, is cut off, or "
                    "has more to do at a time than --patience allows; see its node, then start again with --resume"
                )
            if waited > _SPIN_SECONDS:
                time.sleep(_NAP_SECONDS)

    def sum_counters(self, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The ranks' `counters` (one shape on every rank) added up, on every rank: the paper's all-reduce."""
        if self.size == 1:
            return counters
        from mpi4py import MPI

        counters = np.ascontiguousarray(counters)
        total = np.empty_like(counters)
        self._wait(self._comm.Iallreduce([counters, MPI.UINT64_T], [total, MPI.UINT64_T], op=MPI.SUM))
        return total

    def gather_rows(self, counters: NDArray[np.uint64], ranges: Sequence[tuple[int, int]]) -> NDArray[np.uint64]:
        """Root gets rows ranges[r] of rank r's `counters` (one shape on every rank) in their places; others their own.

        The ranges follow each other and cover all rows.
        """
        if self.size == 1:
            return counters
        from mpi4py import MPI

        first, last = ranges[self.rank]
        columns = counters.shape[1]
        # A row as one element: counts of single counters would pass 32 bits.
        row = MPI.UINT64_T.Create_contiguous(columns).Commit()
        mine = np.ascontiguousarray(counters[first:last])
        whole = np.empty_like(counters, order="C") if self.is_root else None
        places = [b - a for a, b in ranges], [a for a, _ in ranges]
        self._wait(self._comm.Igatherv([mine, len(mine), row], [whole, *places, row] if self.is_root else None, ROOT))
        row.Free()
        return whole if whole is not None else counters

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The element-wise maximum over ranks, on every rank: a step takes as long as its slowest rank."""
        if self.size == 1:
            return values
        from mpi4py import MPI

        out = np.empty_like(values)
        self._wait(self._comm.Iallreduce(np.ascontiguousarray(values), out, op=MPI.MAX))
        return out

    def broadcast(self, value: Any) -> Any:
        """Root's `value` (any picklable object, small) on every rank."""
        return self._comm.bcast(value, root=ROOT) if self.size > 1 else value

    def broadcast_array(self, array: NDArray[Any] | None) -> NDArray[Any]:
        """Root's `array` on every rank; the others pass None."""
        if self.size == 1:
            assert array is not None
            return array
        shape, dtype = self.broadcast((array.shape, array.dtype.str) if array is not None else None)
        whole = np.ascontiguousarray(array) if array is not None else np.empty(shape, dtype)
        flat = whole.reshape(-1).view(np.uint8)
        for first in range(0, flat.size, _BROADCAST_BYTES):
            self._comm.Bcast(flat[first : first + _BROADCAST_BYTES], root=ROOT)
        return whole

    def gather(self, value: Any) -> list[Any] | None:
        """Every rank's `value` in rank order on root, None elsewhere."""
        if self.size == 1:
            return [value]
        gathered: list[Any] | None = self._comm.gather(value, root=ROOT)
        return gathered

    def barrier(self) -> None:
        """Wait for every rank."""
        if self.size > 1:
            self._comm.Barrier()

    def meet(self) -> None:
        """Wait for every rank; LostRankError if `patience` runs out."""
        if self.size > 1:
            self._wait(self._comm.Ibarrier())

    def watch(self, wish: Callable[[], bool]) -> Watch:
        """A watch over the ranks, each of which works for itself; `wish` says whether this one wants all to stop."""
        return Watch(self, self._comm, wish)

    def local_rank(self) -> int:
        """This rank's place among the ranks of its host: which of the host's GPUs is its own."""
        if self.size == 1:
            return 0
        from mpi4py import MPI

        local = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        place: int = local.Get_rank()
        local.Free()
        return place

    def cores(self) -> int:
        """Cores for this rank: its own if the launcher bound it to some, else its share of the host's."""
        mine = usable_cores()
        if self.size == 1:
            return len(mine)
        from mpi4py import MPI

        local = self._comm.Split_type(MPI.COMM_TYPE_SHARED)
        sharing: int = sum(cores == mine for cores in local.allgather(mine))
        local.Free()
        return max(1, len(mine) // sharing)


class Watch:
    """How ranks that work each for itself hear that one wants to stop, and notice one that hangs.

    Every rank calls `passed` between the pieces of its work, which does not wait, and `end` when it has none left.
    A round is over when every rank has passed, or ended, since the last.  One that takes longer than the world's
    `patience` has a rank stop and wait for it; LostRankError if it is not over in that time again.
    """

    def __init__(self, world: World, comm: Any, wish: Callable[[], bool]) -> None:
        self._world, self._comm, self._wish = world, comm, wish
        self._stop = False
        self._round: Any = None
        self._begun = 0.0

    def passed(self) -> bool:
        """A piece is done.  Whether a rank wants to stop, as far as this one knows."""
        self._stop |= self._wish()
        if self._world.size > 1:
            if self._round is not None:
                if time.monotonic() - self._begun > self._world.patience:
                    self._world._wait(self._round)
                if self._round.Test():
                    self._close()
            if self._round is None:
                self._open(working=True)
        return self._stop

    def end(self) -> bool:
        """This rank has done what it does; wait for the others.  Whether one wants to stop, the same on every rank."""
        working = self._world.size > 1
        while working:
            if self._round is None:
                self._stop |= self._wish()
                self._open(working=False)
            self._world._wait(self._round)
            working = self._close()
        return self._stop

    def _open(self, *, working: bool) -> None:
        from mpi4py import MPI

        self._mine = np.array([float(self._stop), float(working)])
        self._all = np.empty_like(self._mine)
        self._begun = time.monotonic()
        self._round = self._comm.Iallreduce(self._mine, self._all, op=MPI.MAX)

    def _close(self) -> bool:
        """Take note of what a round that is over found: whether any rank was at work."""
        self._round = None
        self._stop |= bool(self._all[0])
        return bool(self._all[1])


def root_does(world: World, work: Callable[[], T], watch: Watch | None = None) -> T | None:
    """`work()` on root; an HpcvdjError there is raised on every rank, so that all end alike.

    With a `watch`, which `work` passes between its pieces, the others notice if root hangs.
    """
    result: T | None = None
    error: HpcvdjError | None = None
    if world.is_root:
        try:
            result = work()
        except LostRankError:
            raise
        except HpcvdjError as caught:
            error = caught
    if watch is not None:
        watch.end()
    error = world.broadcast(error)
    if error is not None:
        error.on_every_rank = True
        raise error
    return result


def usable_cores() -> set[int]:
    """The cores that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def set_threads(current: World, threads: int | None = None) -> int:
    """Give this rank `threads` threads, or its share of the host's cores; returns how many.

    Takes effect only before numba is imported.
    """
    count = threads or current.cores()
    if threads or "NUMBA_NUM_THREADS" not in os.environ:
        os.environ["NUMBA_NUM_THREADS"] = str(count)
    # numba's OpenMP layer otherwise spins between parallel regions: 12 ms a call on two cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return count


def say_if_serial(current: World) -> None:
    """Tell who could have more ranks how; for commands whose work ranks share, since others need no MPI."""
    if current.library == NO_LIBRARY:
        log.info("no MPI library found: running serially (install hpcvdj[mpich] for more ranks)")


@cache
def world() -> World:
    """The ranks that this process belongs to; MPI starts on the first call.

    LauncherError if the launcher started more ranks than the MPI library knows of.
    """
    launched = launched_ranks()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        # Without an MPI library to load, mpi4py raises RuntimeError, not ImportError.
        if launched > 1:
            raise LauncherError(
                f"started as {launched} ranks, but there is no MPI library to join them "
                f"({str(error).splitlines()[0]}); install hpcvdj[mpich] or hpcvdj[openmpi], or load your "
                "cluster's MPI module and install mpi4py against it"
            ) from None
        return World()
    size = MPI.COMM_WORLD.Get_size()
    library = MPI.Get_library_version().strip().splitlines()[0]
    library = " ".join(library.replace("\0", "").split())
    if size != launched and launched > 1:
        raise LauncherError(
            f"the launcher started {launched} ranks, but the MPI library ({library}) sees {size}: they do not "
            "match; start with the mpiexec of that library (under Slurm with mpich: srun --mpi=pmi2)"
        )
    _abort_on_failure(MPI.COMM_WORLD)
    return World(MPI.COMM_WORLD if size > 1 else None, library)


def _abort_on_failure(comm: Any) -> None:
    """A rank that dies of an exception ends all ranks; plain Python would leave them waiting for it."""
    if comm.Get_size() == 1:
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        previous(kind, value, trace)
        _end_all(comm, 1)

    sys.excepthook = hook


def abort(exit_code: int = 1) -> None:
    """End every rank with `exit_code`, those that wait for this one too; returns only in a world of one rank."""
    if world().size > 1:
        from mpi4py import MPI

        _end_all(MPI.COMM_WORLD, exit_code)


def _end_all(comm: Any, exit_code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # mpiexec reads the ranks' output through pipes and drops what is still in them when the ranks are killed.
    time.sleep(LAST_WORDS_SECONDS)
    comm.Abort(exit_code)
