"""What tests of slices share."""

import pytest

from hpcvdj.runs.run import Run
from hpcvdj.values import slices


@pytest.fixture
def signal_after_a_slice(monkeypatch):
    """A run that has a signal once a slice is counted, and the indices of the slices that were counted."""
    run, counted = Run(), []
    right = slices._SliceWork._compute

    def count_then_signal(self, part, progress):
        counted.append(part.index)
        rest = right(self, part, progress)
        run.request.name = "SIGTERM"
        return rest

    monkeypatch.setattr(slices._SliceWork, "_compute", count_then_signal)
    return run, counted
