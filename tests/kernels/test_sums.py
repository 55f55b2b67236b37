"""hpcvdj.kernels.sums: sums that pass 64 bits, and which rows have any counter."""

import numpy as np
import pytest

from hpcvdj.kernels.sums import exact_column_sums


def test_sums_past_64_bits():
    counters = np.full((5, 2), 2**64 - 1, dtype=np.uint64)
    counters[:, 1] = 2**32
    assert exact_column_sums(counters) == [5 * (2**64 - 1), 5 * 2**32]


@pytest.mark.parametrize("rows", [0, 1, 32_767, 32_769, 400_000])
def test_sums_and_rows_nonzero(rows):
    counters = np.random.default_rng(rows).integers(0, 3, (rows, 3)).astype(np.uint64) // np.uint64(2)
    before = np.zeros(rows, dtype=bool)
    before[:1] = True
    nonzero = before.copy()
    assert exact_column_sums(counters, nonzero) == counters.sum(axis=0).tolist()
    assert np.array_equal(nonzero, counters.any(axis=1) | before)


def test_a_column_of_a_wider_array():
    counters = np.arange(12, dtype=np.uint64).reshape(4, 3)
    assert exact_column_sums(counters[:, -1:]) == [2 + 5 + 8 + 11]
