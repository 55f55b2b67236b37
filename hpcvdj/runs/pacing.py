"""Steps of work of about the same time, between which a run can be left."""

import math
import time
from collections.abc import Callable, Iterator

STEP_SECONDS = 2.0
"""How long a step should take: two of them pass at most between a signal and a boundary."""

SAVE_SECONDS = 20.0
"""How long finished work may wait to be saved."""


class Pacer:
    """Sizes steps so that each takes about `seconds`, by the speed of the step before.

    first     work of the first step, when nothing is known of the speed
    growth    how many times the largest step so far a step may be
    between   called between two steps of `steps`; what it raises ends the work
    """

    def __init__(
        self,
        first: float = 1.0,
        growth: float = 8.0,
        seconds: float = STEP_SECONDS,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        self.between = between
        self._first, self._growth, self._seconds = first, growth, seconds
        self._rate = self._largest = 0.0

    def work(self) -> float:
        """The work of the next step; infinite without a limit of time."""
        if math.isinf(self._seconds):
            return math.inf
        if not self._rate:
            return self._first
        return min(self._rate * self._seconds, self._growth * max(self._largest, self._first))

    def took(self, work: float, seconds: float) -> None:
        """A step of so much work took so long."""
        self._rate = work / max(seconds, 1e-9)
        self._largest = max(self._largest, work)

    def steps(self, total: int, grain: int) -> Iterator[tuple[int, int]]:
        """0 … total-1 as half-open ranges of multiples of `grain`; times each step."""
        first = 0
        while first < total:
            size = max(grain, int(min(self.work(), total)) // grain * grain)
            last = total if total - first <= size * 4 // 3 else first + size
            begun = time.perf_counter()
            yield first, last
            self.took(last - first, time.perf_counter() - begun)
            first = last
            if first < total:
                self.between()

    def share(self, work: float) -> float:
        """The time of a step over the time that `work` is expected to take, at most 1; 0 if nothing is known."""
        return min(1.0, self._rate * self._seconds / work)
