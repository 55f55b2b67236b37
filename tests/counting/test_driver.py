"""hpcvdj.runs.driver: pieces cover every task once, and a run can be left and taken up at any boundary."""

import math

import numpy as np
import pytest

from hpcvdj.kernels.backends import Done
from hpcvdj.runs.driver import FIRST_WORK, Driver, Partial
from hpcvdj.kernels.pathways.methods import METHODS, Unit, method_named
from hpcvdj.runs.ranks import World

UNITS = [
    Unit(range(2), range(5), range(3, 4), 64),
    Unit(range(2, 3), range(5, 6), range(3, 4), 64),
    Unit(range(2), range(5), range(6, 7), 4**6),
    Unit(range(2, 3), range(5, 6), range(6, 7), 4**6),
]


class CountingKernel:
    """Each row's counter is the number of tasks, calls are noted; its arrays are used again, as allowed."""

    def __init__(self, arrays=2):
        self.calls = []
        self._arrays = [np.zeros((8, 1), dtype=np.uint64) for _ in range(arrays)]

    def start(self, unit, first, last):
        self.calls.append((unit, first, last))
        self._arrays.append(self._arrays.pop(0))
        counters = self._arrays[-1][: len(unit.rows)]
        counters[:] = last - first
        return Done(counters)


def run(units=UNITS, *, ranks=1, rank=0, stop=lambda: False, begun=None, piece_seconds=1e-9, threads=4):
    world = World()
    world.rank, world.size = rank, ranks
    world.sum_counters = lambda counters: counters.copy()
    # Ranks agree on how long a piece took; here each takes the same, so that all ranks cut alike.
    world.maximum = lambda values: np.array([1e-3, values[1]])
    kernel, finished, cuts = CountingKernel(), [], []
    driver = Driver(kernel, method_named("bitwise"), threads, world, piece_seconds=piece_seconds)
    seconds, stopped = driver.run(
        units,
        lambda unit, counters: finished.append((unit, counters.copy())),
        boundary=cuts.append,
        stop=stop,
        begun=begun,
    )
    return kernel.calls, finished, cuts, stopped, seconds


def test_uncut_units_are_block_ranges():
    calls, finished, cuts, stopped, _ = run(piece_seconds=math.inf, ranks=3, rank=1, threads=4)
    assert calls[0] == (UNITS[0], 24, 48)  # 16 blocks of 4: 6 to a rank
    assert [unit for unit, _ in finished] == []
    assert cuts == [None] * 4
    assert not stopped


@pytest.mark.parametrize("threads", [1, 4, 1000])
@pytest.mark.parametrize("ranks", [1, 3, 7])
def test_pieces_cover_every_task_once(threads, ranks):
    tasks = {unit: np.zeros(unit.tasks, dtype=int) for unit in UNITS}
    for rank in range(ranks):
        calls, finished, _, stopped, seconds = run(ranks=ranks, rank=rank, threads=threads)
        assert not stopped
        assert [unit for unit, _ in finished] == (UNITS if rank == 0 else [])
        assert (seconds >= 0).all()
        assert len(calls) > len(UNITS) or threads * ranks > 4096
        for unit, first, last in calls:
            tasks[unit][first:last] += 1
    for unit in UNITS:
        assert (tasks[unit] == 1).all()


def test_counters_of_pieces_add_up():
    _, finished, cuts, _, _ = run()
    for unit, counters in finished:
        assert (counters == unit.tasks).all()
        assert counters.shape == (len(unit.rows), 1)
    partials = [cut for cut in cuts if cut is not None]
    assert partials
    for cut in partials:
        assert 0 < cut.tasks_done < cut.unit.tasks


def test_a_first_piece_is_small():
    calls, *_ = run(UNITS[2:], piece_seconds=1.0)
    unit, first, last = calls[0]
    assert first == 0
    assert method_named("bitwise").work(unit) * last / unit.tasks <= FIRST_WORK


@pytest.mark.parametrize("boundaries", range(0, 12, 3))
def test_left_at_any_boundary_and_taken_up_with_other_ranks(boundaries):
    seen = 0

    def stop():
        nonlocal seen
        seen += 1
        return seen > boundaries

    _, finished, cuts, stopped, _ = run(stop=stop)
    assert stopped
    partial = cuts[-1]
    rest = UNITS[len(finished) :]
    if partial is not None:
        assert partial.unit == rest[0]
        partial = Partial(partial.unit, partial.tasks_done, partial.counters.copy())
    _, more, _, again, _ = run(rest, begun=partial, threads=16)
    assert not again
    assert [unit for unit, _ in finished + more] == UNITS
    for unit, counters in finished + more:
        assert (counters == unit.tasks).all()


def test_a_wish_at_the_last_boundary_finds_nothing_left():
    _, finished, _, stopped, _ = run(UNITS[:1], piece_seconds=math.inf, stop=lambda: True)
    assert [unit for unit, _ in finished] == UNITS[:1]
    assert not stopped
    _, finished, _, stopped, _ = run(UNITS[:2], piece_seconds=math.inf, stop=lambda: True)
    assert len(finished) == 2
    assert not stopped
    _, finished, _, stopped, _ = run(UNITS[:3], piece_seconds=math.inf, stop=lambda: True)
    assert len(finished) == 2
    assert stopped


def test_disjoint_units_are_never_cut():
    assert [name for name, method in METHODS.items() if method.disjoint] == ["direct"]
    world = World()
    kernel = CountingKernel()
    unit = Unit(range(1), range(8), range(1), 8)
    Driver(kernel, method_named("direct"), 1, world, piece_seconds=1e-9).run([unit], lambda unit, counters: None)
    assert kernel.calls == [(unit, 0, 8)]
