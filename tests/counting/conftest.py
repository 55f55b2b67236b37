"""What tests of slices share."""

import pytest

from hpcvdj.counting import batched
from hpcvdj.runs.stopping import StopRequest


@pytest.fixture
def signal_after_a_slice(monkeypatch):
    """A request that hears a signal once a slice is counted, and the indices of those that were."""
    request = StopRequest()
    right, counted = batched._count_slice, []

    def one_then_signal(one, *arguments, **options):
        counted.append(one.index)
        seconds = right(one, *arguments, **options)
        request.name = "SIGTERM"
        return seconds

    monkeypatch.setattr(batched, "_count_slice", one_then_signal)
    return request, counted
