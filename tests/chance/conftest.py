"""Comparisons of models and tables with as many draws as users have."""

import pytest

from hpcvdj.chance import check
from hpcvdj.recombination.igor import load_model


@pytest.fixture(scope="module", autouse=True)
def all_draws():
    fewer, check.DRAWN = check.DRAWN, 200_000
    yield
    check.DRAWN = fewer


@pytest.fixture(scope="session")
def model():
    return load_model("human_trb_m15")
