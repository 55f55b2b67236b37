"""The search for the most likely model: what is accepted never falls, and a search that was saved goes on the same."""

from __future__ import annotations

import io
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
from hpcvdj.storage.states import digest_of
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
    (unit,) = Expectation().units(own, 0, [])

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
            other, more = search_of(model, rows, **settings).restored(own.saved({"x": np.arange(3)}))
            assert more["x"].tolist() == [0, 1, 2]
            ends[:] = [other]
            return other

        ended(whole, evaluate)
        ended(search_of(model, rows, **settings), evaluate, again)
        (cut,) = ends
        # As text, in which nan is nan.
        assert list(map(repr, cut.trace)) == list(map(repr, whole.trace))
        for a, b in ((cut.best, whole.best), (cut.model, whole.model)):
            assert all(map(np.array_equal, parameters(a), parameters(b)))


def test_a_damaged_state_is_an_input_error():
    model = inferable(2, True)
    evaluate, rows = evaluation(model, 20, 2)
    search = search_of(model, rows)
    search.take(evaluate(search.model), 0.0)
    search.take(evaluate(search.model), 0.0)
    state, rng = search.saved({}), np.random.default_rng(1)
    damaged = [b"", b"PK", state[:-1], state[: len(state) // 2], state[1:], b"\0" * len(state)]
    for _ in range(300):
        changed = bytearray(state)
        for place in rng.integers(0, len(state), rng.integers(1, 4)):
            changed[place] ^= int(rng.integers(1, 256))
        damaged.append(bytes(changed))
    refused = 0
    for own in damaged:
        try:
            found, _ = search_of(model, rows).restored(own)
        except InputError:
            refused += 1
        else:
            # Bytes that nothing depends on; texts, since nan is not equal to itself.
            assert repr(found.trace) == repr(search.trace)
            assert all(map(np.array_equal, parameters(found.model), parameters(search.model)))
    assert refused > len(damaged) // 2
    other = next(own for own in (inferable(seed, True) for seed in range(50)) if len(own.v) != len(model.v))
    with pytest.raises(InputError, match="its model is another one"):
        search_of(other, rows).restored(state)


def test_a_state_of_another_run_is_refused():
    model = inferable(2, True)
    evaluate, rows = evaluation(model, 20, 2)
    search = replace(search_of(model, rows), identity={"prior": 2.0})
    search.take(evaluate(search.model), 0.0)
    state = search.saved({})
    assert replace(search_of(model, rows), identity={"prior": 2.0}).restored(state)[0].trace
    with pytest.raises(InputError, match="not those that this run saved"):
        replace(search_of(model, rows), identity={"prior": 0.0}).restored(state)


@pytest.mark.parametrize("changed", ["numbers", "numbers and digest", "error rate and digest", "facts"])
def test_changed_numbers_in_a_valid_state_are_refused(changed):
    model = inferable(2, True)
    evaluate, rows = evaluation(model, 20, 2)
    search = search_of(model, rows)
    search.take(evaluate(search.model), 0.0)
    state = search.saved({})
    with np.load(io.BytesIO(state)) as stored:
        arrays = dict(stored)
    if changed == "facts":
        arrays["meta"] = np.array(str(arrays["meta"]).replace('"waited": 0', '"waited": 1'))
    elif changed == "error rate and digest":
        assert arrays["model/06"].tolist() == errors(model).tolist()
        arrays["model/06"] = np.array([-0.5, 1.5])
    else:
        arrays["model/00"] = 1.456 * arrays["model/00"]
    message = "its values are not those that this run saved"
    if changed.endswith("and digest"):
        del arrays["sha256"]
        arrays["sha256"] = np.array(digest_of(arrays))
        message = "the error rate is -0.5" if changed.startswith("error") else r"P\(V\) adds up to 1.456, not 1"
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    with pytest.raises(InputError, match=rf"damaged \(.*{message}"):
        search_of(model, rows).restored(stream.getvalue())


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
