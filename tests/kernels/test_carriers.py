"""Sums over individuals and pairs, against numpy; any number of rows and columns."""

import numba
import numpy as np
import pytest

from hpcvdj.kernels.carriers import products_of_pairs
from hpcvdj.kernels.sums import mixed

SHAPES = [(1, 1), (1, 3), (2, 4), (3, 5), (7, 13), (8, 40), (33, 101)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_sums_and_products(rows, columns):
    rng = np.random.default_rng(rows)
    values, weights = rng.random((rows, columns)), rng.random(columns)
    pairs = np.full((rows, rows), np.nan)
    products_of_pairs(weights, values, pairs)
    np.testing.assert_allclose(pairs, (values * weights) @ values.T, rtol=1e-13)
    assert (pairs == pairs.T).all()
    # Weights of 0 are skipped, no others.
    sets = rng.choice([0.0, 1.0, *rng.random(3)], (5, rows))
    np.testing.assert_allclose(mixed(sets, values), sets @ values, rtol=1e-13)


def test_threads_do_not_change_a_digit():
    rng = np.random.default_rng(1)
    values, weights, sets = rng.random((40, 60)), rng.random(60), rng.random((9, 40))
    found = []
    before = numba.get_num_threads()
    for threads in (1, before):
        numba.set_num_threads(threads)
        pairs = np.empty((40, 40))
        products_of_pairs(weights, values, pairs)
        found.append((pairs, mixed(sets, values)))
    numba.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        assert (one == other).all()
