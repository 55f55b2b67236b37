"""SHA-256 of what results say of their input, in an order that depends on the input alone, read with h5py alone.

python results/same_numbers/digest.py RESULT.h5 ...

Of a result of `hpcvdj count`: the data row, sequence_id, calls, CDR3, repertoire and every counter of each counted row,
and the data row and sequence_id of each excluded row.  Of a result of `hpcvdj motifs compare`: every counter above the
diagonal, or strand, sequences, counters and score of each edge.  The digest does not depend on the version of the file,
on ranks, slices or tiles.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import h5py
import numpy as np

COLUMNS = ("row", "sequence_id", "v_call", "j_call", "cdr3", "repertoire_id")


def digest(path: Path) -> str:
    """The digest of a result file."""
    sha = hashlib.sha256()
    with h5py.File(path) as file:
        for part in _motifs(file) if "excluded" not in file else _counts(file):
            sha.update(part)
    return sha.hexdigest()


def _counts(file: h5py.File) -> list[bytes]:
    sequences, excluded = file["sequences"], file["excluded"]
    order, order_of_excluded = np.argsort(sequences["row"][:]), np.argsort(excluded["row"][:])
    return [
        *(_bytes(sequences[name][:][order]) for name in COLUMNS if name in sequences),
        np.ascontiguousarray(file["counters"][:][order]).tobytes(),
        *(_bytes(excluded[name][:][order_of_excluded]) for name in ("row", "sequence_id")),
    ]


def _motifs(file: h5py.File) -> list[bytes]:
    if "counters" in file:
        return [np.triu(file["counters"][:], 1).tobytes()]
    edges = {name: file["edges"][name][:] for name in ("strand", "row", "column", "counters", "score")}
    order = np.lexsort((edges["column"], edges["row"], edges["strand"]))
    return [np.ascontiguousarray(values[order]).tobytes() for values in edges.values()]


def _bytes(values: np.ndarray) -> bytes:
    """Values, of text without the padding."""
    return b"\n".join(values.tolist()) if values.dtype.kind in "SO" else values.tobytes()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(digest(Path(argument)), Path(argument).stem)
