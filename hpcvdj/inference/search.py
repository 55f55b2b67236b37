"""The search for the most likely model: it chooses the model that is evaluated next, and the result.

The search is expectation-maximisation with squared extrapolation: two steps of EM, then a long step that continues
them.  A long step to a less likely model is not accepted, so the likelihood of accepted models never falls.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hpcvdj.inference.parameters import (
    extrapolated,
    log_prior,
    maximised,
    pairs_of,
    parameters,
    with_fixed,
    with_parameters,
)
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.kernels.inference.layout import LEAST, Expected
from hpcvdj.recombination.models import Array, Model, require_probabilities
from hpcvdj.storage.states import State

LONGEST_STEP = 4.0
"""The limit of the first long step, in steps of EM; a limit that is reached and accepted grows by this factor."""

WAIT = 6
"""The number of evaluations without a better held-out likelihood after which the search ends."""


@dataclass(frozen=True)
class Evaluated:
    """The result of an evaluation.

    iteration       its number, from 1
    kind            start, em or long: how the model was reached
    accepted        whether the search goes on from the model
    log_likelihood  nats per junction that is counted and possible at the start
    held_out        the same for held-out junctions; nan without any
    lost            the number of counted junctions with probability 0
    seconds         the time that it took
    error_rate      of the model; 0 if sequencing errors are not taken into account
    """

    iteration: int
    kind: str
    accepted: bool
    log_likelihood: float
    held_out: float
    lost: int
    seconds: float
    error_rate: float = 0.0


@dataclass
class Search:
    """The state of a search.

    settings    how the search goes on and ends
    free        the parameters that are inferred
    rows, held  the numbers of junctions that are counted and held out
    model       the model that is evaluated next
    kind        how this model was reached
    points      the models of the last steps of EM, for `extrapolated`; two at most
    fallback    the model to go on from if a long step is not accepted
    longest     the limit of a long step
    step        the length of the last long step
    objective   of the last accepted model
    best        the accepted model with the best held-out likelihood, or the last one
    waited      the number of evaluations since the best one
    pairs       as `pairs_of` returns them for the first model; None before it is evaluated
    impossible  the numbers of counted and held-out junctions with probability 0 at the start, which stay impossible
    """

    settings: InferenceSettings
    free: frozenset[str]
    rows: int
    held: int
    model: Model
    kind: str = "start"
    points: list[Model] = field(default_factory=list)
    fallback: Model | None = None
    longest: float = LONGEST_STEP
    step: float = 1.0
    objective: float = -math.inf
    best: Model | None = None
    best_held_out: float = -math.inf
    waited: int = 0
    trace: list[Evaluated] = field(default_factory=list)
    done: bool = False
    pairs: Array | None = None
    impossible: tuple[int, int] = (0, 0)

    @property
    def judged(self) -> bool:
        """Whether held-out junctions decide which model is the best."""
        return self.held > self.impossible[1]

    @property
    def accepted(self) -> list[Evaluated]:
        """The evaluations whose models the search went on from."""
        return [evaluation for evaluation in self.trace if evaluation.accepted]

    def take(self, expected: Expected, seconds: float) -> Evaluated:
        """Take the expected counts of `model`; choose the model that is evaluated next, or end the search."""
        if not self.trace:
            self.impossible = expected.lost, expected.held_lost
            if self.pairs is None:
                self.pairs = pairs_of(self.model, expected)
        counted = _mean(expected.log_likelihood, self.rows, self.impossible[0])
        held_out = _mean(expected.held_log_likelihood, self.held, self.impossible[1])
        evaluation = Evaluated(
            len(self.trace) + 1, self.kind, True, counted, held_out, expected.lost, seconds, self.model.error_rate
        )
        objective = expected.log_likelihood + log_prior(self.model, self.settings.prior, self.pairs)
        gain = (objective - self.objective) / max(1, self.rows)
        if self.kind == "long" and gain < 0:
            assert self.fallback is not None
            evaluation = replace(evaluation, accepted=False)
            self.longest = max(1.0, self.longest / LONGEST_STEP)
            self.model, self.kind = self.fallback, "em"
        else:
            self._accept(evaluation, expected, objective)
        self.trace.append(evaluation)
        small = evaluation.accepted and gain < self.settings.tolerance
        self.done |= small or len(self.trace) >= self.settings.iterations or self.waited >= WAIT
        return evaluation

    def _accept(self, evaluation: Evaluated, expected: Expected, objective: float) -> None:
        self.objective = objective
        if self.kind == "long" and self.step >= self.longest:
            self.longest *= LONGEST_STEP
        if self.judged and not evaluation.held_out > self.best_held_out:
            self.waited += 1
        else:
            self.best, self.best_held_out, self.waited = self.model, evaluation.held_out, 0
        following = maximised(self.model, expected, self.free, self.settings.prior, self.pairs)
        if self.kind == "long":
            self.points = []
        self.points = [*self.points, self.model][-2:]
        self.fallback = None
        if len(self.points) == 2:
            far, self.step = extrapolated([*self.points, following], expected, self.longest)
            # A long step changes joint probabilities, whose factors may be fixed, and rounds the other parameters.
            self.model = with_fixed(far, following, self.free)
            self.kind, self.fallback, self.points = "long", following, []
            if self.step <= 1.0:
                self.model, self.kind = following, "em"
                # Otherwise, a limit that has fallen to a step of EM would never grow again.
                self.longest = max(self.longest, LONGEST_STEP)
        else:
            self.model, self.kind = following, "em"

    def saved(self) -> State:
        """Return the state as facts and arrays, for `restored`."""
        models = {"model": self.model, "fallback": self.fallback, "best": self.best}
        models |= {f"point{k}": point for k, point in enumerate(self.points)}
        arrays = dict[str, Array]()
        if self.pairs is not None:
            arrays["pairs"] = self.pairs
        for name, model in models.items():
            if model is not None:
                arrays |= {f"{name}/{k:02}": values for k, values in enumerate(parameters(model))}
        names = ("kind", "longest", "step", "objective", "best_held_out", "waited", "done", "impossible")
        meta: dict[str, Any] = {name: getattr(self, name) for name in names}
        meta["trace"] = [asdict(evaluation) for evaluation in self.trace]
        return meta, arrays

    def restored(self, meta: dict[str, Any], arrays: Mapping[str, Array]) -> "Search":
        """Return this search, which has not begun, in a state that `saved` returned.

        Raises InputError or one of `MISREAD` if it is the state of another search.
        """
        trace = [Evaluated(**facts) for facts in meta["trace"]]
        model, fallback, best, *points = (
            self._model(arrays, name) for name in ("model", "fallback", "best", "point0", "point1")
        )
        if model is None:
            raise ValueError("it has no model")
        kept = [point for point in points if point is not None]
        pairs = arrays.get("pairs")
        if pairs is not None and (pairs.shape != model.p_vj.shape or not np.isfinite(pairs).all()):
            raise ValueError("its pairs of V and J are of another model")
        meta = {**meta, "trace": trace, "impossible": tuple(meta["impossible"])}
        return replace(self, model=model, fallback=fallback, best=best, points=kept, pairs=pairs, **meta)

    def _model(self, arrays: Mapping[str, Array], name: str) -> Model | None:
        values = [arrays[key] for key in sorted(arrays) if key.startswith(f"{name}/")]
        if not values:
            return None
        if [array.shape for array in values] != [array.shape for array in parameters(self.model)]:
            raise ValueError("its model is another one")
        model = with_parameters(self.model, values)
        require_probabilities(model)
        return model


def _mean(total: float, rows: int, impossible: int) -> float:
    """Return the log-likelihood per row that is possible at the start; nan without any."""
    return (total - impossible * math.log(LEAST)) / (rows - impossible) if rows > impossible else math.nan
