"""Which device each rank counts on: what is said of ranks that share one."""

import pytest

from hpcvdj.errors import MachineError
from hpcvdj.runs.binding import bind
from hpcvdj.runs.ranks import World


def world_with(*uuids):
    """A world whose ranks have these GPUs; empty for none."""
    world = World()
    world.gather = lambda _: list(uuids)
    return world


def test_ranks_that_share_a_gpu_are_told(caplog):
    bind("cpu", world_with("GPU-a", "GPU-b", "GPU-a"))
    assert "ranks 0, 2 share one GPU (GPU-a); start one rank per GPU" in caplog.text
    assert "GPU-b" not in caplog.text


@pytest.mark.parametrize("options", [{}, {"sharing_pays": True}])
def test_strict_binding_refuses_them(options):
    with pytest.raises(MachineError, match="ranks 0, 1 share one GPU"):
        bind("cpu", world_with("GPU-a", "GPU-a"), strict=True, **options)


@pytest.mark.parametrize(
    ("uuids", "options"), [(("GPU-a", "GPU-a"), {"sharing_pays": True}), (("", ""), {}), (("GPU-a", "GPU-b"), {})]
)
def test_nothing_is_said_otherwise(caplog, uuids, options):
    bind("cpu", world_with(*uuids), **options)
    assert not caplog.text
