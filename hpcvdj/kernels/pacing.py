"""Steps of work that take about the same time; a run can stop between two steps."""

import math
import time
from collections.abc import Callable, Iterator

STEP_SECONDS = 2.0
"""Seconds that a step should take.  At most two steps pass between a signal and a boundary."""


class Pacer:
    """Sizes steps so that each takes about `seconds`, by the speed of the step before.

    first     work of the first step, when the speed is unknown
    growth    how many times as large as the largest step so far a step may be
    seconds   infinite: all work is one step
    between   called between two steps of `steps`; an exception ends the work
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
        """Return the work of the next step; infinite without a time limit."""
        if math.isinf(self._seconds):
            return math.inf
        if not self._rate:
            return self._first
        return min(self._rate * self._seconds, self._growth * max(self._largest, self._first))

    def took(self, work: float, seconds: float) -> None:
        """Note how long a step of so much work took."""
        self._rate = work / max(seconds, 1e-9)
        self._largest = max(self._largest, work)

    def steps(self, total: int, grain: int) -> Iterator[tuple[int, int]]:
        """Yield 0 … total-1 as half-open ranges of multiples of `grain`, and time each step."""
        first = 0
        while first < total:
            most = self.work()
            size = max(grain, int(min(most, total)) // grain * grain)
            last = total if math.isinf(most) or total - first <= size * 4 // 3 else first + size
            begun = time.perf_counter()
            yield first, last
            self.took(last - first, time.perf_counter() - begun)
            first = last
            if first < total:
                self.between()

    def share(self, work: float) -> float:
        """Return the time of a step over the expected time of `work`, at most 1; 0 if the speed is unknown."""
        return 1.0 if math.isinf(self._seconds) else min(1.0, self._rate * self._seconds / work)
