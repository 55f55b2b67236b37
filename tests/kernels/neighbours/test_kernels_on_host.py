"""The CUDA kernels of degrees, executed on the CPU, against the CPU kernel.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""

import numpy as np
import pytest

from hpcvdj.kernels.neighbours import degrees_cpu
from tests.kernels.host import fake_cupy
from tests.kernels.neighbours.cases import HOSTILE, random_clonotypes

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")


@pytest.fixture
def degrees_cuda(cuda_on_host, monkeypatch):
    """The module, with few threads: each takes a stack on the host."""
    from hpcvdj.kernels.neighbours import degrees_cuda

    monkeypatch.setattr(degrees_cuda, "THREADS", 32)
    return degrees_cuda


def require_same(degrees_cuda, own):
    np.testing.assert_array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own))


@pytest.mark.slow
@pytest.mark.parametrize("order", fake_cupy.ORDERS)
def test_the_same_numbers_as_on_cpu_cores(cuda_on_host, degrees_cuda, order):
    cuda_on_host.order = order
    for own in HOSTILE.values():
        require_same(degrees_cuda, own())


def test_few_at_a_time(degrees_cuda, monkeypatch):
    """Chunks of a few blocks, and threads that take several turns."""
    monkeypatch.setattr(degrees_cuda, "ROWS", 60)
    monkeypatch.setattr(degrees_cuda, "MOST_GRID", 1)
    for own in (random_clonotypes(5, 300, "ACDEFG")[1:], HOSTILE["any bytes"](), HOSTILE["one"]()):
        require_same(degrees_cuda, own)


def all_hashes_equal(code):
    """A change of the kernels: only letters tell sequences apart."""
    return code.replace("key << 32 | (u64)row", "(u64)row").replace("key >> (64 - bits)", "0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exact", "wrong"),
    [("if (alike && same", "if (alike || same"), ("block[a] != block[b]", "false")],
)
def test_a_wrong_kernel_is_seen(cuda_on_host, degrees_cuda, exact, wrong):
    """Without the comparison of letters, and of blocks."""

    def change(code):
        assert exact in code
        return all_hashes_equal(code.replace(exact, wrong))

    cuda_on_host.change = change
    differs = False
    for name in ("one large block", "any bytes", "a class for each"):
        own = HOSTILE[name]()
        try:
            differs |= not np.array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own))
        except Exception:  # what the stand-in raises for writes beyond an array
            differs = True
    assert differs


@pytest.mark.slow
def test_equal_hashes_are_told_apart_by_letters(cuda_on_host, degrees_cuda):
    cuda_on_host.change = all_hashes_equal
    require_same(degrees_cuda, HOSTILE["any bytes"]())
