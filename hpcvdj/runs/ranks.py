"""The ranks of the program.  Only this module imports mpi4py.

Without an MPI library, the program runs serially, as a world of one rank.  If a launcher starts several ranks without
the library that they need, that is an error: each rank would run alone and write the same file.
"""

import atexit
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import HpcvdjError, LauncherError, LostRankError, installing, log
from hpcvdj.runs.launcher import ROOT, last_words, launched_rank, launched_ranks, leave_launch, may_have_ranks
from hpcvdj.runs.liveness import Liveness

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""Seconds that a rank waits for the others while none of them is at work."""

_SPIN_SECONDS, _NAP_SECONDS = 0.002, 0.0002

_LAST_WORDS_APART = _GRACE_SECONDS = 1.0

_LARGE_BYTES = 1 << 16
"""Data of at least this size move in pieces, each of them while a rank asks whether they have come."""

_BROADCAST_BYTES = 1 << 30
"""Bytes of the parts in which arrays are broadcast: older MPI libraries count bytes in 32 bits."""

NO_LIBRARY = "none (serial)"
"""The name of the MPI library of a serial run."""


class World:
    """The ranks of this program.  `comm` is the communicator of mpi4py, or None for a world of one rank."""

    def __init__(self, comm: Any = None, library: str = NO_LIBRARY) -> None:
        self._comm = comm
        self.library = library
        self.patience = PATIENCE_SECONDS
        self._liveness: Liveness | None = None
        self.rank: int = comm.Get_rank() if comm is not None else ROOT
        self.size: int = comm.Get_size() if comm is not None else 1

    @property
    def is_root(self) -> bool:
        """Whether this rank reads, writes and prints."""
        return self.rank == ROOT

    def watch(self) -> None:
        """Let this rank tell the others that it is at work while they wait for it in a collective."""
        comm, request = self._comm.Idup()
        self.wait(request)
        self._liveness = Liveness(comm, lambda: self.patience)

    def leave(self) -> None:
        """Wait for every rank before MPI ends.  The end of MPI itself has no time limit."""
        self.barrier()
        if self._liveness is not None:
            self._liveness.end()

    def wait(self, request: Any, begun: float | None = None, *, naps: bool = True) -> None:
        """Wait for a collective.  Raise LostRankError if no rank has been at work for `patience` seconds.

        Unlike in a blocking call, Python's signal handlers run while the rank waits.

        begun  time.monotonic() from which on patience counts; by default now
        naps   leave the core to others meanwhile
        """
        called = time.monotonic()
        liveness = self._liveness
        while not request.Test():
            now = time.monotonic()
            if now - called <= _SPIN_SECONDS:
                continue
            if liveness is not None:
                liveness.waiting = begun or called
            self._raise_if_impatient(now, called, begun)
            if naps:
                time.sleep(_NAP_SECONDS)
            elif hasattr(os, "sched_yield"):
                # Even sleep(0) takes a tenth of a millisecond.
                os.sched_yield()
        if liveness is not None:
            liveness.done_waiting()

    def _receive(self, request: Any, size: int) -> None:
        """Wait for a collective that brings `size` bytes, a number that is the same on all ranks.

        Each look at the request moves 8 KiB to another rank: with naps between the looks, 100 MB between two ranks of a
        host take 4 s, without 0.06 s.  Without naps a waiting rank takes a core, so all ranks must be there first.
        """
        if size >= _LARGE_BYTES:
            self.wait(self._comm.Ibarrier())
        self.wait(request, naps=size < _LARGE_BYTES)

    def _raise_if_impatient(self, now: float, called: float, begun: float | None) -> None:
        """Raise LostRankError if this rank, waiting since `called`, runs out of patience; for `begun` see `wait`."""
        heard = self._liveness.heard if self._liveness is not None else called
        waited = now - max(begun or called, heard)
        # Ranks give up one after another, so that the first one reports the error for all.
        impatient = waited > self.patience + self.rank * _LAST_WORDS_APART
        # If this rank itself was slow, the others have come, or answered, meanwhile.
        if impatient and (begun is None or now - called > _GRACE_SECONDS):
            raise LostRankError(
                f"rank {self.rank} waited {waited:.0f} s for the other ranks: one of them hangs or is cut off; "
                "check its node, then run the command again"
            )

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the element-wise sum of the ranks' `values` on every rank: the paper's all-reduce.

        The values have the same shape on every rank.  Raises TypeError unless they are integers: floating-point sums
        would depend on the order of the ranks.
        """
        if not np.issubdtype(values.dtype, np.integer):
            raise TypeError(f"ranks add up integers only, not {values.dtype}: gather the values of disjoint tasks")
        return self._reduce(values, "SUM")

    def maximum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the element-wise maximum over ranks, on every rank: a step takes as long as its slowest rank."""
        return self._reduce(values, "MAX")

    def _reduce(self, values: NDArray[Any], operation: str) -> NDArray[Any]:
        if self.size == 1:
            return values
        result = np.empty_like(values, order="C")
        self._receive(self.start_reduce(np.ascontiguousarray(values), result, operation), values.nbytes)
        return result

    def start_reduce(self, values: NDArray[Any], result: NDArray[Any], operation: str) -> Any:
        """Begin an all-reduce by an operation of MPI, and return its request."""
        from mpi4py import MPI

        return self._comm.Iallreduce(values, result, op=getattr(MPI, operation))

    def gather_rows(self, values: NDArray[Any], ranges: Sequence[tuple[int, int]]) -> NDArray[Any]:
        """Gather the rows ranges[r] of the `values` of each rank r on root.  The other ranks get their values back.

        The values have the same shape on every rank.  The ranges are consecutive and cover all rows.
        """
        if self.size == 1:
            return values
        from mpi4py import MPI

        first, last = ranges[self.rank]
        # Count rows, not single values: their number would exceed 32 bits.
        row = MPI.BYTE.Create_contiguous(values.itemsize * values.shape[1]).Commit()
        part = np.ascontiguousarray(values[first:last])
        gathered = np.empty_like(values, order="C") if self.is_root else None
        places = [b - a for a, b in ranges], [a for a, _ in ranges]
        gathering = self._comm.Igatherv(
            [part, len(part), row], [gathered, *places, row] if self.is_root else None, ROOT
        )
        self._receive(gathering, values.nbytes)
        row.Free()
        return gathered if gathered is not None else values

    def broadcast(self, value: Any) -> Any:
        """Return root's `value` (any picklable object) on every rank.  Its large arrays are not copied."""
        if self.size == 1:
            return value
        large: list[memoryview] = []

        def is_small(buffer: pickle.PickleBuffer) -> bool:
            data = buffer.raw()
            if data.nbytes >= _LARGE_BYTES:
                large.append(data)
            return data.nbytes < _LARGE_BYTES

        text = pickle.dumps(value, 5, buffer_callback=is_small) if self.is_root else b""
        head = pickle.dumps((text, [buffer.nbytes for buffer in large]))
        size = np.array([len(head)])
        self.wait(self._comm.Ibcast(size, ROOT))
        text, sizes = pickle.loads(self._of_root(head, size[0]).data)
        arrays = [self._of_root(*one) for one in zip_longest(large, sizes)]
        return value if self.is_root else pickle.loads(text, buffers=arrays)

    def _of_root(self, data: Any, size: int) -> NDArray[np.uint8]:
        """Return the `size` bytes that root has in `data` on every rank."""
        result = np.frombuffer(data, np.uint8) if self.is_root else np.empty(size, np.uint8)
        for first in range(0, size, _BROADCAST_BYTES):
            self._receive(self._comm.Ibcast(result[first : first + _BROADCAST_BYTES], ROOT), size)
        return result

    def gather(self, value: T) -> list[T] | None:
        """Return every rank's `value` (any picklable object) in rank order on root, None on the other ranks."""
        return self._gathered(value, everywhere=False)

    def gather_everywhere(self, value: T) -> list[T]:
        """Return every rank's `value` (any small picklable object) in rank order, on every rank."""
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
            self._receive(self._comm.Iallgatherv(data, parts), sizes.sum())
        else:
            self._receive(self._comm.Igatherv(data, parts if self.is_root else None, ROOT), sizes.sum())
            if not self.is_root:
                return None
        return [pickle.loads(joined.data[end - size : end]) for size, end in zip(sizes, ends, strict=True)]

    def exchange(self, values: Sequence[Any]) -> list[Any]:
        """Send values[r] (any picklable object) to rank r, and return what the ranks sent to this one, in order.

        All values that a rank sends to others must together be smaller than 2 GiB.  Its own value is not copied.
        """
        if self.size == 1:
            return list(values)
        from mpi4py import MPI

        own = self.rank
        parts = [np.frombuffer(b"" if k == own else pickle.dumps(value), np.uint8) for k, value in enumerate(values)]
        sizes, received = np.array([len(part) for part in parts], np.int64), np.empty(self.size, np.int64)
        self.wait(self._comm.Ialltoall(sizes, received))
        ends, data = np.cumsum(received), np.empty(received.sum(), np.uint8)
        sent = [np.concatenate(parts), (sizes, np.cumsum(sizes) - sizes), MPI.BYTE]
        # No rank has its sizes before all are here.
        self.wait(self._comm.Ialltoallv(sent, [data, (received, ends - received), MPI.BYTE]), naps=False)
        return [
            values[own] if k == own else pickle.loads(data.data[end - size : end])
            for k, (size, end) in enumerate(zip(received, ends, strict=True))
        ]

    def barrier(self) -> None:
        """Wait for every rank.  Raise LostRankError if this rank runs out of patience."""
        if self.size > 1:
            self.wait(self._comm.Ibarrier())

    def local_rank(self) -> int:
        """Return this rank's number among the ranks of its host, which decides which GPU of the host it uses."""
        return self._on_this_host(None)[0]

    def cores(self) -> int:
        """Return the number of cores of this rank: those that the launcher bound it to, or its share of the host's."""
        cores = usable_cores()
        return max(1, len(cores) // self._on_this_host(cores)[1].count(cores))

    def _on_this_host(self, value: T) -> tuple[int, list[T]]:
        """Return this rank's number among the ranks of its host, and the values of these ranks."""
        host = _host()
        values = {rank: text for rank, other, text in self.gather_everywhere((self.rank, host, value)) if other == host}
        return list(values).index(self.rank), list(values.values())

    def require_same(self, what: str, value: str, remedy: str = "start all ranks with the same command") -> None:
        """Raise LauncherError, on every rank, unless `value` is the same on all."""
        values = self.gather_everywhere(value)
        other = next((rank for rank, text in enumerate(values) if text != values[ROOT]), None)
        if other is not None:
            raise LauncherError(
                f"rank {other} has other {what} than rank {ROOT}: {values[other]!r}, not {values[ROOT]!r}; {remedy}"
            ).everywhere()

    def on_root(self, work: Callable[..., T], *known: Any) -> T | None:
        """Return `work(*known)` on root, None on the other ranks.  Raise an HpcvdjError of root on every rank.

        known  values that root has; they are None on the other ranks
        """
        result: T | None = None
        error: HpcvdjError | None = None
        if self.is_root:
            try:
                result = work(*known)
            except LostRankError:
                raise
            except HpcvdjError as failure:
                error = failure
        error = self.broadcast(error)
        if error is not None:
            raise error.everywhere()
        return result


def _host() -> str:
    """Return what identifies this host; the name may not, because containers may share it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return socket.gethostname()


def usable_cores() -> set[int]:
    """Return the cores that this process may run on."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def set_threads(current: World, threads: int | None = None) -> int:
    """Give this rank `threads` threads, or its share of the host's cores, and return their number.

    Once numba is loaded, its number of threads can only decrease.
    """
    count = threads or current.cores()
    if numba := sys.modules.get("numba"):
        # If the variable changed, numba would fail at the next compilation.
        count = min(count, numba.config.NUMBA_NUM_THREADS)
        numba.set_num_threads(count)
    elif threads or "NUMBA_NUM_THREADS" not in os.environ:
        os.environ["NUMBA_NUM_THREADS"] = str(count)
    starting.threads = count
    return count


def limit_arrow() -> None:
    """Limit Arrow to the threads of this rank; otherwise each rank has a thread for each core of the host."""
    if starting.threads is not None:
        import pyarrow as pa

        pa.set_cpu_count(starting.threads)


def log_if_serial(current: World) -> None:
    """Log how to use more ranks if there is no MPI library, in commands whose work ranks share."""
    if current.library == NO_LIBRARY and (may_have_ranks() or find_spec("mpi4py") is None):
        log.info("no MPI library found: running serially; for more ranks %s", installing("mpich"))


class Starting:
    """How ranks start.

    patience  seconds that they wait for each other while MPI starts
    always    whether MPI starts even if nothing hints at a launcher
    threads   threads of each rank, once a command has set them
    """

    patience = PATIENCE_SECONDS
    always = False
    threads: int | None = None

    @property
    def has_several_threads(self) -> bool:
        """Whether each rank has several threads, as it does unless a command sets one."""
        return self.threads != 1


starting = Starting()


@cache
def world() -> World:
    """Return the ranks that this process belongs to.  The first call starts MPI, if there may be a launcher.

    Raises LauncherError if the launcher started more ranks than the MPI library joins.
    """
    launched = launched_ranks()
    if not (starting.always or may_have_ranks() or "mpi4py.MPI" in sys.modules):
        # On login nodes, some MPI libraries end a program that no launcher started.
        return World()
    try:
        with _limited(launched):
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        # Without an MPI library to load, mpi4py raises RuntimeError, not ImportError.
        if launched > 1:
            failure = LauncherError(
                f"started as {launched} ranks, but there is no MPI library to join them "
                f"({str(error).splitlines()[0]}); {installing('mpich')}, or load your "
                "cluster's MPI module and install mpi4py against it"
            )
            # Other ranks may have a library, and wait for this rank.
            failure.before_ranks = False
            raise failure from None
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
        """End all ranks if this one fails with an exception.  Plain Python would let the others wait for it."""
        previous(kind, value, trace)
        abort()

    def leave() -> None:
        """Leave MPI together with the other ranks.  An alarm ends this process if MPI waits without end."""
        try:
            current.leave()
        except LostRankError as error:
            print(f"hpcvdj: error: {error}", file=sys.stderr)
            abort(error.exit_code)
        signal.alarm(_alarm_seconds(current.patience))

    sys.excepthook = hook
    if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
        current.watch()
    atexit.register(leave)
    return current


@contextmanager
def _limited(launched: int) -> Iterator[None]:
    """Within the block, end this process with a message if MPI does not start within the patience.

    Another process does this, because no Python code of this process can run during the call that starts MPI.
    """
    if launched == 1:
        yield
        return
    seconds = _alarm_seconds(starting.patience)
    message = (
        f"hpcvdj: error: rank {launched_rank()} waited {seconds} s for MPI to start: a rank did not come; see what it "
        "printed, and check its node, then run the command again"
    )
    words = [sys.executable, "-I", "-S", "-c", _WATCHER, str(seconds + launched_rank()), str(os.getpid()), message]
    # Ctrl-C does not reach a process in another session.
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True):
        yield


_WATCHER = """
import os, select, signal, sys
seconds, watched, message = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if not select.select([0], [], [], seconds)[0]:
    print(message, file=sys.stderr, flush=True)
    os.kill(watched, signal.SIGTERM)
"""
"""The program that watches a process.  Its standard input ends when the process has started MPI, or has ended."""


def _alarm_seconds(patience: float) -> int:
    """Return the patience at the start and the end of MPI, which is finite even where studies wait for ever."""
    return math.ceil(patience if math.isfinite(patience) else PATIENCE_SECONDS)


def abort(exit_code: int = 1) -> None:
    """End every rank with `exit_code`, also those that wait.  Return only if there is no other rank."""
    # There are others if this process has started MPI, as one of several ranks.
    if world.cache_info().currsize > 0 and world().size > 1:
        from mpi4py import MPI

        last_words()
        MPI.COMM_WORLD.Abort(exit_code)
    leave_launch(exit_code)
