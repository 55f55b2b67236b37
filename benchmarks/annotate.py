"""How long does `hpcvdj annotate` take beside vdjmatch on the same tables, and how many false epitopes have both?

python benchmarks/annotate.py --vdjmatch VENV/bin/vdjmatch --output results/annotate/peers.csv

VENV has vdjmatch 0.6.2 (GPL-3.0-or-later: a program of its own here, never a dependency); without it, hpcvdj alone is
measured.  Samples are drawn from olga's human TRB model without selection, so that every hit is by chance; so are the
controls of vdjmatch.  The database is your own file of VDJdb (`--database vdjdb_full.txt`), or drawn, too.  Each sample
is annotated twice by hpcvdj, without and with the cache.  A q-value is that of Benjamini and Hochberg in both.

With `--parts 3`, hpcvdj's processor seconds are measured by part instead, so many times, on one thread: of one sample
the first time and from the cache, and of two samples from the cache.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _common import HPCVDJ, Finished, record, run

import hpcvdj
from hpcvdj.chance.p_values import benjamini_hochberg
from hpcvdj.repertoires.writers import write_table

MODEL = "human_trb"
MOST_Q, OFTEN = 0.05, 0.05
EPITOPES = 100

HEADER = ("cdr3.alpha", "v.alpha", "j.alpha", "cdr3.beta", "v.beta", "d.beta", "j.beta", "species", "mhc.a", "mhc.b",
          "mhc.class", "antigen.epitope", "antigen.gene", "antigen.species", "reference.id")  # fmt: skip
"""The columns of a chunk of VDJdb."""


def write_database(path: Path, rows: pa.Table, seed: int) -> None:
    """Drawn junctions as a chunk of VDJdb, with epitopes of uneven sizes."""
    rng = np.random.default_rng(seed)
    residues = list("ACDEFGHIKLMNPQRSTVWY")
    epitopes = ["".join(rng.choice(residues, 9)) for _ in range(EPITOPES)]
    epitope = (EPITOPES * rng.random(len(rows)) ** 2).astype(int)
    with path.open("w") as stream:
        stream.write("\t".join(HEADER) + "\n")
        for row, number in zip(rows.to_pylist(), epitope.tolist(), strict=True):
            v, j = (row[name].partition("*")[0] for name in ("v_call", "j_call"))
            stream.write("\t".join(["", "", "", row["junction_aa"], v, "", j, "HomoSapiens", "HLA-A*02", "B2M", "MHCI",
                                    epitopes[number], "gene", "drawn", f"PMID:{number + 1}"]) + "\n")  # fmt: skip


def rows_of(path: Path) -> list[dict[str, str]]:
    """A table between tabs."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def row(program: str, junctions: int, done: Finished, found: Any, expected: Any, p_values: Any) -> dict[str, Any]:
    """The row of a program and a sample; arrays are of its epitopes."""
    p_values = np.array(p_values, dtype=float)
    found, expected = np.array(found, dtype=float), np.array(expected, dtype=float)
    return {
        "program": program, "junctions": junctions, **done.used, "tested": len(p_values), "found": int(found.sum()),
        "expected": float(expected.sum()), "z_of_epitopes": deviation(found, expected),
        "p_below_0.05": int((p_values <= OFTEN).sum()), "smallest_p": float(p_values.min(initial=1.0)),
        "called": int((benjamini_hochberg(p_values, len(p_values)) <= MOST_Q).sum()),
    }  # fmt: skip


def deviation(found: Any, expected: Any) -> float:
    """The root mean square of (found - expected) / sqrt(expected), of epitopes with an expected number of 1 or more."""
    enough = expected >= 1
    squares = (found[enough] - expected[enough]) ** 2 / expected[enough]
    return float(np.sqrt(squares.mean())) if enough.any() else float("nan")


def hpcvdj_row(program: str, folder: Path, sample: Path, database: Path, junctions: int) -> dict[str, Any]:
    done = run([*HPCVDJ, "annotate", sample, "--database", database, "-m", MODEL, "-o", folder / "annotated", "-q",
                "--kappa", 1, "--species", "human", "--backend", "cpu", "--cache", folder / "cache",
                "--overwrite"])  # fmt: skip
    rows = rows_of(folder / "annotated" / f"{sample.stem}.epitopes.tsv")
    return row(program, junctions, done, *([own[name] for own in rows] for name in ("found", "expected", "p_value")))


