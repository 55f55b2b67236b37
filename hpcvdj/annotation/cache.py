"""The union of a database and its probabilities, kept in a file for the next run.

The file has the SHA-256 of a line of JSON, this line, and arrays as they are in memory, each with its CRC-32.  Its name
is made of all that the numbers depend on.  A file that is damaged is made again.
"""

import hashlib
import json
import logging
import mmap
import zlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hpcvdj
from hpcvdj.annotation.centres import Centres, Epitope, centres_of
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.annotation.union import Probabilities, Union, probabilities, union_of
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.repertoires.databases import Records
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.files import atomic_path

log = logging.getLogger(__name__)

Prepared = tuple[Union, Probabilities]

_FORMAT = 3
_ALIGNED = 64
"""Arrays begin at multiples of so many bytes."""


def centres_to_prepare(
    records: Records, of: DatabaseSettings, settings: AnnotationSettings, model: Model
) -> Centres | None:
    """The records that take part; None if a file of the cache has what is made of them."""
    path = _path(records, of, settings, model)
    if path is not None and path.exists():
        return None
    return centres_of(records, model, of, settings.match, settings.decoys)


def prepared(
    records: Records, of: DatabaseSettings, settings: AnnotationSettings, model: Model, run: Run,
    centres: Centres | None = None,
) -> tuple[Union | None, Probabilities | None]:  # fmt: skip
    """The union of a database and its probabilities, on root: those of the cache, or made and kept there.

    centres  those of `records`, if they are known
    """

    def made() -> Prepared:
        path = _path(records, of, settings, model)
        kept = _read(path) if path is not None else None
        if kept is not None:
            return kept
        own = centres or centres_of(records, model, of, settings.match, settings.decoys)
        union, pgen = union_of(own, settings.mismatches, model)
        p = probabilities(union, pgen, model, model.selection if settings.selects else None)
        if path is not None:
            _keep(path, union, p)
        return union, p

    return run.root_steps(made, NOTHING_YET) or (None, None)


def _path(records: Records, of: DatabaseSettings, settings: AnnotationSettings, model: Model) -> Path | None:
    """The file of what is made of a database with such settings."""
    if settings.cache is None:
        return None
    chosen = [settings.match, settings.mismatches, settings.decoys, settings.selects]
    of_model = [model.facts(), model.joint, productive_probability(model)]
    said = repr([_FORMAT, hpcvdj.__version__, records.sha256, records.kind.name, asdict(of), chosen, of_model])
    return Path(settings.cache) / f"annotate_{hashlib.sha256(said.encode()).hexdigest()[:32]}.cache"


def _arrays(union: Union, p: Probabilities) -> dict[str, NDArray[Any]]:
    every = {field.name: getattr(part, field.name) for part in (union, p) for field in fields(part)}
    return {name: value for name, value in every.items() if isinstance(value, np.ndarray)}


def _keep(path: Path, union: Union, p: Probabilities) -> None:
    arrays = {name: np.ascontiguousarray(values) for name, values in _arrays(union, p).items()}
    head = {
        "arrays": {name: [values.dtype.str, values.shape, zlib.crc32(values.data)] for name, values in arrays.items()},
        "centres": asdict(union.centres) | {"kind": union.centres.kind.tolist()},
        "selected": p.selected, "limits": p.limits,
    }  # fmt: skip
    line = json.dumps(head, default=np.ndarray.tolist).encode()
    with atomic_path(path, overwrite=True) as temporary, open(temporary, "wb") as stream:
        stream.write(f"{hashlib.sha256(line).hexdigest()}\n".encode() + line + b"\n")
        for values in arrays.values():
            stream.write(b"\0" * (-stream.tell() % _ALIGNED))
            stream.write(values.data)


def _read(path: Path) -> Prepared | None:
    """What a file has; None if there is none, or a damaged one."""
    try:
        with open(path, "rb") as stream:
            digest, line = stream.readline(), stream.readline().removesuffix(b"\n")
            if digest.decode().strip() != hashlib.sha256(line).hexdigest():
                raise ValueError("its head is damaged")
            return _parsed(json.loads(line), mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), stream.tell())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s: a damaged file of the cache (%s); it is computed again", path, error)
        return None


def _parsed(head: dict[str, Any], data: mmap.mmap, begin: int) -> Prepared:
    arrays: dict[str, NDArray[Any]] = {}
    for name, (kind, shape, check) in head["arrays"].items():
        begin += -begin % _ALIGNED
        arrays[name] = np.frombuffer(data, kind, int(np.prod(shape)), begin).reshape(shape)
        if zlib.crc32(arrays[name].data) != check:
            raise ValueError(f"{name} is damaged")
        begin += arrays[name].nbytes
    said = head["centres"]
    said["classes"] = [(_alleles(v), _alleles(j)) for v, j in said["classes"]]
    said["kind"] = np.array(said["kind"], dtype=np.int64)
    said["epitopes"] = [
        Epitope(**own | {"centres": np.array(own["centres"], dtype=np.int64)}) for own in said["epitopes"]
    ]
    of_p = {field.name: arrays.pop(field.name) for field in fields(Probabilities) if field.name in arrays}
    limits = head["limits"][0], head["limits"][1]
    return Union(Centres(**said), **arrays), Probabilities(**of_p, selected=head["selected"], limits=limits)


def _alleles(said: dict[str, Any]) -> Alleles:
    return Alleles(**said | {"places": tuple(said["places"])})
