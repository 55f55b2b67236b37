"""The search for the most likely model: what is accepted never falls, and a search that was saved goes on the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hpcvdj.errors import InputError
from hpcvdj.inference.parameters import (
    PARAMETERS,
    errors,
    free_parameters,
    log_prior,
    parameter_names,
    parameters,
    uniform,
)
from hpcvdj.inference.search import WAIT, Search
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.kernels.inference.expectation_cpu import ExpectationKernel
from hpcvdj.kernels.inference.layout import Expected
from hpcvdj.kernels.inference.method import Expectation
from hpcvdj.recombination.models import Model
from tests.inference.test_parameters import inferable, require_distributions, require_kept
from tests.kernels.inference.test_expectation import problem, random_rows

EVERY = frozenset(PARAMETERS)

Evaluate = Callable[[Model], Expected]


def evaluation(model: Model, number: int, seed: int, *, known: bool = True, held: float = 0.0) -> tuple[Evaluate, int]:
    """What evaluates models on random rows, of which the model makes some; and how many rows are counted."""
    rng = np.random.default_rng([seed, 3])
    rows = random_rows(model, rng, number)
    rows = rows if known else [(text, None, None) for text, _, _ in rows]
    weights = (rng.random(number) >= held).astype(np.uint32)
    own = problem(model, rows, weights)
    kernel = ExpectationKernel(own, 1)
    (unit,) = Expectation().units(own, 0, range(0))

    def evaluate(model: Model) -> Expected:
        kernel.take(model)
        return own.layout.expected(kernel(unit, 0, unit.tasks)[0].copy(), model, own.rows)

    return evaluate, int(weights.sum())


def search_of(model: Model, rows: int, held: int = 0, free: frozenset[str] = EVERY, **changes) -> Search:
    settings = {"iterations": 12, "tolerance": 0.0, **changes}
    return Search(InferenceSettings(**settings), free, rows, held, model)


def ended(search: Search, evaluate: Evaluate, after: Callable[[Search], Search] = lambda own: own) -> list[float]:
    """The objectives of the accepted models; `after` is called after each evaluation."""
    objectives = []
    while not search.done:
        model = search.model
        expected = evaluate(model)
        found = search.take(expected, 0.0)
        require_distributions(model, search.model)
        if found.accepted:
            objectives.append(expected.log_likelihood + log_prior(model, search.settings.prior, search.pairs))
        search = after(search)
    return objectives


ROUNDING = 1e-9
"""Nats by which an accepted objective may fall: counts are rounded to 2^-40 or less, a logarithm's sum to 1e-13."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("prior", [0.0, 0.5])
@pytest.mark.parametrize("has_d", [True, False])
def test_what_is_accepted_never_falls(has_d, prior, known):
    kinds = set()
    for seed in range(6):
        model = inferable(seed, has_d)
        evaluate, rows = evaluation(model, 30, seed, known=known)
        search = search_of(uniform(model) if seed % 2 else model, rows, prior=prior)
        objectives = ended(search, evaluate)
        kinds |= {(found.kind, found.accepted) for found in search.trace}
        falls = np.diff(objectives)
        assert falls.min(initial=0) >= -ROUNDING, (seed, objectives)
    assert {("start", True), ("em", True), ("long", True)} <= kinds


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_d", [True, False])
def test_a_long_step_that_falls_is_taken_back(has_d):
    """The next model is the one of plain EM."""
    taken_back = 0
    for seed in range(10):
        model = inferable(seed, has_d)
        evaluate, rows = evaluation(model, 20, seed)
        search = search_of(uniform(model), rows)
        search.longest = 1e6
        while not search.done:
            fallback, before = search.fallback, search.objective
            found = search.take(evaluate(search.model), 0.0)
            if not found.accepted:
                taken_back += 1
                assert search.model is fallback
                assert (search.kind, search.objective) == ("em", before)
    assert taken_back


