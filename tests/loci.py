"""The loci of which statistics are tested: human and mouse, with and without D genes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

LOCI = ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb")
"""Models of `olga`."""


def exhaustive_but(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Values of a parameter, such as loci, of which all but some are exhaustive."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.exhaustive) for value in values]
