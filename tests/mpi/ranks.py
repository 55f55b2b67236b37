"""The ranks of the tests that run on every rank: the first one, then the first two, and so on up to all."""

import atexit
from functools import cache

import pytest

from hpcvdj.runs.launcher import launched_ranks
from hpcvdj.runs.ranks import World, world

# Without a launcher these tests are skipped, and MPI stays off.
SIZES = range(world().rank + 1, world().size + 1) if launched_ranks() > 1 else [1]
# The size varies fastest, so ranks that are not among the first ones wait for a single test.
ON_RANKS = [pytest.mark.mpi, pytest.mark.parametrize("size", SIZES)]


@cache
def first_ranks(size):
    """The world of the first `size` ranks, all of which call this."""
    launched = world()
    if size in (1, launched.size):
        return World(None, launched.library) if size == 1 else launched
    from mpi4py import MPI

    group = MPI.COMM_WORLD.Get_group().Incl(range(size))
    first = World(MPI.COMM_WORLD.Create_group(group), launched.library)
    if launched._liveness is not None:
        first.watch()
    atexit.register(first.leave)
    return first
