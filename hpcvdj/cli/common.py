"""What commands share: starting the ranks, and what they print."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from hpcvdj.errors import CompleteError, HpcvdjError, StoppedError
from hpcvdj.runs.ranks import ROOT, launched_rank, set_threads, world

if TYPE_CHECKING:
    from hpcvdj.runs.run import Run

_streams: list[Any] = []


def mute_nonroot_ranks() -> None:
    """Silence the ranks above root until they begin work: a usage error is printed once, not once per rank."""
    if launched_rank() != ROOT:
        _streams[:] = [sys.stdout, sys.stderr]
        sys.stdout = sys.stderr = io.StringIO()


def begin(threads: int | None = None) -> Run:
    """Start work: the arguments are well formed, so every rank may report its failures."""
    if _streams:
        sys.stdout, sys.stderr = _streams
        _streams.clear()
    current = world()
    set_threads(current, threads)
    from hpcvdj.runs.run import Run

    return Run(current)


def complain(error: HpcvdjError) -> None:
    """Print one line to stderr: an error, or that there is nothing to do."""
    kind = "" if isinstance(error, StoppedError | CompleteError) else "error: "
    print(f"hpcvdj: {kind}{error}", file=sys.stderr)


def say(line: str = "") -> None:
    """Print one line of the summary to stdout."""
    print(line)
