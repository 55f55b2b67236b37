"""Quantities: the weight against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from hpcvdj.kernels.quantities import Pathways

ROUNDING = 1e-15
"""Of a sum of 31 positive floats; the largest that was measured is 6.3e-16, in 5,000 random rows."""


def test_weights_are_the_sum():
    rng = np.random.default_rng(1)
    counters = rng.integers(0, 10**6, (50, 31), dtype=np.uint64)
    expected = [float(sum(Fraction(count, 4**m) for m, count in enumerate(row))) for row in counters.tolist()]
    assert Pathways().weights(counters) == pytest.approx(expected, rel=ROUNDING)


def test_columns_of_zeros_do_not_change_a_weight():
    counters = np.random.default_rng(2).integers(0, 10**6, (50, 31), dtype=np.uint64)
    padded = np.pad(counters, ((0, 0), (0, 90)))
    assert Pathways().weights(padded).tolist() == Pathways().weights(counters).tolist()


def test_the_largest_counters_do_not_overflow():
    counters = np.full((1, 3), np.iinfo(np.uint64).max)
    assert Pathways().weights(counters).tolist() == [2.0**64 * (1 + 1 / 4 + 1 / 16)]
