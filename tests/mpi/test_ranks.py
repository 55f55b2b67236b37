"""Tests that run on every rank: mpiexec -n N python -m mpi4py -m pytest --with-mpi tests/mpi/test_ranks.py

One collective per test, and --timeout, so that a rank that fails cannot pair with a stuck one in the next test.
"""

import time

import numpy as np
import pytest

from hpcvdj.counting.config import Config
from hpcvdj.counting.count import ArrayStore, count
from hpcvdj.counting.verify import reference, sample
from hpcvdj.errors import InputError, LostRankError
from hpcvdj.kernels.pathways.methods import METHODS, Problem
from hpcvdj.runs.ranks import root_does, usable_cores, world
from hpcvdj.repertoires.junctions import read_repertoire
from hpcvdj.repertoires.sharing import share
from tests.conftest import SMALL

pytestmark = pytest.mark.mpi


def problem_of(paper_germline, max_n, size=12):
    """A sample of the small example, read by each rank for itself."""
    whole = read_repertoire(SMALL, paper_germline, longest=60)
    return Problem(sample(whole, size, 3, 60), paper_germline, max_n)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threads_per_block", [1, 64])
def test_counters_do_not_depend_on_ranks(paper_germline, method, threads_per_block):
    """With 64 tasks to a block and 4^3 tasks, ranks above root have none."""
    problem = problem_of(paper_germline, 3)
    store = ArrayStore(len(problem.repertoire), 3)
    count(problem, Config(3, method, threads_per_block=threads_per_block), world(), store)
    if world().is_root:
        assert store.counters.tolist() == reference(problem).tolist()


def test_more_ranks_than_tasks(paper_germline):
    problem = problem_of(paper_germline, 0, size=1)
    store = ArrayStore(1, 0)
    tally = count(problem, Config(0, "bitwise"), world(), store)
    assert tally.timings.kernel.shape == (1,)
    if world().is_root:
        assert store.counters.tolist() == reference(problem).tolist()


def test_share(paper_germline):
    mine = read_repertoire(SMALL, paper_germline) if world().is_root else None
    shared = share(world(), mine)
    whole = read_repertoire(SMALL, paper_germline)
    assert np.array_equal(shared.words, whole.words)
    assert np.array_equal(shared.lengths, whole.lengths)
    assert np.array_equal(shared.offsets, whole.offsets)
    assert shared.pairs == whole.pairs


def test_broadcast_in_pieces(monkeypatch):
    monkeypatch.setattr("hpcvdj.runs.ranks._BROADCAST_BYTES", 100)
    array = np.arange(77, dtype=np.int64).reshape(7, 11)
    found = world().broadcast_array(array if world().is_root else None)
    assert np.array_equal(found, array)


def test_an_error_of_root_is_every_ranks():
    def fail():
        raise InputError("file: no")

    with pytest.raises(InputError, match="file: no") as caught:
        root_does(world(), fail)
    assert caught.value.on_every_rank


def test_counters_past_32_bits_add_up():
    world_ = world()
    counters = np.array([2**61 + world_.rank, world_.rank], dtype=np.uint64)
    ranks = range(world_.size)
    assert world_.sum_counters(counters).tolist() == [2**61 * len(ranks) + sum(ranks), sum(ranks)]


def test_maximum():
    assert world().maximum(np.array([float(world().rank)]))[0] == world().size - 1


def test_cores_are_shared():
    """Ranks that see the same cores take equal shares of them, one at least; a bound rank has its own."""
    mine = len(usable_cores())
    assert world().cores() in (max(1, mine // world().size), mine)


def test_a_watch_ends_when_all_have_ended():
    """Ranks with as many pieces as their number, from none on."""
    watch = world().watch(lambda: False)
    assert not any(watch.passed() for _ in range(world().rank))
    assert not watch.end()


def test_one_wish_stops_all():
    """A rank hears it between its pieces, or at the end."""
    last = world().size - 1
    watch = world().watch(lambda: world().rank == last)
    pieces = 0
    while not watch.passed():
        pieces += 1
        time.sleep(0.01)
    assert pieces == 0 or world().rank != last
    assert watch.end()


def test_a_watch_notices_who_hangs():
    """The last rank sleeps longer than the others have patience, which then comes back."""
    current, patience = world(), world().patience
    watch = current.watch(lambda: False)
    current.patience = 0.5
    try:
        if current.size > 1 and current.rank < current.size - 1:
            with pytest.raises(LostRankError, match=r"waited \d s for the other ranks"):
                watch.end()
        else:
            time.sleep(current.size + 2)
    finally:
        current.patience = patience
    watch.end()
