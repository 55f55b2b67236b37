"""The cohort of `tests.association.cohort`, and the answer to it."""

import numpy as np
import pytest

from hpcvdj.recombination.igor import load_model
from tests.association.cohort import CASE, SIZES, asked
from tests.association.drawn import Pool


@pytest.fixture(scope="session")
def model():
    return load_model("human_igk")


@pytest.fixture(scope="session")
def pool(model):
    return Pool(model, 40_000, seed=5)


@pytest.fixture(scope="session")
def planted(pool):
    some = np.flatnonzero((pool.numbers >= 10) & (pool.numbers <= 16))
    return {int(own): 60.0 for own in some[:8]}


@pytest.fixture(scope="session")
def tables(pool, planted):
    return pool.donors(SIZES, CASE, planted)


@pytest.fixture(scope="session")
def answer(tables, model):
    return asked(tables, model, strata=("lane",))
