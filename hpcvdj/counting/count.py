"""A problem counted over the ranks: its units, one after another, into a store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcvdj.counting.checkpoint import remaining
from hpcvdj.counting.config import Config
from hpcvdj.counting.driver import Driver, Partial
from hpcvdj.counting.keeper import Keeper
from hpcvdj.counting.totals import column_sums
from hpcvdj.errors import StoppedError
from hpcvdj.methods import Method, Problem, Unit, method_named
from hpcvdj.ranks.binding import bind
from hpcvdj.ranks.progress import Progress
from hpcvdj.ranks.world import World, root_does
from hpcvdj.results.file import Timings

if TYPE_CHECKING:
    from hpcvdj.backends import Backend

log = logging.getLogger(__name__)


class Store(Protocol):
    """Where root puts the counters of finished units."""

    def put(self, unit: Unit, counters: NDArray[np.uint64]) -> None:
        """Take uint64 [the unit's rows, its n-lengths]."""
        ...


class ArrayStore:
    """Counters in memory: `counters` uint64 [sequences, n-lengths]."""

    def __init__(self, sequences: int, max_n: int) -> None:
        self.counters = np.zeros((sequences, max_n + 1), dtype=np.uint64)

    def put(self, unit: Unit, counters: NDArray[np.uint64]) -> None:
        """Take a unit's counters."""
        n_lengths = unit.n_lengths
        self.counters[unit.rows.start : unit.rows.stop, n_lengths.start : n_lengths.stop] = counters


@dataclass
class Tally:
    """What a count found.  `reached` and `pathways` are complete on root only.

    reached   bool [sequences]: whether a sequence has any pathway
    pathways  Python ints: pathways of each n-length over all sequences
    hardware  this rank's, in words
    software  what compiles and runs its kernels
    prepare   seconds that loading (and, the first time, compiling) the kernel took on the slowest rank
    store     seconds that storing took on this rank
    """

    timings: Timings
    prepare: float
    store: float
    reached: NDArray[np.bool_]
    pathways: list[int]
    hardware: str
    software: str


def count(problem: Problem, config: Config, world: World, store: Store | None, keeper: Keeper | None = None) -> Tally:
    """Count `problem` over the ranks of `world`; root's `store` takes each finished unit.

    `keeper` decides what happens at boundaries.  StoppedError, on every rank, if it has seen a signal.
    """
    return count_loaded(
        problem, config, world, store, bind(config.backend, world, strict=config.strict_binding), keeper
    )


def count_loaded(
    problem: Problem, config: Config, world: World, store: Store | None, backend: Backend, keeper: Keeper | None = None
) -> Tally:
    """`count` on a backend that is open already."""
    start = time.perf_counter()
    method = method_named(config.method)
    kernel = backend.load(method.name, problem, config.threads_per_block)
    prepare = float(world.maximum(np.array([time.perf_counter() - start]))[0])
    reached = np.zeros(len(problem.repertoire), dtype=bool)
    pathways = [0] * (problem.max_n + 1)
    store_seconds = 0.0

    def put(unit: Unit, counters: NDArray[np.uint64]) -> None:
        nonlocal store_seconds
        before = time.perf_counter()
        if store is not None:
            store.put(unit, counters)
        sums = column_sums(counters, reached[unit.rows.start : unit.rows.stop])
        for m, total in zip(unit.n_lengths, sums, strict=True):
            pathways[m] += total
        store_seconds += time.perf_counter() - before

    keeper = keeper or Keeper()
    units = list(method.units(problem, world.broadcast(backend.unit_work)))
    whole = sum(map(method.work, units))
    begun, units = _left(problem, units, keeper, put, world, disjoint=method.disjoint)

    def finish(unit: Unit, counters: NDArray[np.uint64]) -> None:
        put(unit, counters)
        keeper.finished(unit)

    driver = Driver(kernel, method, config.threads_per_block, world, piece_seconds=keeper.piece_seconds)
    with Progress(whole, method.work_name, shown=world.is_root) as progress:
        done_before = whole - sum(map(method.work, units)) + (_work_done(method, begun) if begun else 0.0)
        progress.skip(done_before)
        if done_before:
            log.info("resuming: %.1f %% of the work was done before", 100 * done_before / whole)
        seconds, stopped = driver.run(
            units, finish, advance=progress.advance, boundary=keeper.boundary, stop=keeper.stop, begun=begun
        )
    if stopped:
        root_does(world, keeper.save)
        error = StoppedError(
            f"stopped by {keeper.reason(world)}: {100 * progress.done / (whole or 1):.1f} % is counted and safe; "
            "--resume goes on"
        )
        error.on_every_rank = True
        raise error
    return Tally(
        timings=_timings(world, units, seconds),
        prepare=prepare,
        store=store_seconds,
        reached=reached,
        pathways=pathways,
        hardware=backend.describe(),
        software=backend.software(),
    )


def _left(
    problem: Problem,
    units: list[Unit],
    keeper: Keeper,
    put: Callable[[Unit, NDArray[np.uint64]], None],
    world: World,
    *,
    disjoint: bool,
) -> tuple[Partial | None, list[Unit]]:
    """What an earlier run has left to count: the unit it was in, if any, which comes first, and the units."""
    pairs = len(problem.repertoire.pairs)
    done = begun = None
    if world.is_root:
        done, begun = keeper.restore(put, (problem.max_n + 1, pairs))
    done = world.broadcast_array(done)
    mine = begun
    begun = world.broadcast(Partial(begun.unit, begun.tasks_done, None) if begun else None)
    if begun:
        unit = begun.unit
        done[unit.n_lengths.start : unit.n_lengths.stop, unit.pairs.start : unit.pairs.stop] = True
    offsets = problem.repertoire.offsets
    left = [part for unit in units for part in remaining(unit, done, offsets, disjoint=disjoint)]
    return (mine or begun, [begun.unit, *left]) if begun else (None, left)


def _work_done(method: Method, begun: Partial) -> float:
    return method.work(begun.unit) * begun.tasks_done / begun.unit.tasks


def _timings(world: World, units: list[Unit], seconds: NDArray[np.float64]) -> Timings:
    slowest = world.maximum(seconds)
    mine = seconds.sum(axis=1)
    per_rank = np.array(world.gather(mine) or [mine])
    return Timings(units, slowest[0], slowest[1], slowest[2], per_rank[:, 0], per_rank[:, 1])
