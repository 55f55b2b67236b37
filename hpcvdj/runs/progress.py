"""Progress for people: a bar on a terminal, a line every so often in a batch log; on root only."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Self

log = logging.getLogger(__name__)

LOG_SECONDS = 30.0
"""Seconds between two lines in a batch log; the first comes after `PATIENT_SECONDS`."""

COMPILING = "compiling the kernel, which takes up to a minute the first time on a machine"

PATIENT_SECONDS = 2.0
"""Seconds without a word after which people wonder."""


AGAIN_SECONDS = 10.0
"""Seconds between two lines about work of which no share is known."""


@contextmanager
def told_if_slow(what: str, *, shown: bool) -> Iterator[None]:
    """Log `what` goes on if it goes on for long, and how long it has taken.  Silent unless `shown`."""
    ended, started = Event(), time.monotonic()

    def tell() -> None:
        if ended.wait(PATIENT_SECONDS):
            return
        log.info("%s", what)
        while not ended.wait(AGAIN_SECONDS):
            log.info("%s: %.0f s so far", what.partition(",")[0], time.monotonic() - started)

    if shown:
        Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


class Progress:
    """Shows how much of `total` work, measured in `unit`, is done.  Silent unless `shown` and INFO is logged.

    what  a verb
    """

    def __init__(self, total: float, unit: str, *, shown: bool, what: str = "counting") -> None:
        self.total, self.unit, self.what, self.done = total, unit, what, 0.0
        # Who wants warnings only, as with -q or in a library, wants no bar.
        self._shown = shown and log.isEnabledFor(logging.INFO)
        self._skipped = 0.0
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._next_line = self._started + PATIENT_SECONDS
        if self._shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn(self.what), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
                TextColumn("{task.fields[rate]}"), console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("", total=self.total, rate="")
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def share(self) -> float:
        """The share of the work that is done, 0 to 1."""
        return self.done / self.total if self.total else 1.0

    def skip(self, work: float) -> None:
        """So much work was done in an earlier run."""
        self.done += work
        self._skipped += work

    def advance(self, work: float) -> None:
        """So much more work is done."""
        self.done += work
        if not self._shown:
            return
        now = time.monotonic()
        rate = (self.done - self._skipped) / max(now - self._started, 1e-9)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, rate=f"{_short(rate)} {self.unit}/s")
        elif now >= self._next_line and self.share < 1:
            self._next_line = now + LOG_SECONDS
            left = _clock((self.total - self.done) / rate) if rate else "an unknown time"
            share = 100 * self.share
            log.info("%s: %.1f %% done, %s left, %s %s/s", self.what, share, left, _short(rate), self.unit)


def _short(value: float) -> str:
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.2f} {suffix}"
    return f"{value:.0f}"


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds + 0.5), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
