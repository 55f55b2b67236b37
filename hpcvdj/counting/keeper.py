"""What a run does at its boundaries: keeps a checkpoint, and stops when it is told to."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hpcvdj.counting.checkpoint import Checkpoint
from hpcvdj.counting.driver import PIECE_SECONDS, Partial
from hpcvdj.methods import Unit
from hpcvdj.ranks.stopping import StopRequest
from hpcvdj.ranks.world import World
from hpcvdj.results.file import ResultWriter


class Keeper:
    """What a run does at its boundaries; this one lets it run through."""

    piece_seconds = math.inf

    def restore(
        self, put: Callable[[Unit, NDArray[np.uint64]], None], shape: tuple[int, int]
    ) -> tuple[NDArray[np.bool_], Partial | None]:
        """Root: `put` what an earlier run has finished; which (n-length, pair) that is, and the unit it was in."""
        return np.zeros(shape, dtype=bool), None

    def finished(self, unit: Unit) -> None:
        """Root: a unit is stored."""

    def boundary(self, partial: Partial | None) -> None:
        """Every rank: a piece is combined, within the unit of `partial` if there is one."""

    def stop(self) -> bool:
        """Every rank: whether to leave at this boundary."""
        return False

    def save(self) -> None:
        """Root: the run stops; save what is not safe yet."""

    def reason(self, world: World) -> str:
        """Every rank: why the run stops."""
        return ""


class CheckpointKeeper(Keeper):
    """Keeps a checkpoint on root, and stops at a signal to any rank."""

    piece_seconds = PIECE_SECONDS

    def __init__(self, checkpoint: Checkpoint | None, writer: ResultWriter | None, request: StopRequest) -> None:
        self._checkpoint, self._writer, self._request = checkpoint, writer, request

    def restore(
        self, put: Callable[[Unit, NDArray[np.uint64]], None], shape: tuple[int, int]
    ) -> tuple[NDArray[np.bool_], Partial | None]:
        """What the checkpoint holds."""
        assert self._checkpoint is not None
        return self._checkpoint.restore(put, shape)

    def finished(self, unit: Unit) -> None:
        """Remember to save it."""
        if self._checkpoint is not None:
            self._checkpoint.add(unit)

    def boundary(self, partial: Partial | None) -> None:
        """Save if it is time."""
        if self._checkpoint is not None:
            self._checkpoint.cut_at(partial)
            if self._checkpoint.due():
                self.save()

    def stop(self) -> bool:
        """Whether this rank had a signal."""
        return self._request.asked()

    def save(self) -> None:
        """Save now."""
        if self._checkpoint is not None and self._writer is not None:
            self._checkpoint.save(self._writer.get)

    def reason(self, world: World) -> str:
        """The signal, and which ranks had it."""
        names = world.broadcast(world.gather(self._request.name))
        return " and ".join(sorted({name for name in names if name})) or "a signal"
