"""The driver: units → pieces → a rank's block range → kernel → combined counters, the same for every method.

A long unit is cut into pieces of about `PIECE_SECONDS`, so that a boundary, where a run can be left and its counters
are whole, always comes soon.  While the counters of one piece are combined, the next is already being counted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.backends import Kernel, Started
from hpcvdj.methods import Method, Unit
from hpcvdj.ranks.partition import block_range
from hpcvdj.ranks.world import World

PIECE_SECONDS = 2.0
"""How long a piece should take: two of them pass at most between the wish to stop and a boundary."""

FIRST_WORK = 20_000.0
"""Work of the first piece, when nothing is known of the speed: a second on the slowest core."""

FASTEST_GROWTH = 16.0
"""How much more work than any piece before a piece may have."""


@dataclass(frozen=True)
class Partial:
    """A unit of which only the tasks before `tasks_done` are counted, and what they found (root only)."""

    unit: Unit
    tasks_done: int
    counters: NDArray[np.uint64] | None


@dataclass(frozen=True)
class _Piece:
    index: int
    unit: Unit
    first: int
    last: int


def _last_of(piece: _Piece, units: Sequence[Unit]) -> bool:
    """Whether nothing is left after `piece`."""
    return piece.index + 1 == len(units) and piece.last == piece.unit.tasks


def _ignore(_: object) -> None:
    return None


class Driver:
    """Counts units over the ranks of `world` with a loaded kernel.

    piece_seconds  how long a piece may take; infinite: units are not cut
    parts          above 1, only as much of each unit is done as if there were so many times more ranks: for measuring
    """

    def __init__(
        self,
        kernel: Kernel,
        method: Method,
        threads_per_block: int,
        world: World,
        *,
        piece_seconds: float = math.inf,
        parts: int = 1,
    ) -> None:
        self.kernel, self.method, self.threads, self.world = kernel, method, threads_per_block, world
        self.piece_seconds, self.parts = piece_seconds, parts
        self._rate = 0.0
        self._most_work = 0.0
        self._sum: NDArray[np.uint64] | None = None

    def run(
        self,
        units: Sequence[Unit],
        finish: Callable[[Unit, NDArray[np.uint64]], None],
        *,
        advance: Callable[[float], None] = _ignore,
        boundary: Callable[[Partial | None], None] = _ignore,
        stop: Callable[[], bool] = lambda: False,
        begun: Partial | None = None,
    ) -> tuple[NDArray[np.float64], bool]:
        """Count `units`; root `finish`es each with its counters, in order.

        advance   is told the work of each piece that is done
        boundary  is called on every rank after each piece, with the unit that is cut there, if one is
        stop      is asked at each boundary; if any rank says yes, all leave after the piece that is under way
        begun     the first unit's state, if it was begun in an earlier run

        Returns this rank's seconds, float64 [3, units]: kernel, combining, and all together; and whether it stopped.
        """
        seconds = np.zeros((3, len(units)))
        self._boundary = time.perf_counter()
        self._sum = begun.counters if begun else None
        waiting: tuple[_Piece, Started] | None = None
        stopped = False

        def end(piece: _Piece, started: Started) -> bool:
            last_boundary = self._boundary
            self._end(piece, started, seconds[:, piece.index], finish)
            advance(self._work(piece))
            left = piece.last < piece.unit.tasks
            boundary(Partial(piece.unit, piece.last, self._sum) if left else None)
            wish = self._agree(piece, stop())
            seconds[2, piece.index] += self._boundary - last_boundary
            return wish and not _last_of(piece, units)

        for piece in self._pieces(units, begun.tasks_done if begun else 0):
            before = time.perf_counter()
            started = self._start(piece)
            seconds[0, piece.index] += time.perf_counter() - before
            stopped = end(*waiting) if waiting else False
            waiting = piece, started
            if stopped:
                break
        if waiting:
            stopped = end(*waiting) or (stopped and not _last_of(waiting[0], units))
        return seconds, stopped

    def _pieces(self, units: Sequence[Unit], first: int) -> Iterator[_Piece]:
        """The pieces of the units; the first unit's from task `first`.  The same on every rank."""
        for index, unit in enumerate(units):
            while True:
                last = first + self._tasks(unit, unit.tasks - first)
                yield _Piece(index, unit, first, last)
                first = last
                if last == unit.tasks:
                    break
            first = 0

    def _tasks(self, unit: Unit, left: int) -> int:
        """How many of the `left` tasks of `unit` the next piece takes: whole blocks on every rank, or all."""
        if math.isinf(self.piece_seconds) or self.method.disjoint or left == 0:
            return left
        work = FIRST_WORK
        if self._rate:
            work = min(self._rate * self.piece_seconds, FASTEST_GROWTH * max(self._most_work, FIRST_WORK))
        step = self.threads * self.world.size
        tasks = max(1, int(work / self.method.work(unit) * unit.tasks) // step) * step
        return left if tasks > left * 3 // 4 else tasks

    def _work(self, piece: _Piece) -> float:
        unit = piece.unit
        return self.method.work(unit) * (piece.last - piece.first) / unit.tasks if unit.tasks else 0.0

    def _range(self, piece: _Piece, rank: int) -> tuple[int, int]:
        """Tasks of a rank: its block range of the piece."""
        tasks = piece.last - piece.first
        first, last = block_range(tasks, self.threads, rank, self.world.size * self.parts)
        return piece.first + first, piece.first + last

    def _start(self, piece: _Piece) -> Started:
        return self.kernel.start(piece.unit, *self._range(piece, self.world.rank))

    def _end(
        self,
        piece: _Piece,
        started: Started,
        seconds: NDArray[np.float64],
        finish: Callable[[Unit, NDArray[np.uint64]], None],
    ) -> None:
        """Wait for a piece, combine its counters, and finish its unit if it was the last."""
        before = time.perf_counter()
        counters = started.result()
        after_kernel = time.perf_counter()
        if self.method.disjoint:
            ranges = [self._range(piece, rank) for rank in range(self.world.size)]
            counters = self.world.gather_rows(counters, ranges)
        else:
            counters = self.world.sum_counters(counters)
        after_combining = time.perf_counter()
        if self.world.is_root:
            if piece.first:
                assert self._sum is not None
                counters = self._sum + counters
            whole = piece.last == piece.unit.tasks
            # A kernel's own array would be overwritten while the rest of the unit is counted.
            self._sum = None if whole else counters.copy()
            if whole:
                finish(piece.unit, counters)
        seconds[:2] += after_kernel - before, after_combining - after_kernel

    def _agree(self, piece: _Piece, stop: bool) -> bool:
        """Whether any rank wants to stop; learns how fast the slowest rank is."""
        now = time.perf_counter()
        taken, wish = self.world.maximum(np.array([now - self._boundary, float(stop)]))
        self._boundary = now
        work = self._work(piece)
        if taken > 0:
            self._rate = work / float(taken)
        self._most_work = max(self._most_work, work)
        return bool(wish)
