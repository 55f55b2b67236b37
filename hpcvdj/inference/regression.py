"""Logistic regression of real against generated junctions, which infers selection.

An individual with n recombinations has a junction of probability p and factor Q with the probability 1 - exp(-n p Q).
A real junction is one of the individuals; a generated junction is one of individuals without selection.  The odds that
a junction is real are, up to a known constant,

    Σ (1 - exp(-n p Q)) / Σ (1 - exp(-n p))     (sums over individuals)

This is Q for an improbable junction; it is 1 for a junction that all individuals have, which says nothing about Q.  ln
Q is a sum of weights of features.  Newton's method maximises the logistic likelihood of the odds, less a penalty.  One
thread takes all sums in a fixed order, so the weights have the same digits everywhere.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.depth import Holders
from hpcvdj.chance.p_values import Floats
from hpcvdj.errors import log

RIDGES = tuple(4.0**power for power in range(9, -4, -1))
"""The penalty is half of one of these times the sum of the squared weights: from almost no factor to weights of 1."""

_TOLERANCE = 0.1
"""A step that gains fewer nats of the log-likelihood of all junctions is the last one."""

_RESIDUAL = 0.1
"""The factor by which the squared residual of the equations of a step must fall."""

_WORSE = 1.0
"""Smaller penalties are not tried after one that is worse than the best by more nats than this."""

_MOST_STEPS, _MOST_EQUATION_STEPS, _MOST_HALVINGS = 100, 1000, 30


@dataclass(frozen=True)
class Regression:
    """Junctions with their features.

    matrix     sparse [junctions, features], of zeros and ones; all junctions have the first feature
    real       bool [junctions]: whether each junction is real, not generated
    times      float64 [junctions]: how often each junction counts
    log_p      float64 [junctions]: natural logarithm of the probability among productive recombinations
    holders    the expected numbers of individuals that have a junction
    log_ratio  natural logarithm of the expected ratio of real to generated junctions where Q is 1
    """

    matrix: Any
    real: NDArray[np.bool_]
    times: Floats
    log_p: Floats
    holders: Holders
    log_ratio: float

    def take(self, rows: NDArray[Any]) -> "Regression":
        """Select junctions by their indices, or by whether each is chosen."""
        return replace(
            self, matrix=self.matrix[rows], real=self.real[rows], times=self.times[rows], log_p=self.log_p[rows]
        )

    @cached_property
    def _without(self) -> Floats:
        return self.holders.expected(self.log_p)[0]

    def _log_odds(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the log-odds, and their derivatives with respect to ln Q."""
        log_number, slope = self.holders.expected(self.log_p + self.matrix @ weights)
        return self.log_ratio + log_number - self._without, slope

    def loss(self, weights: Floats) -> float:
        """Return the negative log-likelihood."""
        log_odds = self._log_odds(weights)[0]
        return float((self.times * np.logaddexp(0.0, np.where(self.real, -log_odds, log_odds))).sum())

    def fitted(self, ridge: float, weights: Floats) -> Floats:
        """Return the most likely weights under a penalty; the search starts from `weights`."""
        penalty = np.full(len(weights), ridge)
        penalty[0] = 0.0
        value = self._objective(weights, penalty)
        for _ in range(_MOST_STEPS):
            before, step = value, self._newton_step(weights, penalty)
            for _ in range(_MOST_HALVINGS):
                value = self._objective(weights + step, penalty)
                if value <= before:
                    break
                step /= 2
            else:
                return weights
            weights = weights + step
            if before - value < _TOLERANCE:
                return weights
        log.warning("the regression stopped after %d steps, before it converged", _MOST_STEPS)
        return weights

    def _objective(self, weights: Floats, penalty: Floats) -> float:
        return self.loss(weights) + float((penalty * weights * weights).sum()) / 2

    def _newton_step(self, weights: Floats, penalty: Floats) -> Floats:
        """Solve for the step of Newton's method, with the expected curvature, by conjugate gradients."""
        log_odds, slope = self._log_odds(weights)
        chance = 1 / (1 + np.exp(-log_odds))
        left = self.matrix.T @ (self.times * slope * (self.real - chance)) - penalty * weights
        curvature = self.times * slope * slope * chance * (1 - chance)
        # The values are zeros and ones, which are their squares; a feature without curvature must not divide by 0.
        diagonal = np.maximum(self.matrix.T @ curvature + penalty, 1e-9)
        step, scaled = np.zeros_like(weights), left / diagonal
        direction, size = scaled, float((left * scaled).sum())
        enough = _RESIDUAL * size
        for _ in range(_MOST_EQUATION_STEPS):
            if size <= enough:
                break
            image = self.matrix.T @ (curvature * (self.matrix @ direction)) + penalty * direction
            length = size / float((direction * image).sum())
            step, left = step + length * direction, left - length * image
            scaled = left / diagonal
            size, before = float((left * scaled).sum()), size
            direction = scaled + size / before * direction
        return step


def fit(rows: Regression, judging: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Return the weights of all junctions, and their penalty.

    judging  bool [junctions]: the penalty is the one with which weights of the other junctions fit these best
    """
    inferring, judge = rows.take(~judging), rows.take(judging)
    weights = np.zeros(rows.matrix.shape[1])
    tried: list[tuple[float, float, Floats]] = []
    for ridge in RIDGES:
        weights = inferring.fitted(ridge, weights)
        tried.append((judge.loss(weights), ridge, weights))
        best, ridge_of_best, start = min(tried, key=lambda trial: trial[0])
        # Smaller penalties would overfit still more.
        if tried[-1][0] > best + _WORSE:
            break
    return rows.fitted(ridge_of_best, start), ridge_of_best
