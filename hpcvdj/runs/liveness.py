"""Signs of life: while a rank waits, it asks the others whether they are at work, so that steps may take any time."""

import math
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

_LONGEST_INTERVAL, _INTERVALS = 0.25, 20
"""The most seconds between two looks for messages, and the fewest looks within the patience."""

_QUESTIONS = 4
"""Questions that a rank asks within its patience."""

_AT_WORK = 0.01
"""The share of a core above which a rank is at work.  A rank that hangs uses none; one that reads a slow disk, some."""

_QUESTION, _ANSWER = 1, 2


class Liveness:
    """Answers for a rank whose Python code is busy, and keeps the answers of other ranks.

    A thread with its own communicator does this.  A rank is at work if it does not wait for others and its process uses
    processor time.  If all ranks wait, none is at work, and they run out of patience.

    heard     time.monotonic() at which another rank was last at work, in seconds
    waiting   time.monotonic() since which this rank waits for others, or None
    comm      communicator of mpi4py for these messages only; MPI must support calls from several threads
    patience  returns how long a rank waits for others, in seconds
    """

    def __init__(self, comm: Any, patience: Callable[[], float]) -> None:
        self.heard = -math.inf
        self.waiting: float | None = None
        self._comm, self._patience = comm, patience
        self._others = [rank for rank in range(comm.Get_size()) if rank != comm.Get_rank()]
        self._worked = self._looked = time.monotonic()
        self._asked = -math.inf
        self._processor = 0.0
        self._sent: list[Any] = []
        self._ended = Event()
        self._thread = Thread(target=self._serve, name="hpcvdj-liveness", daemon=True)
        self._thread.start()

    def done_waiting(self) -> None:
        """Note that this rank is at work again, because the others have come."""
        self.waiting, self._worked = None, time.monotonic()

    def end(self) -> None:
        """Stop answering.  Call this before MPI ends."""
        self._ended.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._ended.wait(min(_LONGEST_INTERVAL, self._patience() / _INTERVALS)):
            now = time.monotonic()
            self._note_work(now)
            self._ask_if_waiting(now)
            while (message := self._comm.improbe()) is not None:
                self._receive(now, *message.recv())
            self._sent = [request for request in self._sent if not request.Test()]

    def _note_work(self, now: float) -> None:
        processor = time.process_time() - time.thread_time()
        if self.waiting is None and processor - self._processor > _AT_WORK * (now - self._looked):
            self._worked = now
        self._processor, self._looked = processor, now

    def _ask_if_waiting(self, now: float) -> None:
        between = self._patience() / _QUESTIONS
        if self.waiting is not None and now - max(self.waiting, self._asked) > between:
            self._asked = now
            for rank in self._others:
                self._send(_QUESTION, 0.0, rank)

    def _receive(self, now: float, kind: int, rank: int, idle: float) -> None:
        """Take a message of `rank`; in an answer, `idle` is for how many seconds it has not been at work."""
        if kind == _ANSWER:
            self.heard = max(self.heard, now - idle)
        else:
            self._send(_ANSWER, math.inf if self.waiting is not None else now - self._worked, rank)

    def _send(self, kind: int, idle: float, rank: int) -> None:
        self._sent.append(self._comm.isend((kind, self._comm.Get_rank(), idle), rank))
