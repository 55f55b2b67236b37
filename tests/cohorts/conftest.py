"""What the tests of cohorts share: junctions that a model makes, of several individuals."""

import pytest

from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.packaged import model_paths
from tests.cohorts.drawn import SIZES, drawn, with_individuals


@pytest.fixture(scope="session")
def model():
    return load_model(model_paths()["human_trb_m15"])


@pytest.fixture(scope="session")
def rows(model):
    return drawn(model, 110_000, 31)


@pytest.fixture(scope="session")
def table(rows):
    return with_individuals(rows, SIZES)
