#!/usr/bin/env python3
"""Make the model human_trb_m15 of this folder from the out-of-frame rows of one donor: see README.md.

The table is not part of the repository: README.md says where it comes from.  The model has no number of another model:
it starts from a germline table, with everything equally likely.
"""

import argparse
import csv
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
GERMLINE = FOLDER.parent / "germline" / "human_trb.tsv"
NAME = "human_trb_m15"
PURPOSE = "an example of hpcvdj infer, from 2,036 junctions of one donor: do not trust its tests for other people"
KEPT_FACTS = ("format", "rows_counted", "rows_held_out", "log_likelihood_per_row", "held_out_log_likelihood_per_row",
              "warnings")  # fmt: skip
FILES = ("model_params.txt", "model_marginals.txt", "V_gene_CDR3_anchors.csv", "J_gene_CDR3_anchors.csv")
FACTS = "inference.json"

KEPT_BASES = 6
"""Of J before the codon of Phe 118, which deletions do not reach: other bases there are sequencing errors."""

TIMES_THE_READS = 5
"""A row out of frame is an error of one of its length with so many times the reads.  `hpcvdj infer` had this rule when
the model was made; today's is another one, which would leave out 29 rows in place of 46."""

PARAMETERS = "v_choice j_choice d_gene v_3_del d_del j_5_del vd_ins dj_ins vd_dinucl dj_dinucl"

Row = dict[str, str]


def rows_to_infer_from(table: Path) -> list[Row]:
    """The rows of a table without those out of frame whose J does not end as in the germline."""
    ends: dict[str, set[str]] = {}
    with open(GERMLINE) as stream:
        for allele in csv.DictReader(stream, delimiter="\t"):
            if allele["segment_type"] == "J":
                ends.setdefault(allele["allele"].partition("*")[0], set()).add(allele["sequence"][-KEPT_BASES:])
    with gzip.open(table, "rt") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return [
        row for row in rows
        if len(row["junction"]) % 3 == 0 or row["junction"][-KEPT_BASES - 3 : -3] in ends.get(row["j_call"], ())
    ]  # fmt: skip


def without_errors(rows: Sequence[Row]) -> list[Row]:
    """The rows, those out of frame that are one base away from a larger one of their V and J without a junction.

    A base inserted into or deleted from a row in frame with more reads, or exchanged in one out of frame with
    `TIMES_THE_READS` as many.  The rows stay where they are, since those that are held out are drawn by their number.
    """
    most: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = row["v_call"], row["j_call"], row["junction"]
        most[key] = max(most.get(key, 0), int(row["duplicate_count"]))

    def is_error(row: Row) -> bool:
        text, reads, genes = row["junction"], int(row["duplicate_count"]), (row["v_call"], row["j_call"])
        if len(text) % 3 == 0:
            return False
        parts = [(text[:k], text[k:]) for k in range(len(text) + 1)]
        indels = {a + base + b for a, b in parts for base in "ACGT"} | {a + b[1:] for a, b in parts}
        exchanged = {a + base + b[1:] for a, b in parts[:-1] for base in "ACGT"} - {text}
        in_frame = max(most.get((*genes, own), 0) for own in indels if len(own) % 3 == 0)
        return in_frame > reads or max(most.get((*genes, own), 0) for own in exchanged) >= TIMES_THE_READS * reads

    return [{**row, "junction": ""} if is_error(row) else row for row in rows]


def write(rows: Sequence[Row], path: Path) -> None:
    """Write rows as an AIRR table."""
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def infer(table: Path, output: Path, *options: str | Path) -> None:
    """Run `hpcvdj infer` on all rows out of frame that have a junction."""
    words = [
        sys.executable,
        "-m",
        "hpcvdj",
        "infer",
        table,
        "-o",
        output,
        "--backend",
        "cpu",
        "--likely-errors",
        *options,
    ]
    subprocess.run(list(map(str, words)), check=True)


def make(rows: Sequence[Row], folder: Path) -> Path:
    """The folder of a model of rows, in a folder for files on the way.

    Few rows do not show what is rare, so the result is 95 % what they say and 5 % uniform: the start of a second
    inference, of which only the start is evaluated.
    """
    table, first, smoothed = folder / "rows.tsv", folder / "first", folder / "smoothed"
    write(without_errors(rows), table)
    infer(table, first, "-g", GERMLINE)
    only = [word for name in PARAMETERS.split() for word in ("--only", name)]
    infer(table, smoothed, "-m", first, "--start", "mixed", "--iterations", "1", "--hold-out", "0", *only)
    return smoothed


def write_facts(source: Path, table: Path, target: Path) -> None:
    """Write inference.json with the model's purpose, and what of its inference does not speak of a machine."""
    facts = json.loads((source / FACTS).read_text())
    kept = {name: facts[name] for name in KEPT_FACTS}
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    start = f"the germline table {GERMLINE.stem}"
    own = {"purpose": PURPOSE, "tables": [[table.name, digest]], "start": {"name": start}}
    (target / FACTS).write_text(json.dumps(kept | own, indent=1, ensure_ascii=False) + "\n")


def copy_model(source: Path, target: Path, files: Iterable[str] = FILES) -> None:
    """Copy the files of a model, and nothing that has junctions or speaks of a machine."""
    target.mkdir(parents=True, exist_ok=True)
    for name in files:
        shutil.copyfile(source / name, target / name)


def main() -> None:
    """Make the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="the table of README.md, as .tsv.gz")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER / NAME, help="folder to write")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = make(rows_to_infer_from(arguments.table), Path(folder))
        copy_model(made, arguments.output)
        write_facts(made, arguments.table, arguments.output)


if __name__ == "__main__":
    main()
