"""What `hpcvdj infer-selection` finds in drawn cohorts: without selection, and with a factor that is known.

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
import csv
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hpcvdj
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.selection import RESIDUES, Selection

LOCI = ("human_tra", "human_trb", "human_igk", "human_igh", "mouse_tra", "mouse_trb")

FIELDS = (
    "version", "model", "individuals", "rows", "seed", "taken", "held_out", "weights", "gain", "standard_error", "z",
    "auc", "smallest_q", "largest_q", "seconds", "true_gain", "gain_of_fit", "rms", "slope",
)  # fmt: skip


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
    logs = log_factors(Selection(weights, 0.0, -50.0, 50.0), hpcvdj.generate(model, 100_000, seed=5, productive=True))
    shift = float(np.log(np.exp(logs).mean()))
    return replace(model, selection=Selection(weights, -shift, float(logs.min()) - shift, float(logs.max()) - shift))


def log_factors(factor: Selection, rows: pa.Table) -> Any:
    """ln Q of drawn junctions."""
    texts = rows["junction_aa"].to_pylist()
    lengths = np.array([len(text) for text in texts])
    letters = np.zeros((len(texts), lengths.max()), dtype=np.uint8)
    for row, text in enumerate(texts):
        letters[row, : len(text)] = list(text.encode())
    calls = (rows[f"{kind}_call"].to_pylist() for kind in "vj")
    return factor.log_factor(*calls, np.arange(len(texts)), letters, lengths)


def compared(true: Selection, fit: Selection, rows: pa.Table) -> dict[str, float]:
    """How near a factor is to the true one, over junctions that the model makes."""
    a, b = (log_factors(own, rows) for own in (true, fit))
    selected = np.exp(a)
    return {
        "true_gain": float(np.average(a, weights=selected)), "gain_of_fit": float(np.average(b, weights=selected)),
        "rms": float(np.sqrt(((a - b) ** 2).mean())), "slope": float(np.cov(a, b)[0, 1] / np.var(a)),
    }  # fmt: skip


def measured(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each seed."""
    model = hpcvdj.load_model(name)
    drawn_from = planted(model) if options.planted else model
    for seed in options.seeds:
        table = cohort(drawn_from, options.sizes, seed, selection=options.planted)
        begun = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            fit = hpcvdj.infer_selection(table, model, seed=seed, max_junctions=options.rows)
        factor = fit.selection
        row: dict[str, Any] = {
            "version": options.version, "model": name, "individuals": len(options.sizes), "rows": sum(options.sizes),
            "seed": seed, "taken": fit.rows[0], "held_out": fit.rows[1], "weights": len(factor.weights),
            "gain": fit.gain, "standard_error": fit.error, "z": fit.gain / fit.error, "auc": fit.auc,
            "smallest_q": float(np.exp(factor.smallest)), "largest_q": float(np.exp(factor.largest)),
            "seconds": time.perf_counter() - begun,
        }  # fmt: skip
        if options.planted:
            assert drawn_from.selection is not None
            fresh = hpcvdj.generate(model, 30_000, seed=77, productive=True)
            row |= compared(drawn_from.selection, factor, fresh)
        yield row


def main() -> None:
    """Measure and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="a CSV, to which rows are added")
    parser.add_argument("--models", nargs="+", default=LOCI)
    parser.add_argument("--sizes", nargs="+", type=int, default=[20_000, 12_000, 6_000, 2_000])
    parser.add_argument("--seeds", nargs="+", type=int, default=range(1, 7))
    parser.add_argument("--rows", type=int, default=300_000, help="as of infer-selection")
    parser.add_argument("--planted", action="store_true", help="select the draws by a known factor")
    parser.add_argument("--version", default=hpcvdj.__version__, help="what the rows say was measured")
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    new = not options.output.exists()
    with open(options.output, "a", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        for name in options.models:
            for row in measured(name, options):
                writer.writerow({key: f"{own:.5g}" if isinstance(own, float) else own for key, own in row.items()})
                stream.flush()


if __name__ == "__main__":
    main()
