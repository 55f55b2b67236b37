#!/usr/bin/env python3
"""Compare models by out-of-frame rows that they were not inferred from: the tables of README.md.

In five parts of the rows, a model of the other four gives the log-likelihood of each row with its V and J, given that a
junction is out of frame and has one of the V genes that are compared.  Needs olga, numpy and pyarrow.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from make import NAME, Row, infer, make, rows_to_infer_from

import hpcvdj
from hpcvdj.recombination.possible import Possible

PARTS, DRAWN = 5, 200_000
OLGA = "human_trb"
Values = np.ndarray


def out_of_frame(row: Row) -> bool:
    """Whether a junction is out of frame."""
    return len(row["junction"]) % 3 > 0


def functional_genes() -> set[str]:
    """V genes of OLGA's model with a functional allele."""
    return {template.allele.partition("*")[0] for template in hpcvdj.load_model(OLGA).v if template.segment}


def log_likelihoods(model: str | Path, rows: Sequence[Row], genes: set[str]) -> Values:
    """Nats of each row; -inf if it is impossible."""
    loaded = hpcvdj.load_model(model)
    drawn = hpcvdj.generate(loaded, DRAWN, seed=5).select(["v_call", "junction"]).to_pylist()
    share = sum(out_of_frame(row) and row["v_call"].partition("*")[0] in genes for row in drawn) / DRAWN
    table = hpcvdj.pgen(pa.Table.from_pylist(list(rows)), loaded, sequence="nt")
    with np.errstate(divide="ignore"):
        return np.log(np.array(table["pgen_nt"], dtype=float)) - np.log(share * Possible.of(loaded).probability)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="the table of README.md, as .tsv.gz")
    rows, genes = rows_to_infer_from(parser.parse_args().table), functional_genes()
    part = np.random.default_rng(7).integers(PARTS, size=len(rows))
    values: dict[str, list[Values]] = {}
    tested: list[Row] = []
    for number in range(PARTS):
        kept = [row for row, logs in zip(rows, part, strict=True) if logs != number or not out_of_frame(row)]
        held = [row for row, logs in zip(rows, part, strict=True) if logs == number and out_of_frame(row)]
        held = [row for row in held if row["v_call"] in genes]
        tested += held
        with tempfile.TemporaryDirectory() as folder:
            models = {"olga": OLGA, NAME: make(kept, Path(folder)), "usage": Path(folder) / "usage"}
            infer(Path(folder) / "rows.tsv", models["usage"], "-m", OLGA)
            for name, model in models.items():
                values.setdefault(name, []).append(log_likelihoods(model, held, genes))
    joined = {name: np.concatenate(logs) for name, logs in values.items()}
    possible = np.all([np.isfinite(logs) for logs in joined.values()], axis=0)
    other = np.array([row["j_call"] != "TRBJ2-7" for row in tested])
    for title, chosen in (("all", possible), ("without TRBJ2-7", possible & other)):
        print(f"{title}: {chosen.sum():,} rows")
        for name, logs in joined.items():
            gain = logs[chosen] - joined["olga"][chosen]
            error = 1.96 * gain.std(ddof=1) / np.sqrt(len(gain))
            impossible = int(np.isinf(logs).sum() if title == "all" else np.isinf(logs[other]).sum())
            print(f"  {name:14} {logs[chosen].mean():8.3f} {gain.mean():+7.3f} ± {error:.3f}, impossible {impossible}")


if __name__ == "__main__":
    main()
