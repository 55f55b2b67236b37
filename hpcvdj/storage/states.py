"""The state of an unfinished run in one file: facts and arrays, which are read as they were written or not at all."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.storage.opening import MISREAD

Arrays = Mapping[str, NDArray[Any]]

DAMAGED_STATE = (*MISREAD, EOFError, zipfile.BadZipFile)
"""What reading a damaged state raises."""


def state_bytes(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """JSON values and arrays as a file of NumPy (.npz), with the SHA-256 of them all."""
    named = {**arrays, "meta": np.array(json.dumps(facts))}
    stream = io.BytesIO()
    np.savez(stream, sha256=np.array(digest_of(named)), **named)  # type: ignore[arg-type]
    return stream.getvalue()


def read_state(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `state_bytes` was given; one of `DAMAGED_STATE` if anything was changed."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        named = dict(stored)
    if str(named.pop("sha256")) != digest_of(named):
        raise ValueError("its values are not those that were saved")
    return json.loads(str(named.pop("meta"))), named


def digest_of(named: Arrays) -> str:
    """SHA-256 of arrays: their names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(named):
        values = np.ascontiguousarray(named[name])
        digest.update(f"{name} {values.dtype.str} {named[name].shape}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
