"""The CUDA kernel that draws, executed on the CPU, against the CPU kernel: bit by bit.

See tests/kernels/pathways/test_kernels_on_host.py for what that shows.
"""

import pytest

import hpcvdj
from hpcvdj.kernels.generation.tables import DrawTables
from tests.kernels.generation.cases import NAMES, drawn_of, model_of, same
from tests.kernels.host import fake_cupy

pytestmark = pytest.mark.skipif(fake_cupy.COMPILER is None, reason="no g++")


@pytest.mark.slow_others
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_as_on_cpu_cores(cuda_on_host, monkeypatch, name):
    from hpcvdj.kernels.generation import draw_cuda

    model = model_of(name)
    if model is None:
        pytest.skip("olga is not installed")
    sampler = draw_cuda.Sampler(DrawTables.of(model))
    for first, seed in ((0, 0), ((1 << 32) - 300, (1 << 63) + 5), ((1 << 64) - 700, 1 << 32)):
        assert same(sampler(first, 600, seed), drawn_of(model, first, 600, seed))
    # Few at a time, and blocks that take several turns.
    monkeypatch.setattr(draw_cuda, "MOST_BLOCKS", 1)
    monkeypatch.setattr(draw_cuda, "THREADS", 32)
    sampler._rows = 131
    assert same(sampler(7, 600, 3), drawn_of(model, 7, 600, 3))


def test_the_table_is_the_same(cuda_on_host):
    model = model_of("VDJ")
    options = {"seed": 3, "productive": True, "scenarios": True}
    assert hpcvdj.generate(model, 500, backend="cuda", **options).equals(
        hpcvdj.generate(model, 500, backend="cpu", **options)
    )
