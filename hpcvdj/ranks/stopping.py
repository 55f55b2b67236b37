"""Signals: a run that is told to stop does so at the next boundary, its counters safe in a checkpoint."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from hpcvdj.errors import StoppedError

if TYPE_CHECKING:
    from hpcvdj.ranks.world import Watch, World

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""What batch systems, users and `scancel --signal` send."""


class StopRequest:
    """While it is entered, the `SIGNALS` only take note; a second Ctrl-C interrupts at once.

    Before `begin_counting` there is nothing to save: a signal then ends the run by raising StoppedError.
    """

    def __init__(self) -> None:
        self.name = ""
        self._counting = False
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before = {}

    def begin_counting(self) -> None:
        """From now on a signal is noted, to be asked for at boundaries."""
        self._counting = True

    def asked(self) -> bool:
        """Whether a signal came."""
        return bool(self.name)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self._counting:
            raise StoppedError(f"{self.name}: stopped before anything was counted; start again with the same command")


class StopError(Exception):
    """A rank wants all to stop."""


def go_on(watch: Watch) -> None:
    """Between two pieces of work."""
    if watch.passed():
        raise StopError


def stopped(world: World, request: StopRequest, where: str) -> StoppedError:
    """What every rank is to raise."""
    names = world.broadcast(world.gather(request.name))
    why = " and ".join(sorted({name for name in names if name})) or "a signal"
    error = StoppedError(f"{why}: stopped {where}")
    error.on_every_rank = True
    return error
