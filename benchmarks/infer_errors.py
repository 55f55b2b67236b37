"""Are the standard errors of `hpcvdj infer --bootstrap` those of samples of the rows that are searched to the end?

python benchmarks/infer_errors.py --output results/infer/errors.csv

Draws rows out of frame from a model of OLGA, infers it from them from a start where everything is equally likely, and
takes standard errors from samples of the rows, which are searched from the result:

  hpcvdj     as far as a search goes
  converged  for 150 evaluations
  spread     no samples: the standard deviation of models that are inferred from as many other sets of rows

For each way and parameter, a row has the square root of the ratio of the sums of squares, these standard errors to
those of `converged`, over outcomes that are not rare.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _common import record, timed
from infer import out_of_frame

from hpcvdj.inference.infer import Expectations, infer
from hpcvdj.inference.parameters import free_parameters
from hpcvdj.inference.rows import ChosenRows, choose
from hpcvdj.inference.search import Search
from hpcvdj.inference.settings import InferenceSettings, RowChoice
from hpcvdj.inference.tables import reading_for
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.inference.method import InferenceProblem
from hpcvdj.recombination.igor import load_model
from hpcvdj.recombination.models import Array, Model
from hpcvdj.repertoires.inputs import read_table
from hpcvdj.runs.run import Run

HOLD_OUT = 0.1, 0.0

CONVERGED = 150

Values = dict[str, Array]


def outcomes(own: Model, truth: Model) -> Values:
    """Probabilities, or their standard errors, by parameter: of outcomes that the truth makes often enough."""
    v, j = (truth.p_segment(kind) for kind in ("V", "J"))
    if truth.has_d:
        found = {"v_choice": own.p_v[v > 0.003], "dj_choice": own.p_dj[truth.p_dj > 0.003]}
        found["d_del"] = own.d_deletions[truth.d_deletions > 0.003]
    else:
        found = {"vj_choice": own.p_vj[truth.p_vj > 0.003]}
    found["v_3_del"] = own.v_deletions[(truth.v_deletions > 0.02) & (v > 0.01)[:, None]]
    found["j_5_del"] = own.j_deletions[(truth.j_deletions > 0.02) & (j > 0.01)[:, None]]
    for (name, insertion), true in zip(own.named_insertions.items(), truth.insertions, strict=True):
        found[f"{name.lower()}_ins"] = insertion.lengths[true.lengths > 0.01]
        found[f"{name.lower()}_dinucl"] = insertion.transitions.ravel()
    return found


def spread(found: list[Values]) -> Values:
    """The standard deviation of each outcome."""
    return {name: np.std([own[name] for own in found], axis=0, ddof=1) for name in found[0]}


class Measured:
    """Rows of a model, and what is inferred from them."""

    def __init__(self, name: str, rows: int, samples: int, plan: InferenceSettings, backend: Backend) -> None:
        self.truth, self.rows, self.plan, self.backend = load_model(name, pseudogenes=True), rows, plan, backend
        self.samples = samples
        self.chosen = self.drawn(1)

    def drawn(self, seed: int) -> ChosenRows:
        """Rows out of frame."""
        table = out_of_frame(self.truth, self.rows, seed)
        return choose(read_table(table, self.truth, reading_for(self.plan)), RowChoice())

    def inferred(self, chosen: ChosenRows, plan: InferenceSettings) -> Any:
        """The fit of some rows."""
        return infer(chosen, self.truth, plan, Run(), self.backend)

    def of_other_rows(self) -> Values:
        """The spread of models."""
        fits = [self.inferred(self.drawn(100 + seed), self.plan) for seed in range(self.samples)]
        return spread([outcomes(fit.model, self.truth) for fit in fits])

    def as_hpcvdj_does(self) -> Values:
        """Standard errors of a plan."""
        plan = InferenceSettings(start=self.plan.start, hold_out=self.plan.hold_out, bootstrap=self.samples)
        return outcomes(self.inferred(self.chosen, plan).errors, self.truth)

    def from_the_result(self, evaluations: int, tolerance: float) -> Values:
        """From samples of the rows that are searched from the model of all rows."""
        fit = self.inferred(self.chosen, self.plan)
        held = np.random.default_rng(self.plan.seed).random(int(self.chosen.row.max()) + 1)[self.chosen.row]
        rows = np.flatnonzero(held >= self.plan.hold_out)
        problem = InferenceProblem(self.chosen.repertoire, np.ones(len(held), dtype=np.uint32), self.truth)
        evaluate = Expectations(problem, Run(), self.backend)
        settings = InferenceSettings(iterations=evaluations, tolerance=tolerance)
        found = []
        for sample in range(self.samples):
            places = np.random.default_rng([self.plan.seed, sample, 1]).integers(len(rows), size=len(rows))
            evaluate.weigh(np.bincount(rows[places], minlength=len(held)).astype(np.uint32))
            search = Search(settings, free_parameters(self.truth), len(rows), 0, fit.model)
            while not search.done:
                search.take(evaluate(search.model, ""), 0.0)  # type: ignore[arg-type]
            found.append(outcomes(search.best or search.model, self.truth))
        return spread(found)


def compared(own: Measured) -> Iterator[dict[str, Any]]:
    """A row for each way and parameter."""
    ways: dict[str, Callable[[], Values]] = {
        "converged": lambda: own.from_the_result(CONVERGED, 0.0),
        "hpcvdj": own.as_hpcvdj_does,
        "spread": own.of_other_rows,
    }
    reference: Values = {}
    for way, errors in ways.items():
        found, times = timed(errors)
        reference = reference or found
        for parameter, values in found.items():
            ratio = np.sqrt((values**2).sum() / (reference[parameter] ** 2).sum())
            yield {"way": way, **times, "parameter": parameter, "outcomes": len(values), "ratio": float(ratio)}


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The raw rows."""
    backend = Run().bind("cpu")
    for name in options.models:
        for hold_out in HOLD_OUT:
            plan = InferenceSettings(start="uniform", hold_out=hold_out)
            for row in compared(Measured(name, options.rows, options.samples, plan, backend)):
                yield {"model": name, "hold_out": hold_out, "rows": options.rows, "samples": options.samples, **row}


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(["human_trb", "mouse_trb"], "models"),
        rows=(5_000, "rows drawn from each"),
        samples=(12, "samples of the rows"),
    )  # fmt: skip
