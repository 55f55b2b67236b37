"""Which device each rank computes on."""

import logging

from hpcvdj.errors import MachineError
from hpcvdj.kernels.backends import Backend, open_backend
from hpcvdj.runs.ranks import World

log = logging.getLogger(__name__)


def bind(name: str, world: World, *, strict: bool = False, sharing_pays: bool = False) -> Backend:
    """Open this rank's backend, by its name or `auto`.

    Two ranks on one GPU are a warning; with `strict` they are a MachineError, on every rank.

    sharing_pays  the ranks do most of their work on the CPU, so they may share a GPU without a warning
    """
    backend = open_backend(name, world.local_rank())
    world.barrier()
    uuids = world.gather(backend.uuid)
    if strict or not sharing_pays:
        world.on_root(lambda: _check_binding(uuids or [], strict=strict))
    return backend


def _check_binding(uuids: list[str], *, strict: bool) -> None:
    """`uuids` of the ranks' GPUs, empty for a rank without one."""
    users: dict[str, list[int]] = {}
    for rank, uuid in enumerate(uuids):
        users.setdefault(uuid, []).append(rank)
    for uuid, ranks in users.items():
        if uuid and len(ranks) > 1:
            shared = f"ranks {', '.join(map(str, ranks))} share one GPU ({uuid}); start one rank per GPU"
            if strict:
                raise MachineError(shared + ", or leave --strict-binding out")
            log.warning("%s", shared)
