"""Which device each rank counts on: what is said of ranks that share one."""

import pytest

from hpcvdj.errors import MachineError
from hpcvdj.runs.ranks import World
from hpcvdj.runs.run import Run


def run_with(*uuids):
    """A run whose ranks have these GPUs; empty for none."""
    world = World()
    world.gather = lambda _: list(uuids)
    return Run(world)


def test_ranks_that_share_a_gpu_are_told(caplog):
    run_with("GPU-a", "GPU-b", "GPU-a").bind("cpu")
    assert "ranks 0, 2 share one GPU (GPU-a); start one rank per GPU" in caplog.text
    assert "GPU-b" not in caplog.text


@pytest.mark.parametrize("options", [{}, {"sharing_pays": True}])
def test_strict_binding_refuses_them(options):
    with pytest.raises(MachineError, match="ranks 0, 1 share one GPU"):
        run_with("GPU-a", "GPU-a").bind("cpu", strict=True, **options)


@pytest.mark.parametrize(
    ("uuids", "options"), [(("GPU-a", "GPU-a"), {"sharing_pays": True}), (("", ""), {}), (("GPU-a", "GPU-b"), {})]
)
def test_nothing_is_said_otherwise(caplog, uuids, options):
    run_with(*uuids).bind("cpu", **options)
    assert not caplog.text
