"""The state of an unfinished run in one file: facts and arrays, with a checksum."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hpcvdj.storage.damage import MISREAD

Arrays = Mapping[str, NDArray[Any]]

DAMAGED_STATE = (*MISREAD, EOFError, zipfile.BadZipFile)
"""Exceptions that reading a damaged state raises."""


def state_bytes(facts: Mapping[str, Any], arrays: Arrays, identity: Mapping[str, Any] | None = None) -> bytes:
    """Return JSON values and arrays as `write_state` writes them."""
    stream = io.BytesIO()
    write_state(stream, facts, arrays, identity)
    return stream.getvalue()


def write_state(
    stream: BinaryIO, facts: Mapping[str, Any], arrays: Arrays, identity: Mapping[str, Any] | None = None
) -> None:
    """Write JSON values and arrays as a NumPy file (.npz), with the SHA-256 of them and of the run's identity."""
    named = {**arrays, "meta": np.array(json.dumps(facts))}
    np.savez(stream, sha256=np.array(digest_of(named, identity)), **named)  # type: ignore[arg-type]


def read_state(
    data: bytes | BinaryIO, identity: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and arrays that `write_state` wrote.

    Raises one of `DAMAGED_STATE` if anything was changed, or if the run has another identity.
    """
    with np.load(io.BytesIO(data) if isinstance(data, bytes) else data, allow_pickle=False) as stored:
        named = dict(stored)
    if str(named.pop("sha256")) != digest_of(named, identity):
        raise ValueError("its values are not those that this run saved")
    return json.loads(str(named.pop("meta"))), named


def digest_of(named: Arrays, identity: Mapping[str, Any] | None = None) -> str:
    """Return the SHA-256 of arrays (names, types, shapes, values) and of the JSON values that identify their run."""
    digest = hashlib.sha256(json.dumps(dict(identity or {}), sort_keys=True).encode())
    for name in sorted(named):
        values = np.ascontiguousarray(named[name])
        digest.update(f"{name} {values.dtype.str} {named[name].shape}\n".encode())
        digest.update(values.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
