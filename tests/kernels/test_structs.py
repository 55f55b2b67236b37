"""hpcvdj.kernels.structs: the types of fields, however Python spells the annotation of an array."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hpcvdj.kernels.structs import element


@pytest.mark.parametrize("hint", [NDArray[np.uint16], np.ndarray[tuple[Any, ...], np.dtype[np.uint16]]])
def test_elements_of_an_array(hint):
    assert element(hint) is np.uint16


def test_an_integer_has_no_elements():
    assert element(int) is None


def test_the_alias_of_newer_versions(monkeypatch):
    """From Python 3.12 on, the only argument of `NDArray[np.uint16]` is `np.uint16`."""
    monkeypatch.setattr("hpcvdj.kernels.structs.get_args", lambda hint: (np.uint16,) if hint == "alias" else ())
    assert element("alias") is np.uint16
