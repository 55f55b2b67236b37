"""The driver: units → pieces → block range of a rank → kernel → combined values, the same for every method.

The driver cuts a long unit into pieces of a few seconds.  The end of a piece is a boundary: its values are complete, so
the run can be saved and stopped.  While the ranks combine the values of a piece, they already compute the next piece.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.errors import option
from hpcvdj.kernels.kernel import Kernel, Pending, Unit
from hpcvdj.kernels.method import Method
from hpcvdj.kernels.pacing import STEP_SECONDS, Pacer
from hpcvdj.runs.partition import block_range
from hpcvdj.runs.progress import Progress
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import Agreement

FIRST_WORK = 20_000.0
"""Work of the first piece, when the speed is unknown: a second on the slowest core."""

FASTEST_GROWTH = 16.0
"""How many times the work of the largest piece before it a piece may have."""


@dataclass(frozen=True)
class Partial:
    """A unit of which only the tasks before `tasks_done` are computed, with the values so far (root only)."""

    unit: Unit
    tasks_done: int
    values: NDArray[Any] | None


class Store:
    """Where root puts the values of finished units."""

    def put(self, unit: Unit, values: NDArray[Any]) -> None:
        """Store the values [rows, n-lengths] of a unit."""
        raise NotImplementedError

    def save(self, partial: Partial | None) -> None:
        """Save the stored values, and the unit that is cut here, for a run that continues, if there can be one."""


@dataclass(frozen=True)
class Timings:
    """Seconds of each unit (the maximum over ranks) and of each rank (the sum over units).

    kernel, reduce, wall      float64 [units]
    rank_kernel, rank_reduce  float64 [ranks]
    save, store               seconds in which root saved work, and stored values
    """

    units: list[Unit]
    kernel: NDArray[np.float64]
    reduce: NDArray[np.float64]
    wall: NDArray[np.float64]
    rank_kernel: NDArray[np.float64]
    rank_reduce: NDArray[np.float64]
    save: float
    store: float


@dataclass(frozen=True)
class _Piece:
    index: int
    unit: Unit
    first: int
    last: int

    @property
    def ends_unit(self) -> bool:
        return self.last == self.unit.tasks


class Driver:
    """Computes units over the ranks of `run` with a loaded kernel.

    The driver cuts a run with a target into pieces, saves it at boundaries, and stops it after a signal.  It does none
    of these for a run in memory.
    """

    def __init__(self, kernel: Kernel, method: Method, threads_per_block: int, run: Run) -> None:
        self.kernel, self.method, self.threads, self.run = kernel, method, threads_per_block, run
        saved = run.target is not None
        self._pacer = Pacer(FIRST_WORK, FASTEST_GROWTH, STEP_SECONDS if saved else math.inf)
        self._agreement = Agreement(run.world, lambda: saved and bool(run.request))
        self._saving = self._storing = 0.0

    def compute(
        self, units: Sequence[Unit], store: Store | None, begun: Partial | None = None, done_before: float = 0.0
    ) -> Timings:
        """Compute `units` in order, and put their values into root's `store`.

        begun        state of the first unit, if an earlier run began it
        done_before  work of earlier runs, for the progress

        Raises StoppedError on every rank after a signal to any rank.  Finished work is then saved.
        """
        self._seconds, self._store = np.zeros((3, len(units))), store
        self._boundary = self._saved = time.monotonic()
        self._sum = begun.values if begun else None
        first = begun.tasks_done if begun else 0
        total = done_before + sum(map(self.method.work, units))
        waiting: tuple[_Piece, Pending] | None = None
        stop = False
        with Progress(total, self.method.work_name, shown=self.run.shown) as self._progress:
            self._progress.skip(done_before + (self._work(_Piece(0, units[0], 0, first)) if begun else 0.0))
            for piece in self._pieces(units, first):
                self.run.raise_if_stopping()
                before = time.monotonic()
                pending = self.kernel.start(piece.unit, *self._range(piece, self.run.rank))
                self._seconds[0, piece.index] += time.monotonic() - before
                stop = waiting is not None and self._end(*waiting)
                waiting = piece, pending
                if stop:
                    break
            if waiting:
                stop |= self._end(*waiting)
                last = waiting[0]
                if stop and not (last.ends_unit and last.index + 1 == len(units)):
                    self.run.on_root(lambda: self._save(last))
                    share = 100 * self._progress.share
                    raise self.run.stopped(f"with {share:.1f} % done and saved; {option('resume', True)} continues")
        (kernel, reduce, wall), seconds = self.run.world.maximum(self._seconds), self._seconds.sum(axis=1)
        by_rank = np.array(self.run.gather(seconds) or [seconds])
        return Timings(
            list(units), kernel, reduce, wall, by_rank[:, 0], by_rank[:, 1], save=self._saving, store=self._storing
        )

    def _pieces(self, units: Sequence[Unit], first: int) -> Iterator[_Piece]:
        """Yield the pieces of the units, of the first unit from task `first`.  They are the same on every rank."""
        for index, unit in enumerate(units):
            while True:
                last = first + self._tasks(unit, unit.tasks - first)
                yield _Piece(index, unit, first, last)
                first = last
                if last == unit.tasks:
                    break
            first = 0

    def _tasks(self, unit: Unit, left: int) -> int:
        """Return how many of the `left` tasks the next piece takes: whole blocks on every rank, or all."""
        work = self._pacer.work()
        if math.isinf(work) or self.method.disjoint or left == 0:
            return left
        step = self.threads * self.run.ranks
        tasks = max(1, int(work / self.method.work(unit) * unit.tasks) // step) * step
        return left if tasks > left * 3 // 4 else tasks

    def _work(self, piece: _Piece) -> float:
        unit = piece.unit
        return self.method.work(unit) * (piece.last - piece.first) / unit.tasks if unit.tasks else 0.0

    def _range(self, piece: _Piece, rank: int) -> tuple[int, int]:
        """Return the tasks of a rank: its block range of the piece."""
        first, last = block_range(piece.last - piece.first, self.threads, rank, self.run.ranks)
        return piece.first + first, piece.first + last

    def _end(self, piece: _Piece, pending: Pending) -> bool:
        """Combine a piece while the next one runs.  Return whether the run must stop."""
        begun = time.monotonic()
        values = pending()
        after_kernel = time.monotonic()
        world = self.run.world
        if self.method.disjoint:
            values = world.gather_rows(values, [self._range(piece, rank) for rank in range(self.run.ranks)])
        else:
            values = world.sum(values)
        self._seconds[:2, piece.index] += after_kernel - begun, time.monotonic() - after_kernel
        self._keep(piece, values)
        self._progress.advance(self._work(piece))
        slowest, stop = self._agreement.together(time.monotonic() - self._boundary)
        last_boundary, self._boundary = self._boundary, time.monotonic()
        self._pacer.took(self._work(piece), slowest)
        self._seconds[2, piece.index] += self._boundary - last_boundary
        return stop

    def _keep(self, piece: _Piece, values: NDArray[Any]) -> None:
        """Store the unit of a piece if this piece is its last one.  Save if it is time."""
        if self._store is None:
            return
        begun = time.monotonic()
        if piece.first:
            assert self._sum is not None
            values = self._sum + values
        # Copy the values: the kernel overwrites its array while it computes the rest of the unit.
        self._sum = None if piece.ends_unit else values.copy()
        if piece.ends_unit:
            self._store.put(piece.unit, values)
        self._storing += time.monotonic() - begun
        if time.monotonic() - self._saved > self.run.save_seconds and self.run.target is not None:
            self._save(piece)

    def _save(self, piece: _Piece) -> None:
        if self._store is None:
            return
        begun = time.monotonic()
        self._store.save(None if piece.ends_unit else Partial(piece.unit, piece.last, self._sum))
        self._saved = time.monotonic()
        self._saving += self._saved - begun
