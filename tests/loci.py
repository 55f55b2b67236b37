"""The loci of which statistics are tested: human and mouse, with and without D genes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

LOCI = ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb")
"""Models of `olga`."""


def slow_but(loci: Iterable[str], *quick: str) -> list:
    """The loci as parameters, of which all but some are slow."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in loci]
