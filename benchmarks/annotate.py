"""How long does `hpcvdj annotate` take beside vdjmatch on the same tables, and how many false epitopes have both?

python benchmarks/annotate.py --vdjmatch VENV/bin/vdjmatch --output results/annotate/peers.csv

VENV has vdjmatch 0.6.2 (GPL-3.0-or-later: a program of its own here, never a dependency); without it, hpcvdj alone is
measured.  Samples are drawn from olga's human TRB model without selection, so that every hit is by chance; so are the
controls of vdjmatch.  The database is your own file of VDJdb (`--database vdjdb_full.txt`), or drawn, too.  Each sample
is annotated twice by hpcvdj, without and with the cache.  A q-value is that of Benjamini and Hochberg in both.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _common import HPCVDJ, read_rows, record, run

import hpcvdj
from hpcvdj.chance.p_values import benjamini_hochberg
from hpcvdj.repertoires.writers import write_table

MODEL = "human_trb"
MOST_Q, OFTEN = 0.05, 0.05
EPITOPES = 100
CACHED = "hpcvdj, database in the cache"

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


def of_epitopes(path: Path, *names: str) -> dict[str, Any]:
    """What a program found; `names` are its columns of found and expected numbers and of p-values, by epitope."""
    rows = read_rows(path)
    found, expected, p_values = (np.array([own[name] for own in rows], dtype=float) for name in names)
    return {
        "tested": len(p_values), "found": int(found.sum()), "expected": float(expected.sum()),
        "z_of_epitopes": deviation(found, expected), "p_below_0.05": int((p_values <= OFTEN).sum()),
        "smallest_p": float(p_values.min(initial=1.0)),
        "called": int((benjamini_hochberg(p_values, len(p_values)) <= MOST_Q).sum()),
    }  # fmt: skip


def deviation(found: Any, expected: Any) -> float:
    """The root mean square of (found - expected) / sqrt(expected), of epitopes with an expected number of 1 or more."""
    enough = expected >= 1
    squares = (found[enough] - expected[enough]) ** 2 / expected[enough]
    return float(np.sqrt(squares.mean())) if enough.any() else float("nan")


def by_hpcvdj(folder: Path, sample: Path, database: Path) -> dict[str, Any]:
    done = run([*HPCVDJ, "annotate", sample, "--database", database, "-m", MODEL, "-o", folder / "annotated", "-q",
                "--kappa", 1, "--species", "human", "--backend", "cpu", "--cache", folder / "cache",
                "--overwrite"])  # fmt: skip
    table = folder / "annotated" / f"{sample.stem}.epitopes.tsv"
    return done.used | of_epitopes(table, "found", "expected", "p_value")


def by_vdjmatch(folder: Path, sample: Path, database: Path, options: argparse.Namespace) -> dict[str, Any]:
    """`repertoire-enrichment`, whose expected number is the mean of its 200 mock samples."""
    metadata, prefix = folder / "metadata.tsv", folder / f"vdjmatch_{sample.stem}"
    metadata.write_text(f"sample_id\tpath\n{sample.stem}\t{sample}\n")
    done = run([options.vdjmatch, "repertoire-enrichment", metadata, "--vdjdb", database, "--control",
                folder / "control.tsv", "--species", "human", "--locus", "TRB", "--threads", 1, "--pgen-mismatches",
                options.pgen_mismatches, "--output-prefix", prefix])  # fmt: skip
    table = Path(f"{prefix}.summary.tsv")
    return done.used | of_epitopes(table, "matched_records", "mock_mean_records", "p_records")


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each sample and program."""

    def drawn(number: int, seed: int) -> pa.Table:
        return hpcvdj.generate(MODEL, number, seed=seed, productive=True, backend="cpu")

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache").mkdir()
        database = Path(options.database or folder / "drawn.tsv").absolute()
        if not options.database:
            write_database(database, drawn(options.records, options.seed), options.seed)
        sizes = {"control": options.control, **{f"s{k}": options.junctions for k in range(options.samples)}}
        for number, (sample, size) in enumerate(sizes.items(), options.seed + 1):
            write_table(folder / f"{sample}.tsv", drawn(size, number).to_batches(), overwrite=False)
        for sample in list(sizes)[1:]:
            given = folder, folder / f"{sample}.tsv", database
            # The first command makes the database's cache.
            for program in ("hpcvdj", CACHED) if sample == "s0" else (CACHED,):
                yield {"program": program, "junctions": options.junctions, **by_hpcvdj(*given)}
            if options.vdjmatch:
                yield {"program": "vdjmatch", "junctions": options.junctions, **by_vdjmatch(*given, options)}


if __name__ == "__main__":
    record(
        __doc__, measured,
        vdjmatch=("", "the program vdjmatch; without it, hpcvdj alone is measured"),
        database=("", "a file of VDJdb; by default, drawn records"),
        junctions=(5_000, "of each sample"),
        samples=(2, "samples"),
        control=(40_000, "junctions of vdjmatch's control"),
        records=(5_000, "of a drawn database"),
        pgen_mismatches=(0, "of vdjmatch's probabilities, by which it draws mock samples: 0 or 1"),
        seed=(1, "of what is drawn"),
    )  # fmt: skip