@pytest.mark.exhaustive
def test_long_steps_come_back():
    """A search whose limit fell to one step of EM tries longer ones again."""
    model = inferable(0, True)
    evaluate, rows = evaluation(model, 60, 0)
    search, fell = search_of(uniform(model), rows, iterations=40), 0
    while not search.done:
        search.take(evaluate(search.model), 0.0)
        if search.longest == 1.0:
            fell = fell or len(search.trace)
    assert fell
    assert any(found.kind == "long" for found in search.trace[fell:])


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_d", [True, False])
def test_what_is_fixed_stays(has_d):
    """Through long steps, too."""
    for name in parameter_names(inferable(1, has_d)):
        for seed in range(2):
            model = inferable(seed, has_d)
            evaluate, rows = evaluation(model, 30, seed)
            for free in (free_parameters(model, (), (name,)), free_parameters(model, (name,))):
                search = search_of(model, rows, free=free, iterations=7)
                ended(search, evaluate)
                # Joint choices are divided and multiplied in each evaluation.
                require_kept(search.best, model, free, 7e-14)


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_d", [True, False])
def test_saved_and_restored_after_each_evaluation_ends_the_same(has_d):
    for seed in range(4):
        model = inferable(seed, has_d)
        evaluate, rows = evaluation(model, 40, seed, held=0.2)
        settings = {"held": 40 - rows, "prior": 0.5}
        whole, ends = search_of(model, rows, **settings), []

        def again(own: Search, model=model, rows=rows, settings=settings, ends=ends) -> Search:
            other = search_of(model, rows, **settings).restored(*own.saved())
            ends[:] = [other]
            return other

        ended(whole, evaluate)
        ended(search_of(model, rows, **settings), evaluate, again)
        (cut,) = ends
        # As text, in which nan is nan.
        assert list(map(repr, cut.trace)) == list(map(repr, whole.trace))
        for a, b in ((cut.best, whole.best), (cut.model, whole.model)):
            assert all(map(np.array_equal, parameters(a), parameters(b)))


CHANGED = {
    "another error rate": (lambda arrays: arrays.update({"model/06": np.array([-0.5, 1.5])}), "the error rate is -0.5"),
    "another sum": (lambda arrays: arrays.update({"model/00": 1.456 * arrays["model/00"]}), r"P\(V\) adds up to 1.456"),
    "no model": (lambda arrays: [arrays.pop(name) for name in list(arrays) if "model" in name], "it has no model"),
    "other pairs": (lambda arrays: arrays.update(pairs=np.zeros((1, 1))), "its pairs of V and J"),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_state_of_another_search_is_refused(change):
    model = inferable(2, True)
    evaluate, rows = evaluation(model, 20, 2)
    search = search_of(model, rows)
    search.take(evaluate(search.model), 0.0)
    facts, arrays = search.saved()
    assert arrays["model/06"].tolist() == errors(model).tolist()
    CHANGED[change][0](arrays)
    with pytest.raises((InputError, ValueError), match=CHANGED[change][1]):
        search_of(model, rows).restored(facts, arrays)


def test_a_state_of_another_model_is_refused():
    model = inferable(2, True)
    evaluate, rows = evaluation(model, 20, 2)
    search = search_of(model, rows)
    search.take(evaluate(search.model), 0.0)
    other = next(own for own in (inferable(seed, True) for seed in range(50)) if len(own.v) != len(model.v))
    with pytest.raises(ValueError, match="its model is another one"):
        search_of(other, rows).restored(*search.saved())


def test_the_result_is_the_best_of_what_was_held_out():
    """The search ends after so many evaluations without a better one."""
    model = inferable(4, True)
    evaluate, rows = evaluation(model, 40, 4)
    search = search_of(uniform(model), rows, held=10, iterations=100)
    values = [-50.0, -40.0, -30.0, -35.0, -29.0, *[-29.0, -31.0] * 50]
    models = []
    for value in values:
        models.append(search.model)
        expected = replace(evaluate(search.model), held_log_likelihood=value)
        found = search.take(expected, 0.0)
        assert found.accepted
        assert found.held_out == value / 10
        if search.done:
            break
    assert len(models) == 5 + WAIT
    assert search.best is models[4]


def test_without_rows_held_out_the_last_model_is_the_result():
    model = inferable(4, True)
    evaluate, rows = evaluation(model, 40, 4)
    search, models = search_of(uniform(model), rows, iterations=6), []
    while not search.done:
        models.append(search.model)
        search.take(evaluate(search.model), 0.0)
    accepted = [model for model, found in zip(models, search.trace, strict=True) if found.accepted]
    assert search.best is accepted[-1]
    assert len(search.trace) == 6


def test_a_small_gain_ends_the_search():
    model = inferable(4, True)
    evaluate, rows = evaluation(model, 40, 4)
    search = search_of(uniform(model), rows, iterations=500, tolerance=1e-3)
    objectives = ended(search, evaluate)
    assert objectives[-1] - objectives[-2] < 1e-3 * rows
    assert (np.diff(objectives[:-1]) >= 1e-3 * rows).all()
