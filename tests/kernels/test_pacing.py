"""hpcvdj.kernels.pacing: steps take about the same time and cover all work."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.kernels.pacing import STEP_SECONDS, Pacer


def test_the_first_step_is_small_and_growth_is_limited():
    pacer = Pacer(first=100.0, growth=8.0)
    assert pacer.work() == 100.0
    pacer.took(100.0, 1e-6)
    assert pacer.work() == 800.0
    pacer.took(800.0, STEP_SECONDS / 4)
    assert pacer.work() == pytest.approx(3200.0)
    pacer.took(3200.0, 10 * STEP_SECONDS)
    assert pacer.work() == pytest.approx(320.0)


def test_without_a_limit_of_time_a_step_takes_all():
    assert Pacer(seconds=math.inf).work() == math.inf
    assert list(Pacer(seconds=math.inf).steps(10, 3)) == [(0, 10)]


@given(total=st.integers(0, 500), grain=st.integers(1, 64), seconds=st.floats(1e-9, 1.0))
def test_steps_cover_everything_in_multiples_of_the_grain(total, grain, seconds):
    calls = []
    steps = list(Pacer(seconds=seconds, between=lambda: calls.append(1)).steps(total, grain))
    assert [number for first, last in steps for number in range(first, last)] == list(range(total))
    assert all(first % grain == 0 for first, _ in steps)
    assert len(calls) == max(0, len(steps) - 1)


def test_the_share_of_a_step():
    pacer = Pacer()
    assert pacer.share(10) == 0.0
    pacer.took(10.0, STEP_SECONDS)
    assert pacer.share(40) == pytest.approx(0.25)
    assert pacer.share(5) == 1.0
