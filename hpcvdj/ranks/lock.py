"""One run at a time writes a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hpcvdj.ranks.world import World, root_does
from hpcvdj.storage import alone


@contextmanager
def alone_with(world: World, target: Path) -> Iterator[None]:
    """`storage.alone`, of root; its InputError on every rank."""
    with ExitStack() as stack:
        root_does(world, lambda: stack.enter_context(alone(target)))
        yield
