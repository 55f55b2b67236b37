"""`alice` and `tcrnet` of vdjtools beside hpcvdj on the same drawn table, each quantity under the formula of vdjtools.

python benchmarks/enrich_peers.py --peer-python VENV/bin/python --output results/enrich/peers.csv

VENV has vdjtools 5.2.2 (GPL-3.0-or-later: a program of its own here, never a dependency) and olga.  Junctions are drawn
from olga's human TRB model without selection, so a hit is a false one.  Ends with an error if degrees or class sizes
differ, or if another quantity differs by more than 1e-10 of its value.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

VERSION = "5.2.2"
MODEL, MODEL_FOLDER = "human_trb", "human_T_beta"
Q_FACTOR = 9.41
"""vdjtools' default factor of selection."""

SMALLEST_DEGREE = 3
"""Of the clonotypes that `alice` tests, themselves counted."""

MOST_Q = 0.001
ALLOWED = 1e-10
FIELDS = (
    "test", "rows", "clonotypes", "tested", "largest_difference_of", "largest_difference", "vdjtools_hits",
    "hpcvdj_hits", "vdjtools_cpu_seconds", "hpcvdj_cpu_seconds",
)  # fmt: skip


def peer(folder: Path) -> None:
    """What vdjtools says of the tables in `folder`; runs in its own environment."""
    import olga
    import polars as pl
    import seqtree
    import vdjtools
    from vdjtools.model.io import from_olga
    from vdjtools.overlap.alice import alice
    from vdjtools.overlap.tcrnet import tcrnet

    model_folder = Path(olga.__file__).parent / "default_models" / MODEL_FOLDER
    model = from_olga(model_folder, locus="TRB", organism="human")
    sample = pl.read_parquet(folder / "sample.parquet")
    control = pl.read_parquet(folder / "control.parquet")["junction_aa"].unique().sort().to_list()
    seconds = {}
    # What is loaded and cached at the first call is not measured.
    alice(sample.head(2000), model, locus="TRB", min_count=1, threads=1)
    started = time.process_time()
    alice(sample, model, locus="TRB", min_count=1, threads=1).write_parquet(folder / "alice.parquet")
    seconds["alice"] = time.process_time() - started
    started = time.process_time()
    index = seqtree.Index.build(control, alphabet="aa")
    tcrnet(sample, index, threads=1).write_parquet(folder / "tcrnet.parquet")
    seconds["tcrnet"] = time.process_time() - started
    (folder / "seconds.json").write_text(json.dumps(seconds | {"version": vdjtools.__version__}))


def difference(own: Any, other: Any) -> float:
    """The largest difference of two arrays, relative to the first; of those that are both 0, 0."""
    import numpy as np

    own, other = np.asarray(own, dtype=float), np.asarray(other, dtype=float)
    return float((abs(own - other) / np.where(own == 0, np.where(other == 0, 1, 1e-300), abs(own))).max(initial=0))


def require_equal(test: str, differences: dict[str, float], exact: tuple[str, ...]) -> dict[str, Any]:
    """The columns of the largest difference; ends the program if one is too large."""
    wrong = [name for name, value in differences.items() if value > (0 if name in exact else ALLOWED)]
    if wrong:
        sys.exit(f"{test}: differs in {', '.join(f'{name} by {differences[name]:.2e}' for name in wrong)}")
    name = max(differences, key=lambda name: differences[name])
    return {"largest_difference_of": name, "largest_difference": f"{differences[name]:.1e}"}


def alice_row(sample: Any, found: Any, model: Any) -> dict[str, Any]:
    """hpcvdj's enrichment beside `alice`, and the same numbers put into the formula of `alice`."""
    import numpy as np
    import pyarrow as pa

    import hpcvdj
    from hpcvdj.enrichment.statistics import benjamini_hochberg, poisson_tail

    given = sample.select(["sequence_id", "v_call", "j_call", "junction"])
    hpcvdj.enrich(given.slice(0, 2000), model, kappa=1.0, likely_errors=True, backend="cpu")
    started = time.process_time()
    own = hpcvdj.enrich(given, model, kappa=1.0, likely_errors=True, backend="cpu")
    seconds = time.process_time() - started
    columns = ["neighbours", "class_size", "pgen_ball"]
    keys = ["v_call", "j_call", "junction_aa"]
    # polars writes another type of text.
    texts = {name: own.table[name].cast(found.schema.field(name).type) for name in keys}
    both = found.join(pa.table({**texts, **{name: own.table[name] for name in columns}}), keys)
    tested = own.table["neighbours"].to_numpy() + 1 >= SMALLEST_DEGREE
    if both["neighbours"].null_count or len(both) != tested.sum():
        sys.exit(f"alice: tests {len(both):,} clonotypes, hpcvdj {tested.sum():,} of them")
    degree, size, ball = (both[name].to_numpy() for name in columns)
    degree = degree + 1
    expected = size * Q_FACTOR * ball
    p_values = poisson_tail(degree, expected)
    differences = {
        "degree": difference(degree, both["n_neighbors"]), "class size": difference(size, both["n_group"]),
        "ball": difference(ball, both["pgen_ball_other"]), "expected": difference(expected, both["E"]),
        "p": difference(p_values, both["p_enrichment"]),
        "q": difference(benjamini_hochberg(p_values, len(p_values)), both["q_value_other"]),
    }  # fmt: skip
    return {
        "test": "alice", "rows": len(sample), "clonotypes": own.clonotypes, "tested": len(both),
        **require_equal("alice", differences, ("degree", "class size")),
        "vdjtools_hits": int((np.asarray(both["q_value_other"]) < MOST_Q).sum()),
        "hpcvdj_hits": own.hits, "hpcvdj_cpu_seconds": f"{seconds:.2f}",
    }  # fmt: skip


