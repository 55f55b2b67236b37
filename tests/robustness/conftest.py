"""Small results that others are made from."""

import pytest

from tests.conftest import GERMLINE, SMALL
from tests.robustness.processes import ended


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A small result that others are made from."""
    path = tmp_path_factory.mktemp("result") / "o.h5"
    code, err, _ = ended("count", SMALL, "-g", GERMLINE, "-o", path, "--max-n", 4)
    assert code == 0, err
    return path


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "m.h5"
    code, err, _ = ended("motifs", "compare", SMALL, "-o", path, "-k", 8, "-d", 1, "--top", 2)
    assert code == 0, err
    return path
