"""Are the standard errors of `hpcvdj infer --bootstrap` those of samples of the rows that are searched to the end?

python benchmarks/infer_errors.py --output results/infer/errors.csv

Draws rows out of frame from a model of OLGA, infers it from them from a start where everything is equally likely, and
takes standard errors from samples of the rows:

  hpcvdj     searches go as far as they do
  converged  searches, of all rows and then of the samples, go on for 150 evaluations
  spread     no samples: the standard deviation of models that are inferred from as many other sets of rows

For each way and parameter, a row has the square root of the ratio of the sums of squares, these standard errors to
those of `converged`, over outcomes that are not rare.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from _common import record, timed
from infer import out_of_frame

from hpcvdj.inference.infer import infer
from hpcvdj.inference.rows import choose
from hpcvdj.inference.settings import InferenceSettings, RowChoice
from hpcvdj.inference.tables import reading_for
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


def compared(name: str, plan: InferenceSettings, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each way and parameter."""
    truth, run = load_model(name, pseudogenes=True), Run()
    backend = run.bind("cpu")

    def fit(seed: int, **search: Any) -> Any:
        junctions = read_table(out_of_frame(truth, options.rows, seed), truth, reading_for(plan))
        return infer(choose(junctions, RowChoice()), truth, replace(plan, **search), run, backend)

    def of_other_rows() -> Values:
        found = [outcomes(fit(100 + seed).model, truth) for seed in range(options.samples)]
        return {name: np.std([own[name] for own in found], axis=0, ddof=1) for name in found[0]}

    samples = {"bootstrap": options.samples}
    ways: dict[str, Callable[[], Values]] = {
        "converged": lambda: outcomes(fit(1, iterations=CONVERGED, tolerance=0.0, **samples).errors, truth),
        "hpcvdj": lambda: outcomes(fit(1, **samples).errors, truth),
        "spread": of_other_rows,
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
    for name, hold_out in product(options.models, HOLD_OUT):
        for row in compared(name, InferenceSettings(start="uniform", hold_out=hold_out), options):
            yield {"model": name, "hold_out": hold_out, "rows": options.rows, "samples": options.samples, **row}


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(["human_trb", "mouse_trb"], "models"),
        rows=(5_000, "rows drawn from each"),
        samples=(12, "samples of the rows"),
    )  # fmt: skip