def tcrnet_row(sample: Any, control: Any, found: Any, model: Any) -> dict[str, Any]:
    """The degrees of `tcrnet`, which knows no genes, and its formula; hits of both tests."""
    import numpy as np

    import hpcvdj
    from hpcvdj.enrichment.clonotypes import letter_words
    from hpcvdj.enrichment.statistics import benjamini_hochberg, poisson_tail
    from hpcvdj.kernels.neighbours.degrees_cpu import degrees

    names = ["sequence_id", "v_call", "j_call", "junction"]
    started = time.process_time()
    own = hpcvdj.enrich(
        sample.select(names), model, control=control.select(names), likely_errors=True, backend="cpu"
    )  # fmt: skip
    seconds = time.process_time() - started
    texts = found["junction_aa"].to_pylist()
    others = sorted(set(control["junction_aa"].to_pylist()))
    every = sorted(set(texts) | set(others))
    width = -(-max(map(len, every)) // 8) * 8
    letters = np.array([list(text.encode().ljust(width, b"\0")) for text in every], dtype=np.uint8)
    assert len(np.unique(letter_words(letters), axis=0)) == len(every)
    place = {text: k for k, text in enumerate(every)}
    weights = np.zeros((len(every), 2), dtype=np.int64)
    weights[[place[text] for text in texts], 0] = 1
    weights[[place[text] for text in others], 1] = 1
    lengths = np.array([len(text) for text in every])
    counts = degrees(letters, lengths, np.zeros(len(every), dtype=np.int64), weights)[[place[text] for text in texts]]
    neighbours, of_control = counts[:, 0] - 1, counts[:, 1]
    expected = len(texts) / len(others) * of_control
    p_values = np.where(neighbours > 0, poisson_tail(neighbours, expected), 1.0)
    differences = {
        "degree": difference(neighbours, found["n_neighbors"]),
        "degree in the control": difference(of_control, found["n_control"]),
        "expected": difference(expected, found["E"]), "p": difference(p_values, found["p_enrichment"]),
        "q": difference(benjamini_hochberg(p_values, len(p_values)), found["q_value"]),
    }  # fmt: skip
    return {
        "test": "tcrnet", "rows": len(sample), "clonotypes": len(texts), "tested": len(texts),
        **require_equal("tcrnet", differences, ("degree", "degree in the control")),
        "vdjtools_hits": int((np.asarray(found["q_value"]) < MOST_Q).sum()),
        "hpcvdj_hits": own.hits, "hpcvdj_cpu_seconds": f"{seconds:.2f}",
    }  # fmt: skip


def drawn(number: int, seed: int) -> Any:
    """Distinct drawn junctions, with genes in place of alleles, as vdjtools wants them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    import hpcvdj

    rows = hpcvdj.generate(MODEL, number, seed=seed, productive=True)
    gene = {name: pc.replace_substring_regex(rows[name], r"\*.*", "") for name in ("v_call", "j_call")}
    columns = {
        "v_call": gene["v_call"], "j_call": gene["j_call"], "junction": rows["junction"],
        "junction_aa": rows["junction_aa"],
    }  # fmt: skip
    table = pa.table(columns).group_by(list(columns)).aggregate([]).sort_by([(n, "ascending") for n in columns])
    table = table.append_column("junction_nt", table["junction"])
    table = table.append_column("duplicate_count", pa.array([1] * len(table)))
    return table.append_column("sequence_id", pa.array([f"{seed}_{k}" for k in range(len(table))]))


def rows(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Both tests."""
    import pyarrow.parquet as pq

    import hpcvdj

    sample, control = drawn(options.rows, 1), drawn(options.control_rows, 2)
    pq.write_table(sample, folder / "sample.parquet")
    pq.write_table(control, folder / "control.parquet")
    subprocess.run([options.peer_python, __file__, "--peer", str(folder)], check=True)
    seconds = json.loads((folder / "seconds.json").read_text())
    if seconds["version"] != VERSION:
        sys.exit(f"vdjtools {seconds['version']}: install {VERSION}")
    alice = pq.read_table(folder / "alice.parquet")
    alice = alice.rename_columns([
        f"{name}_other" if name in ("pgen_ball", "q_value") else name for name in alice.column_names
    ])  # fmt: skip
    model = hpcvdj.load_model(MODEL)
    tcrnet = pq.read_table(folder / "tcrnet.parquet")
    found = [alice_row(sample, alice, model), tcrnet_row(sample, control, tcrnet, model)]
    return [row | {"vdjtools_cpu_seconds": f"{seconds[row['test']]:.2f}"} for row in found]


def main() -> None:
    """Measure, compare, and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="peers.csv to write")
    parser.add_argument("--peer-python", help="Python of the environment that has vdjtools and olga")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--control-rows", type=int, default=200_000)
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(options.peer)
        return
    if not (options.output and options.peer_python):
        parser.error("give --output and --peer-python")
    with tempfile.TemporaryDirectory() as folder:
        found = rows(options, Path(folder))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with open(options.output, "w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    for row in found:
        print(row)


if __name__ == "__main__":
    main()
