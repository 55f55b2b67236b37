"""The search for the most likely model: which model is evaluated next, and which one is the result.

Expectation-maximisation with squared extrapolation: two steps of EM, then a long step that continues them.  A long step
that is less likely than what was before it is taken back, so what is accepted is never less likely.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hpcvdj.errors import InputError, option
from hpcvdj.inference.parameters import extrapolated, log_prior, maximised, parameters, with_fixed, with_parameters
from hpcvdj.inference.settings import InferenceSettings
from hpcvdj.kernels.inference.layout import LEAST, Expected
from hpcvdj.recombination.models import Array, Model, require_probabilities
from hpcvdj.storage.states import DAMAGED_STATE, read_state, state_bytes

LONGEST_STEP = 4.0
"""Steps of EM that the first long step may be worth; a limit that is reached and accepted grows by this factor."""

WAIT = 6
"""Evaluations without a better held-out likelihood after which the search ends."""


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation gives.

    iteration       its number, from 1
    kind            start, em or long: how the model was reached
    accepted        whether the search goes on from it
    log_likelihood  nats per junction that was counted and is possible at the start
    held_out        the same of the junctions held out; nan without any
    lost            counted junctions with probability 0
    seconds         that it took
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

    settings    how it goes on and ends
    free        the parameters that are inferred
    rows, held  junctions that are counted, and that are held out
    model       to be evaluated next
    kind        how it was reached
    points      the models of the last steps of EM, as `extrapolated` takes them; two at most
    fallback    where to go if a long step is not accepted
    longest     the longest step
    step        how long the last long step was
    objective   of the last accepted model
    best        the accepted model with the best held-out likelihood, or the last one
    waited      evaluations since the best one
    impossible  junctions with probability 0 at the start, counted and held out: they are never possible
    identity    what a run must have in common with this one to continue it
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
    impossible: tuple[int, int] = (0, 0)
    identity: Mapping[str, Any] = field(default_factory=dict)

    @property
    def judged(self) -> bool:
        """Whether there are junctions held out that say which model is the best."""
        return self.held > self.impossible[1]

    @property
    def accepted(self) -> list[Evaluated]:
        """The evaluations that the search went on from."""
        return [evaluation for evaluation in self.trace if evaluation.accepted]

    def take(self, expected: Expected, seconds: float) -> Evaluated:
        """What was expected at `model`; chooses the model to be evaluated next, or ends."""
        if not self.trace:
            self.impossible = expected.lost, expected.held_lost
        counted = _mean(expected.log_likelihood, self.rows, self.impossible[0])
        held_out = _mean(expected.held_log_likelihood, self.held, self.impossible[1])
        evaluation = Evaluated(
            len(self.trace) + 1, self.kind, True, counted, held_out, expected.lost, seconds, self.model.error_rate
        )
        objective = expected.log_likelihood + log_prior(self.model, self.settings.prior)
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
        self._note_best(evaluation)
        following = maximised(self.model, expected, self.free, self.settings.prior)
        if self.kind == "long":
            self.points = []
        self.points = [*self.points, self.model][-2:]
        self.fallback = None
        if len(self.points) == 2:
            far, self.step = extrapolated([*self.points, following], expected, self.longest)
            # A long step changes joint probabilities, of which one factor may be fixed, and rounds what it leaves.
            self.model = with_fixed(far, following, self.free)
            self.kind, self.fallback, self.points = "long", following, []
            if self.step <= 1.0:
                self.model, self.kind = following, "em"
                # Otherwise a limit that has fallen to a step of EM would never grow again.
                self.longest = max(self.longest, LONGEST_STEP)
        else:
            self.model, self.kind = following, "em"

    def _note_best(self, evaluation: Evaluated) -> None:
        if self.judged and not evaluation.held_out > self.best_held_out:
            self.waited += 1
            return
        self.best, self.best_held_out, self.waited = self.model, evaluation.held_out, 0

    def saved(self, more: Mapping[str, Array]) -> bytes:
        """The state, for `restored`, and more arrays beside it."""
        models = {"model": self.model, "fallback": self.fallback, "best": self.best}
        models |= {f"point{k}": point for k, point in enumerate(self.points)}
        arrays = dict(more)
        for name, model in models.items():
            if model is not None:
                arrays |= {f"{name}/{k:02}": values for k, values in enumerate(parameters(model))}
        names = ("kind", "longest", "step", "objective", "best_held_out", "waited", "done", "impossible")
        meta: dict[str, Any] = {name: getattr(self, name) for name in names}
        meta["trace"] = [asdict(evaluation) for evaluation in self.trace]
        return state_bytes(meta, arrays, self.identity)

    def restored(self, data: bytes) -> "tuple[Search, dict[str, Array]]":
        """This search, which has not begun, in the state that `saved` gave, and the other arrays.

        InputError if it is damaged.
        """
        try:
            meta, arrays = read_state(data, self.identity)
            trace = [Evaluated(**facts) for facts in meta.pop("trace")]
            meta["impossible"] = tuple(meta["impossible"])
            model, fallback, best, *points = (
                self._model(arrays, name) for name in ("model", "fallback", "best", "point0", "point1")
            )
            if model is None:
                raise ValueError("it has no model")
            kept = [point for point in points if point is not None]
            search = replace(self, model=model, fallback=fallback, best=best, points=kept, trace=trace, **meta)
        except (*DAMAGED_STATE, InputError) as error:
            raise InputError(
                f"state.npz in the folder of the unfinished run is damaged ({error}); {option('overwrite', True)} "
                "starts again"
            ) from None
        return search, arrays

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
    """The log-likelihood per row of those that are possible at the start; nan without any."""
    return (total - impossible * math.log(LEAST)) / (rows - impossible) if rows > impossible else math.nan
