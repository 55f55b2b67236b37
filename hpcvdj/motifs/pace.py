"""Work on a CPU in pieces of some seconds, between which a rank hears whether it is to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from hpcvdj.counting.driver import PIECE_SECONDS

_FASTEST_GROWTH = 8
"""How many times longer than any before a piece may be."""


def _ignore() -> None:
    return None


class Pace:
    """Cuts work into pieces of about `PIECE_SECONDS`, as the ones before went; calls `between` between two.

    What `between` raises ends the work.
    """

    def __init__(self, between: Callable[[], None] = _ignore) -> None:
        self.between = between
        self._rate = 0.0
        self._most = 0

    def share(self, work: int) -> float:
        """`PIECE_SECONDS` over the seconds that `work` is expected to take; 0 if nothing is known."""
        return self._rate * PIECE_SECONDS / work

    def pieces(self, work: int, grain: int) -> Iterator[tuple[int, int]]:
        """0 … work-1 as half-open ranges of multiples of `grain`."""
        first = 0
        while first < work:
            most = min(self._rate * PIECE_SECONDS, _FASTEST_GROWTH * self._most)
            size = max(grain, int(most) // grain * grain)
            last = work if work - first <= size * 4 // 3 else first + size
            begun = time.perf_counter()
            yield first, last
            self._rate = (last - first) / max(time.perf_counter() - begun, 1e-9)
            self._most = max(self._most, last - first)
            first = last
            if first < work:
                self.between()
