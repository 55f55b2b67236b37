"""SHA-256 of what results say of their input's rows, in the order of the input, read with h5py alone.

python results/same_numbers/digest.py RESULT.h5 ...

The digest covers the data row, sequence_id, calls, CDR3, repertoire and every counter of each counted row, and the data
row and sequence_id of each excluded row.  It does not depend on the version of the file, on ranks, or on slices.
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
        sequences, excluded = file["sequences"], file["excluded"]
        order = np.argsort(sequences["row"][:])
        for name in COLUMNS:
            if name in sequences:
                sha.update(_bytes(sequences[name][:][order]))
        sha.update(np.ascontiguousarray(file["counters"][:][order]).tobytes())
        order = np.argsort(excluded["row"][:])
        for name in ("row", "sequence_id"):
            sha.update(_bytes(excluded[name][:][order]))
    return sha.hexdigest()


def _bytes(values: np.ndarray) -> bytes:
    """Values, of text without the padding."""
    return b"\n".join(values.tolist()) if values.dtype.kind in "SO" else values.tobytes()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(digest(Path(argument)), Path(argument).stem)
