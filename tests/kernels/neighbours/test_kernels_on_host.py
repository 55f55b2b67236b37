"""The CUDA kernels of degrees, executed on the CPU, against the CPU kernel.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""

import numpy as np
import pytest

from hpcvdj.kernels.neighbours import degrees_cpu
from tests.kernels.host import fake_cupy
from tests.kernels.neighbours.cases import HOSTILE, random_clonotypes

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")


@pytest.mark.parametrize("order", fake_cupy.ORDERS)
def test_the_same_numbers_as_on_cpu_cores(cuda_on_host, monkeypatch, order):
    from hpcvdj.kernels.neighbours import degrees_cuda

    cuda_on_host.order = order
    cases = [own() for own in HOSTILE.values()] + [random_clonotypes(5, 300, "ACDEFG")[1:]]
    # All at once; and few at a time, in blocks of threads that take several turns.
    for rows, grid, threads in ((1 << 20, 1 << 20, 256), (37, 1, 32)):
        monkeypatch.setattr(degrees_cuda, "ROWS", rows)
        monkeypatch.setattr(degrees_cuda, "MOST_GRID", grid)
        monkeypatch.setattr(degrees_cuda, "THREADS", threads)
        for own in cases:
            np.testing.assert_array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own))


@pytest.mark.parametrize(
    ("exact", "wrong"),
    [("if (alike && same", "if (alike || same"), ("block[a] != block[b]", "false"), ("lengths[row] <= place", "false")],
)
def test_a_wrong_kernel_is_seen(cuda_on_host, exact, wrong):
    """Without the comparison of hashes, of blocks, and beyond the end of a sequence."""
    from hpcvdj.kernels.neighbours import degrees_cuda

    def change(code):
        assert exact in code
        # So many equal hashes that the letters must decide.
        return code.replace(exact, wrong).replace("key << 32 | (u64)row", "(u64)row").replace("key >> (64 - bits)", "0")

    cuda_on_host.change = change
    differs = False
    for name in ("one large block", "any bytes", "a class for each"):
        own = HOSTILE[name]()
        try:
            differs |= not np.array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own))
        except Exception:  # what the stand-in raises for writes beyond an array
            differs = True
    assert differs


def test_equal_hashes_are_told_apart_by_letters(cuda_on_host):
    from hpcvdj.kernels.neighbours import degrees_cuda

    cuda_on_host.change = lambda code: code.replace("key << 32 | (u64)row", "(u64)row").replace(
        "key >> (64 - bits)", "0"
    )
    own = HOSTILE["any bytes"]()
    np.testing.assert_array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own))
