"""The M step, starting points and long steps of inference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hpcvdj.errors import InputError
from hpcvdj.inference.parameters import (
    PARAMETERS,
    extrapolated,
    free_parameters,
    log_prior,
    maximised,
    mixed,
    most_likely_steps,
    normalised,
    pairs_of,
    parameter_names,
    parameters,
    uniform,
    with_fixed,
    with_parameters,
)
from hpcvdj.inference.settings import Start
from hpcvdj.inference.start import started
from hpcvdj.kernels.inference.layout import Expected
from hpcvdj.recombination.models import Model, stationary
from tests.kernels.pgen.models import random_model

seeds = st.integers(0, 10**6)

EVERY = frozenset(PARAMETERS)


def inferable(seed: int, has_d: bool) -> Model:
    """A random model with the first bases that files give it, and alleles of all functions."""
    model, rng = random_model(seed, has_d), np.random.default_rng([seed, 2])
    v, j = (
        tuple(replace(own, function=str(rng.choice(["F", "(F)", "ORF", "P"]))) for own in templates)
        for templates in (model.v, model.j)
    )
    return mixed(replace(model, v=v, j=j), 0.0)


def random_counts(model: Model, rng: np.random.Generator, zeros: float = 0.4) -> Expected:
    """Counts of what can be, many of them 0."""

    def of(chances: np.ndarray) -> np.ndarray:
        return 20 * rng.random(chances.shape) * (rng.random(chances.shape) >= zeros) * (chances > 0)

    choices = model.p_v if model.has_d else model.p_vj
    arrays = [choices, model.p_dj, model.v_deletions, model.j_deletions, model.d_deletions]
    lists = [[getattr(own, name) for own in model.insertions] for name in ("lengths", "first", "transitions")]
    counts = [of(own) for own in arrays]
    return Expected(*counts, *(tuple(map(of, own)) for own in lists), 0.0, 0, 0.0, 0)


def sums(model: Model) -> list[np.ndarray]:
    """Of each distribution of each array in the order of `parameters`."""
    number = len(model.insertions)
    axes: list[Any] = [None, None, None, 1, (1, 2), 1, None, *[None] * number, *[0] * number]
    return [np.asarray(own.sum(axis=axis)) for own, axis in zip(parameters(model), axes, strict=True)]


def require_distributions(model: Model, before: Model) -> None:
    """No negative number; each distribution adds up to 1, or is all zeros as before; so do first bases."""
    for own, total, old in zip(parameters(model), sums(model), sums(before), strict=True):
        assert (own >= 0).all()
        if own.size:
            np.testing.assert_allclose(total, old > 0, rtol=1e-14)
    for own in model.insertions:
        np.testing.assert_allclose(own.transitions @ own.first, own.first, atol=1e-14)
        assert own.first.sum() == pytest.approx(1, rel=1e-14)


def of_parameter(model: Model, name: str) -> list[np.ndarray]:
    """The probabilities that a parameter names, as far as others do not change them."""
    chains = dict(zip(map(str.lower, model.named_insertions), model.insertions, strict=True))
    chain = chains.get(name.partition("_")[0])
    if name.endswith("_ins"):
        return [chain.lengths]
    if name.endswith("_dinucl"):
        return [chain.transitions, chain.first]
    if name.endswith("_del"):
        return [{"v": model.v_deletions, "d": model.d_deletions, "j": model.j_deletions}[name[0]]]
    if name == "v_choice":
        return [model.p_segment("V")]
    own = model.p_dj if model.has_d else model.p_vj
    if name == "j_choice" and model.has_d:
        return [model.p_segment("J")]
    # P(D | J), or P(J | V): a condition without probability has none.
    axis = 0 if model.has_d else 1
    total = own.sum(axis=axis, keepdims=True)
    return [own / np.where(total > 0, total, 1)]


def require_kept(model: Model, before: Model, free: frozenset[str], rounding: float = 1e-14) -> None:
    """Parameters that are not free are those of `before`: to the bit, or within `rounding` if a free one shares their
    array.
    """
    for name in parameter_names(model):
        if name in free:
            continue
        shared = ("d_gene", "j_choice") if model.has_d else ("v_choice", "j_choice")
        exact, axis = name not in shared or not free & set(shared), 0 if model.has_d else 1
        for own, old in zip(of_parameter(model, name), of_parameter(before, name), strict=True):
            if exact:
                assert np.array_equal(own, old), name
            else:
                # An allele that has no probability, before or now, has no distribution of others.
                known = own.ndim == 1 or (own.any(axis=axis, keepdims=True) & old.any(axis=axis, keepdims=True))
                np.testing.assert_allclose(np.where(known, own, 0), np.where(known, old, 0), rtol=rounding, atol=0)


def selections(model: Model) -> list[frozenset[str]]:
    """All parameters free, each fixed alone, and each inferred alone."""
    names = parameter_names(model)
    return [EVERY, *(free_parameters(model, (), (name,)) for name in names),
            *(free_parameters(model, (name,)) for name in names)]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=5, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans(), prior=st.sampled_from([0.0, 0.5]))
def test_the_m_step_gives_distributions_and_leaves_what_is_fixed(seed, has_d, prior):
    model = inferable(seed, has_d)
    expected = random_counts(model, np.random.default_rng(seed))
    for free in selections(model):
        found = maximised(model, expected, free, prior)
        require_distributions(found, model)
        require_kept(found, model, free)


def complete_log_likelihood(model: Model, expected: Expected, prior: float, added: np.ndarray | None = None) -> float:
    """Of the counts as if they had been seen: what an M step makes larger."""
    choices = [(expected.choices, model.p_v), (expected.dj, model.p_dj)]
    pairs = choices if model.has_d else [(expected.choices, model.p_vj)]
    pairs += [(expected.v, model.v_deletions), (expected.j, model.j_deletions), (expected.d, model.d_deletions)]
    for own, lengths, first, steps in zip(
        model.insertions, expected.lengths, expected.first, expected.transitions, strict=True
    ):
        pairs += [(lengths, own.lengths), (first, own.first), (steps, own.transitions)]
    total = sum(float(counts[counts > 0] @ np.log(np.maximum(own[counts > 0], 1e-300))) for counts, own in pairs)
    return total + log_prior(model, prior, added)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans(), prior=st.sampled_from([0.0, 0.5]))
def test_no_other_model_near_the_m_steps_is_more_likely(seed, has_d, prior):
    """But for the steps from base to base: see below; without a prior of J and V that are chosen together."""
    model, rng = inferable(seed, has_d), np.random.default_rng(seed)
    prior = prior if has_d else 0.0
    expected = random_counts(model, rng)
    added = pairs_of(model, expected)
    assert (added is None) == has_d
    found = maximised(model, expected, EVERY, prior, added)
    best = complete_log_likelihood(found, expected, prior, added)
    assert best >= complete_log_likelihood(model, expected, prior, added) - 1e-12 * abs(best)
    number = len(model.insertions)
    for _ in range(5):
        values = parameters(found)
        others = [own * np.exp(0.01 * rng.standard_normal(own.shape)) for own in values[:-number]]
        changed = normalised([*others, *values[-number:]], found)
        other = with_parameters(found, changed)
        assert complete_log_likelihood(other, expected, prior, added) <= best + 1e-12 * abs(best)


def test_pairs_without_rows_keep_the_share_of_the_start():
    """As if there were ten rows more of each V allele, whose J are as common as in the start and among the rows."""
    start = inferable(3, False)
    counts = random_counts(start, np.random.default_rng(3))
    v = int(np.argmax(start.p_vj.sum(axis=1)))
    added = pairs_of(start, counts)
    wanted = start.p_vj[v] / start.p_vj.sum(axis=0).clip(1e-300) * counts.choices.sum(axis=0)
    assert added[v] == pytest.approx(10 * wanted / wanted.sum())
    assert not added[:, counts.choices.sum(axis=0) == 0].any(), "a J allele without rows gets none"
    choices = np.zeros_like(counts.choices)
    first, *others = np.flatnonzero(added[v])
    choices[v, first] = 30
    found = start
    for _ in range(20):
        found = maximised(found, replace(counts, choices=choices), EVERY, 0.0, added)
    assert found.p_vj[v].sum() == pytest.approx(1), "they are no rows of V"
    assert found.p_vj[v, others] == pytest.approx(added[v, others] / 40)
    # Without these rows, they are gone.
    assert not maximised(start, replace(counts, choices=choices), EVERY).p_vj[v, others].any()


def steps_value(steps_found: np.ndarray, first: np.ndarray, steps: np.ndarray) -> float:
    chances = np.concatenate((steps_found.ravel(), stationary(steps_found)))
    counts = np.concatenate((steps.ravel(), first))
    return float(counts[counts > 0] @ np.log(np.maximum(chances[counts > 0], 1e-300)))


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=seeds, zeros=st.sampled_from([0.0, 0.3, 0.7]), scale=st.sampled_from([1e-3, 1.0, 1e5]))
def test_most_likely_steps_are_never_worse(seed, zeros, scale):
    rng = np.random.default_rng(seed)
    before = np.array([rng.dirichlet(np.full(4, rng.choice([0.2, 1.0, 5.0]))) for _ in range(4)]).T
    before[rng.random((4, 4)) < zeros / 2] = 0
    before = before + np.eye(4) * (before.sum(axis=0) == 0)
    before /= before.sum(axis=0)
    first = scale * rng.random(4) * (rng.random(4) >= zeros)
    steps = scale * rng.random((4, 4)) * (rng.random((4, 4)) >= zeros) * (before > 0)
    first *= stationary(before) > 0
    found = most_likely_steps(before, first, steps)
    assert (found >= 0).all()
    assert not found[before == 0].any()
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-14)
    old = steps_value(before, first, steps)
    assert steps_value(found, first, steps) >= old - 1e-12 * abs(old)


GAP = 1e-8
"""Nats for each first base: how much a fine search finds above the steps' fixed point; 1e-10 was measured."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3))
def test_most_likely_steps_end_at_the_best_of_a_fine_search(seed):
    """Counts of many insertions of a chain."""
    rng = np.random.default_rng(seed)
    chain = np.array([rng.dirichlet(np.ones(4)) for _ in range(4)]).T
    number, at = 100_000, stationary(chain)
    first = rng.multinomial(number, at).astype(float)
    steps = np.array([rng.multinomial(int(number * at[k]), chain[:, k]) for k in range(4)]).T.astype(float)
    found = np.full((4, 4), 0.25)
    for _ in range(100):
        found = most_likely_steps(found, first, steps)

    def others(logs: np.ndarray) -> np.ndarray:
        out = found * np.exp(logs.reshape(4, 4))
        return out / out.sum(axis=0)

    best = minimize(lambda logs: -steps_value(others(logs), first, steps) / number, np.zeros(16), method="L-BFGS-B")
    assert -best.fun - steps_value(found, first, steps) / number < GAP


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_starting_points(seed, has_d):
    model = inferable(seed, has_d)
    even = uniform(model)
    for own, total in zip(parameters(even), sums(even), strict=True):
        if own.size:
            np.testing.assert_allclose(total, 1, rtol=1e-14)
        # One value in each distribution, or 0: what an allele does not have cannot be lost.
        of_alleles = own is even.v_deletions or own is even.d_deletions or own is even.j_deletions
        for row in own if of_alleles else [own]:
            assert len(set(row[row > 0].tolist())) <= 1
    for place, template in enumerate(model.v):
        width = min(len(template.extended), model.v_deletions.shape[1])
        assert np.count_nonzero(even.v_deletions[place]) == width
    half = mixed(model, 0.25)
    require_distributions(half, half)
    for own, a, b in zip(parameters(half), parameters(model), parameters(even), strict=True):
        assert (own[(a > 0) | (b > 0)] > 0).all()
        assert not own[(a == 0) & (b == 0)].any()
    np.testing.assert_allclose(half.v_deletions, 0.75 * model.v_deletions + 0.25 * even.v_deletions, rtol=1e-13)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans())
