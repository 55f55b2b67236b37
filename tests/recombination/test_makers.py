"""Which junctions anyone would make: by the definition, junction by junction, with many digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcvdj.recombination.makers import Makers

NAMES = ("pgen_nt", "pgen_aa")
probabilities = st.one_of(st.just(0.0), st.just(float("nan")), st.floats(-14, 0).map(lambda power: 10.0**power))


def by_definition(rows):
    """Of rows of (nt, aa), how many anyone would make, and how many hardly anybody."""
    anyone, hardly = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0)
    with localcontext(prec=60):
        for row in rows:
            for name, p in zip(NAMES, map(Decimal, row), strict=True):
                if not p.is_nan():
                    share = 1 - (-len(rows) * p).exp()
                    anyone[name] += share >= Decimal("0.5")
                    hardly[name] += share < Decimal("0.000001")
    return Makers(len(rows), anyone, hardly)


@given(st.lists(st.tuples(probabilities, probabilities), max_size=40), st.integers(1, 7))
def test_as_defined_whatever_the_parts(rows, size):
    values = np.array(rows, dtype=np.float64).reshape(len(rows), 2).T
    parts = [values[:, first : first + size] for first in range(0, max(1, len(rows)), size)]
    assert Makers.of(NAMES, parts) == by_definition(rows)


@pytest.mark.parametrize("number", [1, 10, 100_000])
def test_where_the_bounds_are(number):
    """Just above ln 2 / n anyone makes a junction, and just below 10^-6 / n hardly anybody."""
    others = np.full((1, number - 1), 1e-2 / number)
    for p, anyone, hardly in ((0.6932, 1, 0), (0.6931, 0, 0), (1.1e-6, 0, 0), (0.9e-6, 0, 1), (0.0, 0, 1)):
        found = Makers.of(NAMES[:1], [others, np.array([[p / number]])])
        assert (found.anyone["pgen_nt"], found.hardly_anybody["pgen_nt"]) == (anyone, hardly)


def test_tables_are_added_each_at_its_own_depth():
    """0.07 is enough among ten junctions, and not among two."""
    deep, shallow = (Makers.of(NAMES[:1], [np.full((1, number), 0.07)]) for number in (10, 2))
    assert deep + shallow == Makers(12, {"pgen_nt": 10}, {"pgen_nt": 0})
    assert list((deep + shallow).summary()) == ["anyone", "hardly"]


def test_nothing_is_said_without_a_productive_junction():
    assert Makers.of(NAMES, [np.zeros((2, 0))]).summary() == {}