def vdjmatch_row(
    program: str, folder: Path, sample: Path, database: Path, junctions: int, options: argparse.Namespace
) -> dict[str, Any]:
    """`repertoire-enrichment`, whose expected number is the mean of its 200 mock samples."""
    metadata, prefix = folder / "metadata.tsv", folder / f"vdjmatch_{sample.stem}"
    metadata.write_text(f"sample_id\tpath\n{sample.stem}\t{sample}\n")
    done = run([options.vdjmatch, "repertoire-enrichment", metadata, "--vdjdb", database, "--control",
                folder / "control.tsv", "--species", "human", "--locus", "TRB", "--threads", 1, "--pgen-mismatches",
                options.pgen_mismatches, "--output-prefix", prefix])  # fmt: skip
    rows = rows_of(Path(f"{prefix}.summary.tsv"))
    names = ("matched_records", "mock_mean_records", "p_records")
    return row(program, junctions, done, *([own[name] for own in rows] for name in names))


PARTS = {
    "database": "hpcvdj.repertoires.databases:read_database",
    "table_and_fit": "hpcvdj.chance.question:read_rows",
    "near_records": "hpcvdj.annotation.question:prepared",
    "draws": "hpcvdj.annotation.question:depth_of",
    "annotation": "hpcvdj.annotation.question:AnnotationQuestion.answer",
}
"""Functions by the part that they are; `annotation` is what its function needs beside the two before it."""


def rows_of_parts(folder: Path, samples: list[Path], database: Path, junctions: int) -> Iterator[dict[str, Any]]:
    """The seconds of each part, without and with the database in an empty cache; `other` is all else."""
    cache = Path(tempfile.mkdtemp(dir=folder))
    for state, given in (("first", samples[:1]), ("cached", samples[:1]), ("cached", samples)):
        seconds = folder / "seconds.json"
        words = ["annotate", *given, "--database", database, "-m", MODEL, "-o", folder / "annotated", "-q", "--species",
                 "human", "--backend", "cpu", "--cache", cache, "--overwrite"]  # fmt: skip
        script = Path(__file__).with_name("_parts.py")
        done = run([sys.executable, script, seconds, *PARTS.values(), "--", *words], NUMBA_NUM_THREADS="1")
        parts = json.loads(seconds.read_text())
        found = {"start": parts["start"], **{name: parts[function] for name, function in PARTS.items()}}
        found["annotation"] -= found["near_records"] + found["draws"]
        other = done.cpu - sum(found.values())
        yield {"state": state, "samples": len(given), "junctions": junctions, **done.used, **found, "other": other}


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        sizes = {"control": options.control, **{f"s{k}": options.junctions for k in range(options.samples)}}
        if options.database:
            database = Path(options.database).absolute()
        else:
            database = folder / "drawn.tsv"
            drawn = hpcvdj.generate(MODEL, options.records, seed=options.seed, productive=True, backend="cpu")
            write_database(database, drawn, options.seed)
        for number, (sample, size) in enumerate(sizes.items(), options.seed + 1):
            rows = hpcvdj.generate(MODEL, size, seed=number, productive=True, backend="cpu")
            write_table(folder / f"{sample}.tsv", rows.to_batches(), overwrite=False)
        for _ in range(options.parts):
            yield from rows_of_parts(folder, [folder / f"s{k}.tsv" for k in (0, 1)], database, options.junctions)
        if options.parts:
            return
        for sample in list(sizes)[1:]:
            given = folder, folder / f"{sample}.tsv", database, options.junctions
            yield hpcvdj_row("hpcvdj" if sample == "s0" else "hpcvdj, database in the cache", *given)
            if sample == "s0":
                yield hpcvdj_row("hpcvdj, database in the cache", *given)
            if options.vdjmatch:
                yield vdjmatch_row("vdjmatch", *given, options)


if __name__ == "__main__":
    record(
        __doc__,
        measured,
        vdjmatch=("", "the program vdjmatch; without it, hpcvdj alone is measured"),
        database=("", "a file of VDJdb; by default, drawn records"),
        junctions=(5_000, "of each sample"),
        samples=(2, "samples"),
        control=(40_000, "junctions of vdjmatch's control"),
        records=(5_000, "of a drawn database"),
        pgen_mismatches=(0, "of vdjmatch's probabilities, by which it draws mock samples: 0 or 1"),
        seed=(1, "of what is drawn"),
        parts=(0, "how often to measure the parts of hpcvdj"),
    )
