"""What does `hpcvdj infer-selection` find in drawn cohorts: without selection, and with a factor that is known?

python benchmarks/selection.py --output results/calibration/selection_null.csv
python benchmarks/selection.py --planted --output results/calibration/selection_planted.csv

Draws the productive junctions of individuals from a model of OLGA and infers the selection factor of this model from
them.  Nothing was selected: the gain should be 0 within its standard error, the AUC 0.5, and Q 1.

With `--planted`, the draws are selected by a factor of genes, lengths and residues.  A row then has the mean of the
planted and of the inferred ln Q over new draws that the planted factor selects, the root mean square error of ln Q, and
the slope of the regression of the inferred ln Q on the planted one (1 if nothing is lost) over draws without selection.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from _common import LOCI, record, timed

import hpcvdj
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.selection import RESIDUES, SelectionFactor


def cohort(model: Model, sizes: list[int], seed: int, *, selection: bool) -> pa.Table:
    """Productive junctions of individuals with so many recombinations each."""
    rows = hpcvdj.generate(model, sum(sizes), seed=1000 + seed, productive=True, selection=selection)
    return rows.append_column("repertoire_id", pa.array(np.repeat([f"i{k}" for k in range(len(sizes))], sizes)))


def planted(model: Model) -> Model:
    """The model with a factor whose weights are drawn: of V genes with the length, and of residues at ten positions."""
    rng = np.random.default_rng(0)
    weights = {}
    for gene in sorted({own.allele.partition("*")[0] for own in model.v}):
        level, slope = rng.normal(0, 0.4), rng.normal(0, 0.06)
        weights |= {f"V_length:{gene}:{size}": level + slope * (size - 13) for size in range(5, 30)}
    for side in ("left", "right"):
        for position in range(2, 7):
            for residue in rng.choice(list(RESIDUES), 6, replace=False):
                weights[f"{side}:{position}:{residue}"] = rng.normal(0, 0.4)
    logs = log_factors(
        SelectionFactor(weights, 0.0, -50.0, 50.0), hpcvdj.generate(model, 100_000, seed=5, productive=True)
    )
    shift = float(np.log(np.exp(logs).mean()))
    return replace(
        model, selection=SelectionFactor(weights, -shift, float(logs.min()) - shift, float(logs.max()) - shift)
    )


def log_factors(factor: SelectionFactor, rows: pa.Table) -> Any:
    """ln Q of drawn junctions."""
    texts = rows["junction_aa"].to_pylist()
    lengths = np.array([len(text) for text in texts])
    letters = np.zeros((len(texts), lengths.max()), dtype=np.uint8)
    for row, text in enumerate(texts):
        letters[row, : len(text)] = list(text.encode())
    calls = (rows[f"{kind}_call"].to_pylist() for kind in "vj")
    return factor.log_factor(*calls, np.arange(len(texts)), letters, lengths)


def compared(true: SelectionFactor, fit: SelectionFactor, rows: pa.Table) -> dict[str, float]:
    """How near a factor is to the true one, over junctions that the model makes."""
    a, b = (log_factors(own, rows) for own in (true, fit))
    selected = np.exp(a)
    return {
        "true_gain": float(np.average(a, weights=selected)), "gain_of_fit": float(np.average(b, weights=selected)),
        "rms": float(np.sqrt(((a - b) ** 2).mean())), "slope": float(np.cov(a, b)[0, 1] / np.var(a)),
    }  # fmt: skip


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each model and seed."""
    for name in options.models:
        model = hpcvdj.load_model(name)
        drawn_from = planted(model) if options.planted else model
        for seed in options.seeds:
            table = cohort(drawn_from, options.sizes, seed, selection=options.planted)
            settings: dict[str, Any] = {"seed": seed, "max_junctions": options.rows}
            with warnings.catch_warnings(action="ignore"):
                fit, times = timed(
                    lambda given=(table, model), settings=settings: hpcvdj.infer_selection(*given, **settings)
                )
            factor = fit.selection
            row: dict[str, Any] = {
                "model": name, "individuals": len(options.sizes), "rows": sum(options.sizes), "seed": seed,
                "taken": fit.rows[0], "held_out": fit.rows[1], "weights": len(factor.weights), "gain": fit.gain,
                "standard_error": fit.error, "z": fit.gain / fit.error, "auc": fit.auc,
                "smallest_q": float(np.exp(factor.smallest)), "largest_q": float(np.exp(factor.largest)), **times,
            }  # fmt: skip
            if drawn_from.selection is not None and options.planted:
                fresh = hpcvdj.generate(model, 30_000, seed=77, productive=True)
                row |= compared(drawn_from.selection, factor, fresh)
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
