"""hpcvdj.cohorts.survivors: q and the recombinations of individuals where few sequences are frequent."""

from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

import hpcvdj
from hpcvdj.chance.depth import Draws
from hpcvdj.cohorts import survivors
from hpcvdj.cohorts.expected import Lots, Numbers, bootstrapped, lots_of, share_interval
from hpcvdj.cohorts.ranking import Z
from tests.loci import LOCI, exhaustive_but


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


@pytest.mark.slow_others("sequences", "exponent")
@pytest.mark.parametrize("seed", [1, 2])
@CASES
def test_no_selection_is_found_where_there_is_none(sequences, exponent, seed):
    """With the recombinations of the step before, q ran away to 0.35 in two of these six."""
    q, at_bound, sizes = fitted(sequences, exponent, 1.0, seed)
    # Of 12 seeds of each, q is 0.94 to 1, and the recombinations are off by 3 % at most.
    assert 0.9 < q <= 1
    assert at_bound == (q == 1)
    assert sizes == pytest.approx(np.full(3, 20_000), rel=0.05)


@pytest.mark.slow_others("sequences", "exponent")
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


def share_and_interval(seed, truth, variants):
    """The share of recombinations that survive, q, its interval, and that without lots; of three individuals."""
    rng = np.random.default_rng(seed)
    p = np.arange(1.0, 20_001) ** -0.8
    p /= p.sum()
    # Every `variants` sequences have the same amino acids.
    spelled = rng.permutation(len(p)) // variants
    alive = p * (rng.random(len(p)) < truth)[spelled]
    has = np.array([rng.multinomial(20_000, alive / alive.sum()) > 0 for _ in range(3)])
    drawn = rng.choice(len(p), 100_000, p=p)
    draws = Draws(np.log(p[drawn]), np.full(len(drawn), 1 / len(drawn)))
    cohort = SimpleNamespace(sizes=has.sum(axis=1), names=["a", "b", "c"])
    observed, depth = np.bincount(has.sum(axis=0), minlength=4), survivors.Depth(cohort, draws)
    q, _, sizes = survivors.fitted_share(observed, np.ones(3, dtype=bool), draws, depth, None)
    numbers, redrawn = Numbers(sizes), bootstrapped(draws, np.log(q), 1)
    lots = lots_of(numbers, draws, draws, spelled[drawn], q, depth.deeper)
    of_lots = [
        share_interval(observed, numbers, draws, q, redrawn, depth.deeper, own) for own in (lots, Lots(0.0, 0.0))
    ]
    return alive.sum(), q, *of_lots


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "variants", "seeds"),
    [(0.5, 1, 12), *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in ((0.5, 4, 40), (0.9, 4, 40)))],
)
def test_the_interval_knows_that_it_matters_which_sequences_survive(truth, variants, seeds):
    """As in IGK, a few sequences make much of all recombinations: without lots, 5 of 12 intervals had the share."""
    found = [share_and_interval(seed, truth, variants) for seed in range(seeds)]
    has, without = (sum(own[k][0] <= own[0] <= own[k][1] for own in found) for k in (2, 3))
    assert has >= 0.85 * seeds
    assert truth > 0.5 or without < 0.7 * seeds
    half = np.median([np.log(high / low) for *_, (low, high), _ in found]) / 2
    assert np.std([np.log(q / share) for share, q, *_ in found]) < 1.3 * half / 1.96


@pytest.mark.parametrize("squares", [0.002, 0.01, 0.05])
def test_the_interval_ends_where_lots_do_first(squares):
    """A tiny share, which lots could make as well, is not its end: with 0.01, 0.001 was."""
    observed, numbers = np.array([0, 30_000, 3_000, 300]), Numbers(np.full(3, 20_000.0))
    p = np.arange(1.0, 20_001) ** -0.8
    p /= p.sum()
    draws = Draws(np.log(p), p)
    redrawn = bootstrapped(draws, np.log(0.4), 1)
    given = observed, numbers, draws, 0.4, redrawn, lambda _: 0.0
    low, high = share_interval(*given, Lots(squares, 0.0))
    least, most = share_interval(*given, Lots(0.0, 0.0))
    for end, likely in ((low, np.log(least / 0.4)), (high, np.log(most / 0.4))):
        assert np.log(end / 0.4) ** 2 == pytest.approx(likely**2 + Z**2 * (1 / end - 1) * squares, rel=1e-6)
    assert 0.05 < low < least
    assert most < high < 1


def test_a_given_share_is_kept(caplog):
    q, at_bound, sizes = fitted(20_000, 1.0, 0.5, 1, fixed_q=0.25)
    assert (q, at_bound) == (0.25, False)
    assert (sizes > fitted(20_000, 1.0, 0.5, 1)[2]).all()
    assert not caplog.messages


def test_what_does_not_settle_is_said(caplog, monkeypatch):
    monkeypatch.setattr(survivors, "MOST_STEPS", 1)
    fitted(20_000, 1.0, 0.5, 1)
    assert "the share of survivors is not settled: 1, then 0." in caplog.text


@pytest.mark.olga
@pytest.mark.slow
@pytest.mark.parametrize("truth", [1.0, 0.5])
@pytest.mark.parametrize("name", exhaustive_but([*LOCI, "human_igl", "mouse_igk"], "human_igk"))
def test_two_individuals(name, truth):
    """Two q explain how much two people share of light chains: q was 0.003 in place of 1."""
    tables = {}
    for k in range(2):
        rows = hpcvdj.generate(name, int(6_000 / truth), seed=500 + k, productive=True, backend="cpu")
        survive = [crc32(f"0{text}".encode()) % 1_000 < 1_000 * truth for text in rows["junction_aa"].to_pylist()]
        tables[f"p{k}"] = rows.filter(pa.array(survive))
    found = hpcvdj.sharing(tables, name, backend="cpu")
    low, high = found.q_interval
    assert low <= truth <= high
    # In 4 pairs of each locus and share, the number in one individual was off by 6.2 % at most.
    assert found.expected[1] == pytest.approx(found.observed[1], rel=0.1)
    assert found.observed[2] < 500 or low > 0.05
