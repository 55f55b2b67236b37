"""Write golden.npz: generation probabilities by OLGA 1.3.0 of junctions that were drawn from its models.

Run by hand, from the repository, with OLGA installed:

python -m tests.kernels.pgen.make_golden
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np

from hpcvdj.recombination.alphabet import translate
from hpcvdj.recombination.igor import OLGA_FOLDERS, PUBLISHED, load_model
from tests.kernels.pgen.models import Query, queries
from tests.kernels.pgen.olga_peer import VERSION, Olga

GOLDEN = Path(__file__).with_name("golden.npz")

ROWS, ROWS_OF_IGH = 60, 12
"""Junctions of a locus; OLGA needs about a second for each of IGH."""

TEXTS = ("locus", "junction", "v_call", "j_call", "mask", "origin")

SEED = 7


def values(name: str, rows: list[Query], *, complete: bool) -> np.ndarray:
    """OLGA's values, float64 [rows, 2]: of nucleotides and of amino acids."""
    olga = Olga(name, complete=complete)
    amino_acids = translate(row.junction for row in rows)
    return np.array(
        [
            (olga.nt(row.junction, row.v_call, row.j_call), olga.aa(text, row.v_call, row.j_call))
            for row, text in zip(rows, amino_acids, strict=True)
        ]
    )


def loci() -> Iterator[tuple[str, list[Query]]]:
    """The junctions of each locus."""
    for name in OLGA_FOLDERS:
        yield name, queries(load_model(f"{name}{PUBLISHED}"), ROWS_OF_IGH if name.endswith("igh") else ROWS, SEED)


def main() -> None:
    """Write the file; ends if another version of OLGA is installed."""
    if metadata.version("olga") != VERSION:
        sys.exit(f"olga {metadata.version('olga')} is installed; the values are those of {VERSION}")
    columns: dict[str, list[str]] = {name: [] for name in TEXTS}
    shipped, complete = [], []
    for name, rows in loci():
        for row in rows:
            for column, text in {"locus": name, **vars(row)}.items():
                columns[column].append(text)
        shipped.append(values(name, rows, complete=False))
        complete.append(values(name, rows, complete=True))
        print(f"{name}: {len(rows)} junctions", flush=True)
    digests = {f"model_{name}": np.array(load_model(f"{name}{PUBLISHED}").digest) for name in OLGA_FOLDERS}
    texts = {column: np.array(own) for column, own in columns.items()}
    np.savez_compressed(
        GOLDEN, **texts, **digests, shipped=np.concatenate(shipped), complete=np.concatenate(complete)
    )  # fmt: skip
    print(f"written {GOLDEN.name}: {GOLDEN.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