def test_with_fixed_takes_each_parameter_from_its_model(seed, has_d):
    model = inferable(seed, has_d)
    even = uniform(model)
    for free in selections(model):
        found = with_fixed(even, model, free)
        require_kept(found, model, free)
        require_kept(found, even, frozenset(parameter_names(model)) - free)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=seeds, has_d=st.booleans(), longest=st.sampled_from([1.0, 4.0, 1e6]))
def test_a_long_step_continues_three_points(seed, has_d, longest):
    model, rng = inferable(seed, has_d), np.random.default_rng(seed)
    expected = random_counts(model, rng, 0.1)
    points = [model]
    for share in (0.5, 0.8):
        goal = maximised(points[-1], expected, EVERY)
        values = [a + share * (b - a) for a, b in zip(parameters(points[-1]), parameters(goal), strict=True)]
        points.append(with_parameters(model, normalised(values, model)))
    found, step = extrapolated(points, expected, longest)
    assert 1 <= step <= longest
    require_distributions(found, points[0])
    for own, last in zip(parameters(found), parameters(points[2]), strict=True):
        assert np.array_equal(own == 0, last == 0)
        if step == 1:
            # a + 2 (b - a) + (c - 2b + a) of logarithms of up to some tens.
            np.testing.assert_allclose(own, last, rtol=1e-12)


