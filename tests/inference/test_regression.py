"""The regression of real against generated junctions: derivatives, the optimum, and the penalty."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from hpcvdj.chance.depth import Holders
from hpcvdj.inference import regression as module
from hpcvdj.inference.regression import RIDGES, Regression, fit

RECOMBINATIONS = np.array([300.0, 40.0, 0.0])


def small(seed=0, rows=400, features=6, draws=2_000.0):
    """Junctions of any probability, real and generated, with some features each."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((rows, features)) < 0.4).astype(float)
    matrix[:, 0] = 1
    log_p = rng.uniform(-12, -2, rows)
    real = rng.random(rows) < 0.4
    times = rng.integers(1, 4, rows).astype(float)
    return Regression(csr_matrix(matrix), real, times, log_p, Holders.of(RECOMBINATIONS), np.log(340 / draws))


def loss_of(own, weights):
    """The negative log-likelihood by direct sums."""
    q = np.exp(own.matrix @ weights)
    p = np.exp(own.log_p)
    has, has_without = (sum(-np.expm1(-n * p * factor) for n in RECOMBINATIONS) for factor in (q, np.ones_like(q)))
    odds = np.exp(own.log_ratio) * has / has_without
    chance = np.where(own.real, odds, 1) / (1 + odds)
    return -(own.times * np.log(chance)).sum()


def test_the_loss_is_that_of_direct_sums():
    own = small()
    for weights in (np.zeros(6), np.random.default_rng(1).normal(0, 1, 6)):
        # The grid's spacing of 0.02 allows 1e-4 in each logarithm.
        assert own.loss(weights) == pytest.approx(loss_of(own, weights), rel=1e-4)


@pytest.mark.parametrize("ridge", [0.5, 30.0])
def test_the_weights_are_the_most_likely_ones(ridge, monkeypatch):
    monkeypatch.setattr(module, "_TOLERANCE", 1e-9)
    own = small()

    def objective(weights):
        return loss_of(own, weights) + ridge * (weights[1:] ** 2).sum() / 2

    best = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-6})
    for begin in (np.zeros(6), np.full(6, 2.0)):
        found = own.fitted(ridge, begin)
        np.testing.assert_allclose(found, best.x, atol=2e-3)
        assert objective(found) < best.fun + 1e-4


def test_a_smaller_tolerance_takes_more_steps(monkeypatch):
    own = small()
    rough = own.fitted(1.0, np.zeros(6))
    monkeypatch.setattr(module, "_TOLERANCE", 1e-9)
    exact = own.fitted(1.0, np.zeros(6))
    assert 0 <= own.loss(rough) - own.loss(exact) + ((rough[1:] ** 2).sum() - (exact[1:] ** 2).sum()) / 2 < 0.1


def test_a_search_that_does_not_end_says_so(monkeypatch, caplog):
    monkeypatch.setattr(module, "_MOST_STEPS", 1)
    monkeypatch.setattr(module, "_TOLERANCE", 0.0)
    with caplog.at_level(logging.WARNING):
        small().fitted(1.0, np.zeros(6))
    assert "stopped after 1 steps" in caplog.text


def test_features_that_no_junction_has_keep_no_weight():
    own = small()
    matrix = own.matrix.toarray()
    matrix[:, 3] = 0
    found = Regression(csr_matrix(matrix), own.real, own.times, own.log_p, own.holders, own.log_ratio).fitted(
        1.0, np.zeros(6)
    )
    assert found[3] == 0
    assert np.isfinite(found).all()


def cohort(weights, rows, seed):
    """Real and generated junctions as individuals have them; the factor has these weights."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, len(weights) - 1)) < 0.3
    matrix = np.column_stack([np.ones(rows), features])
    log_p = rng.uniform(-9, -3, rows)
    log_q = matrix @ weights
    numbers = [
        sum((rng.random(rows) < -np.expm1(-n * np.exp(log_p + own))).astype(float) for n in RECOMBINATIONS)
        for own in (log_q, np.zeros(rows))
    ]
    rows_of = [np.flatnonzero(own) for own in numbers]
    return Regression(
        csr_matrix(np.concatenate([matrix[own] for own in rows_of])),
        np.repeat([True, False], [len(own) for own in rows_of]),
        np.concatenate([own[at] for own, at in zip(numbers, rows_of, strict=True)]),
        np.concatenate([log_p[at] for at in rows_of]),
        Holders.of(RECOMBINATIONS),
        0.0,
    )


def test_a_factor_is_found_though_many_junctions_are_in_everybody():
    weights = np.array([0.2, 0.8, -0.7, 0.4])
    own = cohort(weights, 60_000, 1)
    found, ridge = fit(own, np.random.default_rng(2).random(len(own.real)) < 0.2)
    assert ridge < 100
    # 40,000 junctions, of which each feature is in a third: standard errors of about 0.02.
    np.testing.assert_allclose(found, weights, atol=0.08)


def test_the_penalty_is_large_without_a_factor():
    own = cohort(np.zeros(30), 4_000, 3)
    found, ridge = fit(own, np.random.default_rng(2).random(len(own.real)) < 0.2)
    assert ridge > 100
    assert np.abs(found[1:]).max() < 0.1
    assert list(RIDGES) == sorted(RIDGES, reverse=True)


def test_the_penalty_is_the_best_for_the_judging_junctions(monkeypatch):
    """Whether all are tried, or smaller ones only until they are worse."""
    own = cohort(np.array([0.0, 0.3, -0.2, 0.2]), 3_000, 5)
    judging = np.random.default_rng(6).random(len(own.real)) < 0.3
    losses = {ridge: own.take(judging).loss(own.take(~judging).fitted(ridge, np.zeros(4))) for ridge in RIDGES}
    _, ridge = fit(own, judging)
    assert losses[ridge] < min(losses.values()) + 0.2
    monkeypatch.setattr(module, "_WORSE", 1e9)
    assert fit(own, judging)[1] == ridge
