"""Drawing from a model on a GPU against the CPU kernel.  Skipped without a GPU.

python -m pytest tests/gpu/test_generation.py
"""

import pytest

import hpcvdj
from hpcvdj.kernels.backends import gpu_count
from hpcvdj.kernels.generation.tables import DrawTables
from tests.kernels.generation.cases import NAMES, drawn_of, model_of, same

pytestmark = pytest.mark.skipif(gpu_count() == 0, reason="no GPU")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_as_on_cpu_cores(name, monkeypatch):
    from hpcvdj.kernels.generation import draw_cuda

    model = model_of(name)
    if model is None:
        pytest.skip("olga is not installed")
    sampler = draw_cuda.Sampler(DrawTables.of(model))
    for first, seed in ((0, 0), ((1 << 32) - 30_000, (1 << 63) + 5), ((1 << 64) - 200_000, 1 << 32)):
        assert same(sampler(first, 200_000, seed), drawn_of(model, first, 200_000, seed))
    # Few at a time, and blocks that take several turns.
    monkeypatch.setattr(draw_cuda, "MOST_BLOCKS", 3)
    sampler._rows = 7777
    assert same(sampler(7, 50_000, 3), drawn_of(model, 7, 50_000, 3))


def test_the_table_is_the_same():
    model = model_of("VDJ")
    options = {"seed": 3, "productive": True, "scenarios": True}
    assert hpcvdj.generate(model, 100_000, backend="cuda", **options).equals(
        hpcvdj.generate(model, 100_000, backend="cpu", **options)
    )
