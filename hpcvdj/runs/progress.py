"""Progress for users, on root only: a bar on a terminal or in a notebook, or regular lines in a batch log."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Self

from hpcvdj.errors import log
from hpcvdj.public import in_notebook

LOG_SECONDS = 30.0
"""Seconds between two lines in a batch log; the first comes after `PATIENT_SECONDS`."""

COMPILING = "loading the kernel and its tables; on a new machine it is compiled first, in up to a minute"

_TOLD: set[str] = set()
"""What a process says once."""

PATIENT_SECONDS = 2.0
"""Seconds without output after which users wonder what happens."""

NOTEBOOK_SECONDS = 0.5
"""Seconds between two changes of a notebook's bar."""

AGAIN_SECONDS = 10.0
"""Seconds between two lines about work whose share is unknown."""


@contextmanager
def told_if_slow(what: str, *, shown: bool) -> Iterator[None]:
    """Log `what` if the block takes long, and how long it has taken.  Log nothing unless `shown`."""
    ended, started = Event(), time.monotonic()

    def tell() -> None:
        if ended.wait(PATIENT_SECONDS) or what in _TOLD:
            return
        if what == COMPILING:
            _TOLD.add(what)
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
    """Shows how much of `total` work, measured in `unit`, is done.  Shows nothing unless `shown` and INFO is logged.

    A notebook has a bar for slow work, although its logger is at WARNING by default.

    what  name of the work, such as `counting`
    """

    def __init__(self, total: float, unit: str, *, shown: bool, what: str = "counting") -> None:
        self.total, self.unit, self.what, self.done = total, unit, what, 0.0
        self._notebook = in_notebook()
        # Users who want only warnings, as with -q or in a script, want no bar.
        self._shown = shown and log.isEnabledFor(logging.WARNING if self._notebook else logging.INFO)
        self._skipped = 0.0
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._next_line = self._started + PATIENT_SECONDS
        if self._shown and not self._notebook and sys.stderr.isatty():
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
        if self._bar is not None and self._notebook:
            self._bar.update({"text/plain": ""}, raw=True)
        elif self._bar is not None:
            self._bar.stop()

    @property
    def share(self) -> float:
        """The finished share of the work, 0 to 1."""
        return self.done / self.total if self.total else 1.0

    def skip(self, work: float) -> None:
        """Add work that an earlier run did."""
        self.done += work
        self._skipped += work

    def advance(self, work: float) -> None:
        """Add finished work, and show the progress if it is time."""
        self.done += work
        if not self._shown:
            return
        now = time.monotonic()
        rate = (self.done - self._skipped) / max(now - self._started, 1e-9)
        if self._bar is not None and not self._notebook:
            self._bar.update(self._task, completed=self.done, rate=f"{_short(rate)} {self.unit}/s")
        elif now >= self._next_line and self.share < 1:
            self._next_line = now + (NOTEBOOK_SECONDS if self._notebook else LOG_SECONDS)
            left = _clock((self.total - self.done) / rate) if rate else "an unknown time"
            line = f"{self.what}: {100 * self.share:.1f} % done, {left} left, {_short(rate)} {self.unit}/s"
            if self._notebook:
                self._show(line)
            else:
                log.info("%s", line)

    def _show(self, line: str) -> None:
        """Show a line with a bar in a notebook."""
        from IPython.display import display

        shown = {"text/plain": line, "text/html": f'<progress value="{self.share:.3f}"></progress> {line}'}
        if self._bar is None:
            self._bar = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._bar.update(shown, raw=True)


def _short(value: float) -> str:
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.2f} {suffix}"
    return f"{value:.0f}"


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds + 0.5), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
