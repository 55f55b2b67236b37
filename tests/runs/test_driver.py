"""hpcvdj.runs.driver: pieces cover every task once, and a run can be left and continued at any boundary."""

from pathlib import Path

import numpy as np
import pytest

from hpcvdj.errors import StoppedError
from hpcvdj.kernels.kernel import Unit
from hpcvdj.runs.driver import FIRST_WORK, Driver, Partial
from hpcvdj.runs.ranks import World
from hpcvdj.runs.run import Run
from tests.problems import METHODS, method_named

UNITS = [
    Unit(range(2), range(5), range(3, 4), 64),
    Unit(range(2, 3), range(5, 6), range(3, 4), 64),
    Unit(range(2), range(5), range(6, 7), 4**6),
    Unit(range(2, 3), range(5, 6), range(6, 7), 4**6),
]


class CountingKernel:
    """Each row's value is the number of tasks; calls are noted; its arrays are used again, as the protocol allows."""

    def __init__(self, dtype=np.uint64):
        self.calls = []
        self._arrays = [np.zeros((8, 1), dtype=dtype) for _ in range(2)]

    def start(self, unit, first, last):
        self.calls.append((unit, first, last))
        self._arrays.append(self._arrays.pop(0))
        values = self._arrays[-1][: len(unit.rows)]
        values[:] = last - first
        return lambda: values


class NotingStore:
    """What was put and saved."""

    def __init__(self):
        self.finished, self.saved = [], []

    def put(self, unit, values):
        self.finished.append((unit, values.copy()))

    def save(self, partial):
        self.saved.append(partial and Partial(partial.unit, partial.tasks_done, partial.values.copy()))


class Drive:
    """A driver whose ranks are played by this process: `calls`, `finished`, `saved`, `stopped`, `timings`."""

    def __init__(self, units=UNITS, *, ranks=1, rank=0, boundaries=None, begun=None, pieces=True, threads=4):
        world = World()
        world.rank, world.size = rank, ranks
        world.sum = lambda values: values.copy()
        # Ranks agree on how long a piece took; here each takes the same, so that all ranks cut alike.
        world.maximum = lambda values: np.array([1e-3, values[1]]) if values.shape == (2,) else values
        world.gather = lambda value: [value] * ranks
        world.broadcast = lambda value: value
        run = Run(world)
        run.shown = False
        run.target, run.save_seconds = Path("target") if pieces else None, 0.0
        self.boundaries = boundaries
        kernel, store = CountingKernel(), NotingStore()
        driver = Driver(kernel, method_named("bitwise"), threads, run)
        driver._pacer._seconds = 1e-9 if pieces else driver._pacer._seconds
        agreed = driver._agreement.together

        def together(seconds):
            slowest, _ = agreed(seconds)
            if self.boundaries is not None:
                self.boundaries -= 1
            return slowest, self.boundaries is not None and self.boundaries < 0

        driver._agreement.together = together
        self.stopped = False
        try:
            self.timings = driver.compute(units, store if rank == 0 else None, begun)
        except StoppedError:
            self.stopped = True
        self.calls, self.finished, self.saved = kernel.calls, store.finished, store.saved


def test_uncut_units_are_block_ranges():
    drive = Drive(pieces=False, ranks=3, rank=1, threads=4)
    assert drive.calls[0] == (UNITS[0], 24, 48)  # 16 blocks of 4: 6 for each rank
    assert len(drive.calls) == len(UNITS)
    assert drive.finished == drive.saved == []
    assert not drive.stopped


@pytest.mark.parametrize("threads", [1, 4, 1000])
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_pieces_cover_every_task_once(threads, ranks):
    tasks = {unit: np.zeros(unit.tasks, dtype=int) for unit in UNITS}
    for rank in range(ranks):
        drive = Drive(ranks=ranks, rank=rank, threads=threads)
        assert not drive.stopped
        assert [unit for unit, _ in drive.finished] == (UNITS if rank == 0 else [])
        assert (drive.timings.kernel >= 0).all()
        assert len(drive.calls) > len(UNITS) or threads * ranks > 4096
        for unit, first, last in drive.calls:
            tasks[unit][first:last] += 1
    for unit in UNITS:
        assert (tasks[unit] == 1).all()


def test_values_of_pieces_add_up():
    drive = Drive()
    for unit, values in drive.finished:
        assert (values == unit.tasks).all()
        assert values.shape == (len(unit.rows), 1)
    partials = [partial for partial in drive.saved if partial is not None]
    assert partials
    for partial in partials:
        assert 0 < partial.tasks_done < partial.unit.tasks
        assert (partial.values == partial.tasks_done).all()


def test_a_first_piece_is_small():
    unit, first, last = Drive(UNITS[2:]).calls[0]
    assert first == 0
    assert method_named("bitwise").work(unit) * last / unit.tasks <= FIRST_WORK


@pytest.mark.parametrize("boundaries", range(0, 12, 3))
def test_left_at_any_boundary_and_continued_with_other_threads(boundaries):
    left = Drive(boundaries=boundaries)
    assert left.stopped
    partial = left.saved[-1]
    rest = UNITS[len(left.finished) :]
    if partial is not None:
        assert partial.unit == rest[0]
    more = Drive(rest, begun=partial, threads=16)
    assert not more.stopped
    assert [unit for unit, _ in left.finished + more.finished] == UNITS
    for unit, values in left.finished + more.finished:
        assert (values == unit.tasks).all()


@pytest.mark.parametrize(("units", "stopped"), [(1, False), (2, False), (3, True)])
def test_a_signal_at_the_last_boundary_finds_nothing_left(units, stopped):
    """The next unit is under way when a boundary is reached, and is finished."""
    drive = Drive(UNITS[:units], pieces=False, boundaries=0)
    assert [unit for unit, _ in drive.finished] == UNITS[: min(units, 2)]
    assert drive.stopped == stopped


def test_disjoint_units_are_never_cut():
    assert [name for name in METHODS if method_named(name).disjoint] == ["direct"]
    run = Run().to(Path("target"), save_seconds=1e9)
    kernel, unit = CountingKernel(), Unit(range(1), range(8), range(1), 8)
    driver = Driver(kernel, method_named("direct"), 1, run)
    driver._pacer._seconds = 1e-9
    driver.compute([unit], NotingStore())
    assert kernel.calls == [(unit, 0, 8)]


def test_nothing_is_saved_before_its_time_or_in_memory():
    run = Run().to(Path("target"), save_seconds=1e9)
    for saved_run in (run, Run()):
        store = NotingStore()
        Driver(CountingKernel(), method_named("bitwise"), 4, saved_run).compute(UNITS, store)
        assert store.saved == []
        assert len(store.finished) == len(UNITS)
