"""Stopping: a signal is noted, the ranks agree at the next boundary, and all of them leave in order."""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

import numpy as np

from hpcvdj.errors import StoppedError
from hpcvdj.runs.ranks import World

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
"""What batch systems, users and `scancel --signal` send."""

NOTHING_YET = "before any result; start again with the same command"
"""The end of the message if a signal stops a run that has saved nothing."""


class StopRequest:
    """While it is entered, the `SIGNALS` are only noted, in `name`; a second Ctrl-C interrupts at once.

    Before `begin` there is nothing to save: a signal then ends the run by raising StoppedError.
    """

    def __init__(self) -> None:
        self.name = ""
        self._begun = False
        self._previous: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._previous = {}

    def begin(self) -> None:
        """From now on a signal is noted, to be asked for at boundaries."""
        self._begun = True

    def __bool__(self) -> bool:
        """Whether a signal came."""
        return bool(self.name)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self._begun:
            raise stopped_by(self.name, NOTHING_YET)


def stopped_by(name: str, saved: str) -> StoppedError:
    """The error that a signal raises; `saved` says what is saved, and how to continue."""
    error = StoppedError(f"{name}: stopped {saved}")
    error.signal = name
    return error


class StopWorkError(Exception):
    """A rank asks all ranks to stop; raised where a rank works on its own, and caught in the run layer."""


class Agreement:
    """How ranks learn that one of them wants to stop, and notice one that hangs.

    Ranks that work together call `together` at each boundary, where they wait for each other.  Ranks that work each
    on its own call `passed` between two steps, which does not wait, and `end` when they have nothing left to do.  A
    round is over when every rank has passed, or ended, since the last round.  LostRankError if one hangs for longer
    than the world's `patience`.

    wants_stop  whether this rank wants to stop
    """

    def __init__(self, world: World, wants_stop: Callable[[], bool]) -> None:
        self._world, self._wants_stop = world, wants_stop
        self._stop = False
        self._round: Any = None
        self._begun = 0.0

    def together(self, seconds: float) -> tuple[float, bool]:
        """Wait for every rank: the slowest rank's `seconds`, and whether a rank wants to stop."""
        slowest, stop = self._world.maximum(np.array([seconds, float(self._wants_stop())]))
        return float(slowest), bool(stop)

    def passed(self) -> bool:
        """A step is done.  Whether a rank wants to stop, as far as this one knows."""
        self._stop |= self._wants_stop()
        if self._world.size > 1:
            if self._round is not None:
                late = time.monotonic() - self._begun > self._world.patience
                if late:
                    self._world.wait(self._round, self._begun)
                if late or self._round.Test():
                    self._close()
            if self._round is None:
                self._open(working=True)
        return self._stop

    def end(self) -> bool:
        """This rank has nothing left to do; wait for the others.  Whether one wants to stop, the same on every rank."""
        working = self._world.size > 1
        while working:
            if self._round is None:
                self._stop |= self._wants_stop()
                self._open(working=False)
            self._world.wait(self._round)
            working = self._close()
        return self._stop

    def _open(self, *, working: bool) -> None:
        self._own = np.array([float(self._stop), float(working)])
        self._all = np.empty_like(self._own)
        self._begun = time.monotonic()
        self._round = self._world.start_reduce(self._own, self._all, "MAX")

    def _close(self) -> bool:
        """Take note of what a round found; returns whether a rank was at work."""
        self._round = None
        self._stop |= bool(self._all[0])
        return bool(self._all[1])