def test_points_that_do_not_change_stay():
    model = inferable(3, True)
    found, step = extrapolated([model] * 3, random_counts(model, np.random.default_rng(1)), 4.0)
    assert step == 1
    for own, before in zip(parameters(found), parameters(model), strict=True):
        np.testing.assert_allclose(own, before, rtol=1e-12)


def test_names_of_parameters():
    vdj, vj = inferable(1, True), inferable(1, False)
    assert parameter_names(vdj) == PARAMETERS[:10]
    assert parameter_names(vj) == ("v_choice", "j_choice", "v_3_del", "j_5_del", "vj_ins", "vj_dinucl")
    with pytest.raises(InputError, match=r"parameter 'd_gene': .* has v_choice, j_choice"):
        free_parameters(vj, ("d_gene",))
    with pytest.raises(InputError, match="nothing to infer"):
        free_parameters(vj, ("v_choice",), ("v_choice",))
    assert free_parameters(vj, (), ("vj_ins",)) == set(parameter_names(vj)) - {"vj_ins"}


@pytest.mark.parametrize("prior", [0.0, 0.5])
@pytest.mark.parametrize("has_d", [True, False])
def test_an_allele_that_cannot_be_takes_nothing_from_the_others(has_d, prior):
    """A functional J (or V) allele with probability 0 that a prior counts."""
    model = next(own for own in (inferable(seed, has_d) for seed in range(100)) if len(own.v) > 1 and len(own.j) > 1)
    model = replace(model, **{side: tuple(replace(t, function="F") for t in getattr(model, side)) for side in "vj"})
    chances = np.ones((len(model.d) if has_d else len(model.v), len(model.j)))
    chances[slice(None) if has_d else 0, 0] = 0
    model = replace(model, **{"p_dj" if has_d else "p_vj": chances / chances.sum()})
    found = maximised(model, random_counts(model, np.random.default_rng(1)), EVERY, prior)
    require_distributions(found, model)


@pytest.mark.parametrize("has_d", [True, False])
@pytest.mark.parametrize("name", ["d_gene", "j_choice", "v_choice"])
def test_a_start_with_a_fixed_parameter_is_a_distribution(has_d, name):
    """An allele with probability 0 has no P(D | J), or P(J | V), that could be fixed."""
    model = next(own for own in (inferable(seed, has_d) for seed in range(100)) if len(own.v) > 1 and len(own.j) > 1)
    chances = np.ones((len(model.d) if has_d else len(model.v), len(model.j)))
    chances[slice(None) if has_d else 0, 0 if has_d else slice(None)] = 0
    model = replace(model, **{"p_dj" if has_d else "p_vj": chances / chances.sum()})
    if name not in parameter_names(model):
        return
    for start in get_args(Start):
        for free in (free_parameters(model, (), (name,)), free_parameters(model, (name,))):
            found = started(model, start, free)
            require_distributions(found, found)
            require_kept(found, model, free)
