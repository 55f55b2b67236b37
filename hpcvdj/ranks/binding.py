"""Which device each rank counts on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hpcvdj.errors import MachineError
from hpcvdj.ranks.world import World, root_does

if TYPE_CHECKING:
    from hpcvdj.backends import Backend

log = logging.getLogger(__name__)


def bind(name: str, world: World, *, strict: bool = False, sharing_pays: bool = False) -> Backend:
    """This rank's backend, by its name or `auto`; two ranks on one GPU are a warning, if `strict` a MachineError.

    `sharing_pays` says that ranks do more beside the GPU than on it: then they may share one without a warning.
    """
    from hpcvdj.backends import open_backend

    backend = open_backend(name, world.local_rank())
    world.meet()
    uuids = world.gather(getattr(backend, "uuid", ""))
    if strict or not sharing_pays:
        root_does(world, lambda: _check_binding(uuids or [], strict=strict))
    return backend


def _check_binding(uuids: list[str], *, strict: bool) -> None:
    """`uuids` of the ranks' GPUs, empty for a rank without one."""
    users: dict[str, list[int]] = {}
    for rank, uuid in enumerate(uuids):
        users.setdefault(uuid, []).append(rank)
    for uuid, ranks in users.items():
        if uuid and len(ranks) > 1:
            shared = f"ranks {', '.join(map(str, ranks))} share one GPU ({uuid}): start as many ranks as there are GPUs"
            if strict:
                raise MachineError(shared + ", or leave --strict-binding out")
            log.warning("%s", shared)
