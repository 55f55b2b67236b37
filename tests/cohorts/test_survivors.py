"""hpcvdj.cohorts.survivors: q and the recombinations of individuals where few sequences are frequent."""

from types import SimpleNamespace

import numpy as np
import pytest

from hpcvdj.chance.depth import Draws
from hpcvdj.cohorts import survivors


def fitted(sequences, exponent, truth, seed, fixed_q=None):
    """q of three individuals of 20,000 recombinations, and the recombinations that are found of each."""
    rng = np.random.default_rng(seed)
    p = np.arange(1.0, sequences + 1) ** -exponent
    p /= p.sum()
    alive = p * (rng.random(sequences) < truth)
    has = np.array([rng.multinomial(20_000, alive / alive.sum()) > 0 for _ in range(3)])
    drawn = rng.choice(sequences, 200_000, p=p)
    draws = Draws(np.log(p[drawn]), np.full(len(drawn), 1 / len(drawn)))
    cohort = SimpleNamespace(sizes=has.sum(axis=1), names=["a", "b", "c"])
    observed = np.bincount(has.sum(axis=0), minlength=4)
    return survivors.fitted_share(observed, np.ones(3, dtype=bool), draws, survivors.Depth(cohort, draws), fixed_q)


CASES = pytest.mark.parametrize(("sequences", "exponent"), [(20_000, 0.8), (20_000, 1.0), (100_000, 1.0)])


@pytest.mark.parametrize("seed", [1, 2])
@CASES
def test_no_selection_is_found_where_there_is_none(sequences, exponent, seed):
    """With the recombinations of the step before, q ran away to 0.35 in two of these six."""
    q, at_bound, sizes = fitted(sequences, exponent, 1.0, seed)
    # Of 12 seeds of each, q is 0.94 to 1, and the recombinations are off by 3 % at most.
    assert 0.9 < q <= 1
    assert at_bound == (q == 1)
    assert sizes == pytest.approx(np.full(3, 20_000), rel=0.05)


@pytest.mark.parametrize("seed", [1, 2])
@CASES
def test_selection_is_found(sequences, exponent, seed):
    """With the recombinations of the step before, q was 1 in four of these six."""
    q, at_bound, sizes = fitted(sequences, exponent, 0.5, seed)
    # Of 12 seeds of each, q is 0.480 to 0.515, and the recombinations are off by 27 % at most: the most frequent
    # sequences may survive, or not.
    assert q == pytest.approx(0.5, abs=0.03)
    assert not at_bound
    assert sizes == pytest.approx(np.full(3, 20_000), rel=0.35)


def test_a_given_share_is_kept(caplog):
    q, at_bound, sizes = fitted(20_000, 1.0, 0.5, 1, fixed_q=0.25)
    assert (q, at_bound) == (0.25, False)
    assert (sizes > fitted(20_000, 1.0, 0.5, 1)[2]).all()
    assert not caplog.messages


def test_what_does_not_settle_is_said(caplog, monkeypatch):
    monkeypatch.setattr(survivors, "MOST_STEPS", 1)
    fitted(20_000, 1.0, 0.5, 1)
    assert "the share of survivors is not settled: 1, then 0." in caplog.text
