"""What does `hpcvdj infer-selection` find in drawn cohorts: without selection, and with a factor that is known?

python benchmarks/selection.py --output results/calibration/selection_null.csv
python benchmarks/selection.py --planted --output results/calibration/selection_planted.csv

Draws the productive junctions of individuals from a model of OLGA and infers the selection factor of this model from
them.  Nothing was selected: the gain should be 0 within its standard error, the AUC 0.5, and Q 1.

With `--planted`, the draws are selected by a factor of genes, lengths and residues.  A row then has the mean of the
planted and of the inferred ln Q over new draws that the planted factor selects, the root mean square error of ln Q, and
the slope of the regression of the inferred ln Q on the planted one (1 if nothing is lost) over draws without selection.
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from _common import LOCI, record, timed

import hpcvdj
from hpcvdj.recombination.selection import SelectionFactor
from tests.cohorts.drawn import with_individuals
from tests.inference.test_selection_drawn import weights_of
from tests.selected import distinct, with_factor


def compared(true: SelectionFactor, fit: SelectionFactor, fresh: Any) -> dict[str, float]:
    """How near a factor is to the true one, over distinct junctions that the model makes."""
    a, b = (fresh.log_factor(own) for own in (true, fit))
    selected, covariance = fresh.times * np.exp(a), np.cov(a, b, fweights=fresh.times)
    return {
        "true_gain": float(np.average(a, weights=selected)), "gain_of_fit": float(np.average(b, weights=selected)),
        "rms": float(np.sqrt(np.average((a - b) ** 2, weights=fresh.times))),
        "slope": float(covariance[0, 1] / covariance[0, 0]),
    }  # fmt: skip


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each model and seed."""
    for name in options.models:
        model = hpcvdj.load_model(name)
        drawn_from = with_factor(model, weights_of(model), draws=100_000) if options.planted else model
        for seed in options.seeds:
            given = {"seed": 1000 + seed, "productive": True, "selection": options.planted}
            drawn = hpcvdj.generate(drawn_from, sum(options.sizes), **given)
            table = with_individuals(drawn, options.sizes)
            settings: dict[str, Any] = {"seed": seed, "max_junctions": options.rows}
            with warnings.catch_warnings(action="ignore"):
                fit, times = timed(partial(hpcvdj.infer_selection, table, model, **settings))
            factor = fit.selection
            row: dict[str, Any] = {
                "model": name, "individuals": len(options.sizes), "rows": sum(options.sizes), "seed": seed,
                "taken": fit.rows[0], "held_out": fit.rows[1], "weights": len(factor.weights), "gain": fit.gain,
                "standard_error": fit.error, "z": fit.gain / fit.error, "auc": fit.auc,
                "smallest_q": float(np.exp(factor.smallest)), "largest_q": float(np.exp(factor.largest)), **times,
            }  # fmt: skip
            if options.planted:
                fresh = hpcvdj.generate(model, 30_000, seed=77, productive=True)
                row |= compared(drawn_from.require_selection(), factor, distinct(fresh, model))
            yield row


if __name__ == "__main__":
    record(
        __doc__, measured,
        models=(LOCI, "models"),
        sizes=([20_000, 12_000, 6_000, 2_000], "recombinations of each individual"),
        seeds=([1, 2, 3, 4, 5, 6], "a cohort for each"),
        rows=(300_000, "as of infer-selection"),
        planted=(False, "select the draws by a known factor"),
    )  # fmt: skip
