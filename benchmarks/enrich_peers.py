"""Are degrees, p and q of vdjtools' `alice` and `tcrnet` those of `hpcvdj enrich`, and how many false hits have both?

python benchmarks/enrich_peers.py --peer-python VENV/bin/python --output results/enrich/peers.csv

VENV has vdjtools 5.2.2 (GPL-3.0-or-later: a program of its own here, never a dependency) and olga.  Junctions are drawn
from olga's human TRB model without selection, so a hit is a false one.  Each quantity is under the formula of vdjtools.
Ends with an error if degrees or class sizes differ, or if another quantity differs by more than 1e-10 of its value.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from _common import record, run, timed
from _vdjtools import VERSION
from numpy.typing import NDArray

import hpcvdj
from hpcvdj.chance.clonotypes import letter_words
from hpcvdj.chance.p_values import benjamini_hochberg, poisson_tail
from hpcvdj.kernels.neighbours.degrees_cpu import degrees

MODEL = "human_trb"
Q_FACTOR = 9.41
"""vdjtools' default factor of selection."""

SMALLEST_DEGREE = 3
"""Of the clonotypes that `alice` tests, themselves counted."""

MOST_Q = 0.001
ALLOWED = 1e-10
EXACT = "degree", "class size", "degree in the control"

Pairs = dict[str, tuple[Any, Any]]
"""By quantity, the values of hpcvdj and of vdjtools."""


def difference(own: Any, other: Any) -> float:
    """The largest difference of two arrays, relative to the first; of those that are both 0, 0."""
    own, other = np.asarray(own, dtype=float), np.asarray(other, dtype=float)
    return float((abs(own - other) / np.where(own == 0, np.where(other == 0, 1, 1e-300), abs(own))).max(initial=0))


def compared(test: str, pairs: Pairs, enrichment: Any, cpu_seconds: float, clonotypes: int) -> dict[str, Any]:
    """The row of a test; ends the program if a difference is too large."""
    differences = {name: difference(*values) for name, values in pairs.items()}
    wrong = [name for name, value in differences.items() if value > (0 if name in EXACT else ALLOWED)]
    if wrong:
        sys.exit(f"{test}: differs in {', '.join(f'{name} by {differences[name]:.2e}' for name in wrong)}")
    name = max(differences, key=lambda name: differences[name])
    return {
        "test": test, "clonotypes": clonotypes, "tested": len(pairs["q"][1]), "largest_difference_of": name,
        "largest_difference": differences[name], "vdjtools_hits": int((np.asarray(pairs["q"][1]) < MOST_Q).sum()),
        "hpcvdj_hits": enrichment.hits, "hpcvdj_cpu_seconds": cpu_seconds,
    }  # fmt: skip


def enriched(sample: pa.Table, model: Any, **options: Any) -> tuple[Any, float]:
    """hpcvdj's enrichment and its processor seconds; what is loaded at the first call is not measured."""
    names = ["sequence_id", "v_call", "j_call", "junction"]
    given = {name: own.select(names) if isinstance(own, pa.Table) else own for name, own in options.items()}

    def enrich(table: pa.Table) -> Any:
        return hpcvdj.enrich(table, model, likely_errors=True, backend="cpu", **given)

    enrich(sample.select(names).slice(0, 2000))
    own, times = timed(lambda: enrich(sample.select(names)))
    return own, times["cpu_seconds"]


def alice_row(sample: pa.Table, found: pa.Table, model: Any) -> dict[str, Any]:
    """hpcvdj's enrichment beside `alice`, and the same numbers put into the formula of `alice`."""
    own, seconds = enriched(sample, model, kappa=1.0)
    found = found.rename_columns([f"{name}_other" if name in own.table.column_names else name
                                  for name in found.column_names])  # fmt: skip
    columns, keys = ["neighbours", "class_size", "pgen_ball"], ["v_call", "j_call", "junction_aa"]
    other_keys = [f"{name}_other" for name in keys]
    # polars writes another type of text.
    texts = {name: own.table[name].cast(found.schema.field(f"{name}_other").type) for name in keys}
    both = found.join(pa.table({**texts, **{name: own.table[name] for name in columns}}), other_keys, keys)
    tested = own.table["neighbours"].to_numpy() + 1 >= SMALLEST_DEGREE
    if both["neighbours"].null_count or len(both) != tested.sum():
        sys.exit(f"alice: tests {len(both):,} clonotypes, hpcvdj {tested.sum():,} of them")
    degree, size, ball = (both[name].to_numpy() for name in columns)
    expected = size * Q_FACTOR * ball
    p_values = poisson_tail(degree + 1, expected)
    pairs = {
        "degree": (degree + 1, both["n_neighbors"]), "class size": (size, both["n_group"]),
        "ball": (ball, both["pgen_ball_other"]), "expected": (expected, both["E"]),
        "p": (p_values, both["p_enrichment"]),
        "q": (benjamini_hochberg(p_values, len(p_values)), both["q_value_other"]),
    }  # fmt: skip
    return compared("alice", pairs, own, seconds, own.clonotypes)


