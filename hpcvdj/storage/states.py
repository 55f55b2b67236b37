"""Facts and arrays in one file, with checksums: what an unfinished run has done, and what is kept for further runs.

The file has the SHA-256 of an identity and of a line of JSON, this line, and arrays as they are in memory.  The line
has the facts, and of each array its type, shape and CRC-32.
"""

import hashlib
import json
import math
import mmap
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""Facts, which are JSON values, and arrays by name."""

_ALIGNED = 64
"""Arrays begin at multiples of this number of bytes."""


def write_state(path: Path, facts: Mapping[str, Any], arrays: Arrays, identity: Any = None) -> None:
    """Write facts and arrays; only who knows the identity, any JSON value, reads them again."""
    ordered = {name: np.asarray(values, order="C") for name, values in arrays.items()}
    described = {name: [values.dtype.str, values.shape, zlib.crc32(_bytes(values))] for name, values in ordered.items()}
    line = json.dumps({"facts": facts, "arrays": described}, default=np.ndarray.tolist).encode()
    with open(path, "wb") as stream:
        stream.write(f"{_digest(line, identity)}\n".encode() + line + b"\n")
        for values in ordered.values():
            stream.write(b"\0" * (-stream.tell() % _ALIGNED))
            stream.write(_bytes(values))


def read_state(path: Path, identity: Any = None, *, checked: bool = True) -> State:
    """Return the facts and arrays that `write_state` wrote.  The arrays are views of the file.

    checked  compare the checksums of the arrays, too

    Raises one of `hpcvdj.storage.damage.MISREAD` if the file was changed, or has another identity.
    """
    with open(path, "rb") as stream:
        digest, line = stream.readline(), stream.readline().removesuffix(b"\n")
        if digest != f"{_digest(line, identity)}\n".encode():
            raise ValueError("it was changed, or is of another run")
        data, begin = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), stream.tell()
    head, arrays = json.loads(line), dict[str, NDArray[Any]]()
    for name, (kind, shape, check) in head["arrays"].items():
        begin += -begin % _ALIGNED
        arrays[name] = values = np.frombuffer(data, kind, math.prod(shape), begin).reshape(shape)
        if checked and zlib.crc32(_bytes(values)) != check:
            raise ValueError(f"{name} was changed")
        begin += values.nbytes
    return head["facts"], arrays


def _bytes(values: NDArray[Any]) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _digest(line: bytes, identity: Any) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode() + b"\n" + line).hexdigest()
