"""Stop a run: a rank notes a signal, the ranks agree at the next boundary, and all of them leave in order."""

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
"""The signals of batch systems, users and `scancel --signal`."""

NOTHING_YET = "before any result; start again with the same command"
"""The end of the message if a signal stops a run that has saved nothing."""


class StopRequest:
    """A context manager that only notes the `SIGNALS`, in `name`.  A second Ctrl-C interrupts at once.

    Before `begin`, there is nothing to save, and a signal raises StoppedError.
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
        """From now on, only note a signal; the run asks for it at boundaries."""
        self._begun = True

    def __bool__(self) -> bool:
        return bool(self.name)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self._begun:
            raise stopped_by(self.name, NOTHING_YET)


def stopped_by(name: str, saved: str) -> StoppedError:
    """Return the error for a signal; `saved` says what is saved, and how to continue."""
    error = StoppedError(f"{name}: stopped {saved}")
    error.signal = name
    return error


def told_otherwise(error: StoppedError, saved: str) -> StoppedError:
    """Return the same error with another text about what is saved."""
    stopped = stopped_by(error.signal, saved)
    stopped.on_every_rank = error.on_every_rank
    return stopped


class StopWorkError(Exception):
    """A rank asks all ranks to stop.  It is raised where a rank works on its own; the run layer catches it."""


class Agreement:
    """Tells ranks that one of them wants to stop, and notices a rank that hangs.

    Ranks that work together call `together` at each boundary, where they wait for each other.  A rank that works on its
    own calls `passed` between two steps, which does not wait, and `end` when it has no work left.  A round is over when
    every rank has passed, or ended, since the last round.  Raises LostRankError if a rank hangs for longer than the
    `patience` of the world.

    wants_stop  returns whether this rank wants to stop
    """

    def __init__(self, world: World, wants_stop: Callable[[], bool]) -> None:
        self._world, self._wants_stop = world, wants_stop
        self._stop = False
        self._round: Any = None
        self._begun = 0.0

    def together(self, seconds: float) -> tuple[float, bool]:
        """Wait for every rank.  Return the `seconds` of the slowest rank, and whether a rank wants to stop."""
        slowest, stop = self._world.maximum(np.array([seconds, float(self._wants_stop())]))
        return float(slowest), bool(stop)

    def passed(self) -> bool:
        """Note the end of a step.  Return whether a rank wants to stop, as far as this rank knows."""
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
        """Wait for the other ranks.  Return whether a rank wants to stop, the same on every rank."""
        working = self._world.size > 1
        while working:
            if self._round is None:
                self._stop |= self._wants_stop()
                self._open(working=False)
            self._world.wait(self._round)
            working = self._close()
        return self._stop

    def _open(self, *, working: bool) -> None:
        # MPI uses both arrays until the round is over.
        self._sent = np.array([float(self._stop), float(working)])
        self._maximum = np.empty_like(self._sent)
        self._begun = time.monotonic()
        self._round = self._world.start_reduce(self._sent, self._maximum, "MAX")

    def _close(self) -> bool:
        """Note the outcome of a round.  Return whether a rank was at work."""
        self._round = None
        self._stop |= bool(self._maximum[0])
        return bool(self._maximum[1])
