"""Models to draw from, and how often what was drawn is what the model says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from scipy.stats import chi2

from hpcvdj.kernels.generation.draw_cpu import Sampler
from hpcvdj.kernels.generation.tables import DrawTables
from hpcvdj.recombination.models import Model
from tests.kernels.pgen.problems import OLGA_MODELS, olga_model, small_model
from tests.recombination.test_productive import small

LEAST = 1e-6
"""A fair sampler has a smaller chi-square probability in one of a million tests; there are some hundred, all with fixed
seeds."""

MODELS = {
    "VDJ": lambda: small_model(1),
    "VJ": lambda: small_model(2, has_d=False),
    **{f"many zeros {seed}": lambda seed=seed: small(seed, has_d=seed % 2 == 0) for seed in range(4)},
}
"""Small models, by name."""

NAMES = (*MODELS, *OLGA_MODELS)


@cache
def model_of(name: str) -> Model | None:
    """A model of MODELS, or of an installed olga; None without it."""
    return MODELS[name]() if name in MODELS else olga_model(name)


def same(drawn, other) -> bool:
    """Whether two `Drawn` have the same bits."""
    return all(
        getattr(drawn, part).tobytes() == getattr(other, part).tobytes() for part in ("words", "lengths", "events")
    )


def drawn_of(model: Model, first: int, count: int, seed: int):
    """What the CPU kernel draws."""
    return Sampler(DrawTables.of(model))(first, count, seed)


def chi_square(observed: Mapping, expected: Mapping) -> float:
    """The probability of counts that are no closer to the expected ones; those below 5 are taken together.

    0 if something was observed that is impossible.
    """
    total, weight = sum(observed.values()), sum(expected.values())
    if any(expected.get(key, 0.0) == 0 for key in observed):
        return 0.0
    keys = [key for key, chance in expected.items() if chance > 0]
    found = np.array([observed.get(key, 0) for key in keys], dtype=float)
    wanted = np.array([expected[key] for key in keys]) * total / weight
    few = wanted < 5
    found, wanted = (np.append(own[~few], own[few].sum()) for own in (found, wanted))
    kept = wanted > 0
    if kept.sum() < 2:
        return 1.0
    return float(chi2.sf(((found - wanted)[kept] ** 2 / wanted[kept]).sum(), kept.sum() - 1))
