"""A small model with a selection factor, and what it draws."""

import pytest

import hpcvdj
from tests.selected import few_genes, with_factor

WEIGHTS = {"V_length:TRBV9:14": 0.7, "left:4:G": 0.5, "J_length:TRBJ2-7:15": -0.6}


@pytest.fixture(scope="module")
def model():
    return with_factor(few_genes(), WEIGHTS)


@pytest.fixture(scope="module")
def drawn(model):
    return hpcvdj.generate(model, 12_000, seed=3, selection=True, backend="cpu")