def tcrnet_row(sample: pa.Table, control: pa.Table, found: pa.Table, model: Any) -> dict[str, Any]:
    """The degrees of `tcrnet`, which knows no genes, and its formula; hits of both tests."""
    own, seconds = enriched(sample, model, control=control)
    texts, others = found["junction_aa"].to_pylist(), sorted(set(control["junction_aa"].to_pylist()))
    neighbours, of_control = degrees_of(texts, others)
    expected = len(texts) / len(others) * of_control
    p_values = np.where(neighbours > 0, poisson_tail(neighbours, expected), 1.0)
    pairs = {
        "degree": (neighbours, found["n_neighbors"]), "degree in the control": (of_control, found["n_control"]),
        "expected": (expected, found["E"]), "p": (p_values, found["p_enrichment"]),
        "q": (benjamini_hochberg(p_values, len(p_values)), found["q_value"]),
    }  # fmt: skip
    return compared("tcrnet", pairs, own, seconds, len(texts))


def degrees_of(texts: list[str], others: list[str]) -> NDArray[np.int64]:
    """Neighbours of each of `texts` among themselves and among `others`, int64 [2, texts]."""
    every = sorted({*texts, *others})
    width = -(-max(map(len, every)) // 8) * 8
    letters = np.array([list(text.encode().ljust(width, b"\0")) for text in every], dtype=np.uint8)
    assert len(np.unique(letter_words(letters), axis=0)) == len(every)
    place = {text: k for k, text in enumerate(every)}
    places, weights = [place[text] for text in texts], np.zeros((len(every), 2), dtype=np.int64)
    weights[places, 0] = 1
    weights[[place[text] for text in others], 1] = 1
    lengths = np.array([len(text) for text in every])
    counts = degrees(letters, lengths, np.zeros(len(every), dtype=np.int64), weights)[places]
    return (counts - [1, 0]).T


def drawn(number: int, seed: int) -> pa.Table:
    """Distinct drawn junctions, with genes in place of alleles, as vdjtools wants them."""
    rows = hpcvdj.generate(MODEL, number, seed=seed, productive=True)
    columns = {name: pc.replace_substring_regex(rows[name], r"\*.*", "") for name in ("v_call", "j_call")}
    columns |= {name: rows[name] for name in ("junction", "junction_aa")}
    table = pa.table(columns).group_by(list(columns)).aggregate([]).sort_by([(n, "ascending") for n in columns])
    table = table.append_column("junction_nt", table["junction"])
    table = table.append_column("duplicate_count", pa.array([1] * len(table)))
    return table.append_column("sequence_id", pa.array([f"{seed}_{k}" for k in range(len(table))]))


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Both tests."""
    sample, control = drawn(options.rows, 1), drawn(options.control_rows, 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(sample, folder / "sample.parquet")
        pq.write_table(control, folder / "control.parquet")
        run([Path(options.peer_python).absolute(), "benchmarks/_vdjtools.py", folder])
        seconds = json.loads((folder / "seconds.json").read_text())
        if seconds["version"] != VERSION:
            sys.exit(f"vdjtools {seconds['version']}: install {VERSION}")
        alice, tcrnet = (pq.read_table(folder / f"{test}.parquet") for test in ("alice", "tcrnet"))
    model = hpcvdj.load_model(MODEL)
    for row in (alice_row(sample, alice, model), tcrnet_row(sample, control, tcrnet, model)):
        yield row | {"rows": len(sample), "vdjtools_cpu_seconds": seconds[row["test"]]}


if __name__ == "__main__":
    record(
        __doc__, measured,
        peer_python=(sys.executable, "Python of an environment that has vdjtools and olga"),
        rows=(100_000, "junctions of the sample"),
        control_rows=(200_000, "junctions of the control"),
    )  # fmt: skip
