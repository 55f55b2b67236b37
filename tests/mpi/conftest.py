"""The ranks that a test is on."""

import pytest

from hpcvdj.runs.run import Run
from tests.mpi.ranks import first_ranks


@pytest.fixture
def current(size):
    """The first `size` ranks, which begin a test together."""
    first = first_ranks(size)
    first.barrier()
    return first


@pytest.fixture
def run(current):
    """A computation in memory over the first ranks."""
    return Run(current)
