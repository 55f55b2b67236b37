"""What tests of slices share."""

import pytest

from hpcvdj.runs.run import Run
from hpcvdj.values import slices


@pytest.fixture
def signal_after_a_slice(monkeypatch):
    """A run that has a signal once a slice is counted, and the indices of the slices that were counted."""
    run, counted = Run(), []
    right = slices._SliceWork.count

    def count_then_signal(self, some_run, part, batches):
        counted.append(part.index)
        right(self, some_run, part, batches)
        run.request.name = "SIGTERM"

    monkeypatch.setattr(slices._SliceWork, "count", count_then_signal)
    return run, counted
