"""Degrees on a GPU against the CPU kernel.  Skipped without a GPU.

python -m pytest tests/gpu/test_neighbours.py
"""

import numpy as np
import pytest

import hpcvdj
from hpcvdj.kernels.backends import gpu_count
from hpcvdj.kernels.neighbours import degrees_cpu
from tests.kernels.neighbours.cases import HOSTILE, random_arrays, random_clonotypes

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")


def require_same(own):
    from hpcvdj.kernels.neighbours import degrees_cuda

    np.testing.assert_array_equal(degrees_cuda.degrees(*own), degrees_cpu.degrees(*own))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_clonotypes(name):
    require_same(HOSTILE[name]())


@pytest.mark.parametrize("seed", range(3))
def test_random_clonotypes(seed):
    require_same(random_clonotypes(seed, 3000, "ACDEFG", longest=9)[1:])


@pytest.mark.parametrize(("rows", "length", "classes"), [(3_000_000, 7, 1), (1_000_000, 15, 60_000), (2_000_000, 9, 3)])
def test_many(rows, length, classes):
    """A block with more than a chunk; many small blocks; some large ones."""
    require_same(random_arrays(1, rows, length, 20, classes, kinds=2))


def test_few_at_a_time(monkeypatch):
    from hpcvdj.kernels.neighbours import degrees_cuda

    own = random_arrays(2, 200_000, 6, 15, 50)
    for rows, grid in ((1, 3), (7777, 1 << 20)):
        monkeypatch.setattr(degrees_cuda, "ROWS", rows)
        monkeypatch.setattr(degrees_cuda, "MOST_GRID", grid)
        require_same(own)


def test_the_table_is_the_same():
    """Neighbours to the bit, probabilities to rounding."""
    drawn = hpcvdj.generate("human_trb_m15", 200_000, seed=3, productive=True)
    found = {
        backend: hpcvdj.enrich(drawn, "human_trb_m15", kappa=1.0, likely_errors=True, backend=backend).table.sort_by(
            [(name, "ascending") for name in ("v_call", "j_call", "junction_aa")]
        )
        for backend in ("cuda", "cpu")
    }
    exact = ["v_call", "j_call", "junction_aa", "nt_variants", "neighbours", "class_size"]
    assert found["cuda"].select(exact).equals(found["cpu"].select(exact))
    for name in ("pgen_ball", "expected", "p_value", "q_value"):
        np.testing.assert_allclose(found["cuda"][name], found["cpu"][name], rtol=1e-9)
