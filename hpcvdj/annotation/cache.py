"""The union of a database and its probabilities, kept in a file for the next run.

The name of the file is a hash of all that the numbers depend on.  A damaged file is computed again.
"""

import hashlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hpcvdj
from hpcvdj.annotation.centres import Centres, Epitope, centres_of
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.annotation.union import Probabilities, Union, probabilities, union_of
from hpcvdj.errors import log
from hpcvdj.recombination.models import Alleles, Model
from hpcvdj.recombination.productive import productive_probability
from hpcvdj.repertoires.databases import Records
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.states import read_state, write_state

Prepared = tuple[Union, Probabilities]

_FORMAT = 6


def centres_to_prepare(
    records: Records, of: DatabaseSettings, settings: AnnotationSettings, model: Model
) -> Centres | None:
    """The records that take part; None if the cache has a file of their union."""
    path = _path(records, of, settings, model)
    if path is not None and path.exists():
        return None
    return centres_of(records, model, of, settings.match, settings.decoys)


def prepared(
    records: Records, of: DatabaseSettings, settings: AnnotationSettings, model: Model, run: Run,
    centres: Centres | None = None,
) -> tuple[Union | None, Probabilities | None]:  # fmt: skip
    """The union of a database and its probabilities, on root: read from the cache, or computed and kept there.

    centres  as of `centres_to_prepare`, if they are known
    """

    def prepare() -> Prepared:
        path = _path(records, of, settings, model)
        kept = _read(path) if path is not None else None
        if kept is not None:
            return kept
        used = centres or centres_of(records, model, of, settings.match, settings.decoys)
        union, pgen = union_of(used, settings.mismatches, model)
        p = probabilities(union, pgen, model, model.selection if settings.selects else None)
        if path is not None:
            _keep(path, union, p)
        return union, p

    return run.root_steps(prepare, NOTHING_YET) or (None, None)


def _path(records: Records, of: DatabaseSettings, settings: AnnotationSettings, model: Model) -> Path | None:
    """The file of a database with these settings; None without a cache."""
    if settings.cache is None:
        return None
    chosen = [settings.match, settings.mismatches, settings.decoys, settings.selects]
    of_model = [model.facts(), model.joint, productive_probability(model)]
    identity = repr([_FORMAT, hpcvdj.__version__, records.sha256, records.kind.name, asdict(of), chosen, of_model])
    return Path(settings.cache) / f"annotate_{hashlib.sha256(identity.encode()).hexdigest()[:32]}.cache"


def _keep(path: Path, union: Union, p: Probabilities) -> None:
    fields_of = {field.name: getattr(part, field.name) for part in (union, p) for field in fields(part)}
    arrays = {name: value for name, value in fields_of.items() if isinstance(value, np.ndarray)}
    facts = {"centres": asdict(union.centres), "selected": p.selected, "limits": p.limits}
    with atomic_path(path, overwrite=True) as temporary:
        write_state(temporary, facts, arrays)


def _read(path: Path) -> Prepared | None:
    """The contents of a file; None if there is no file, or if it is damaged."""
    try:
        return _parsed(*read_state(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s: a damaged file of the cache (%s); it is computed again", path, error)
        return None


def _parsed(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Prepared:
    centres = facts["centres"]
    centres["classes"] = [(_alleles(v), _alleles(j)) for v, j in centres["classes"]]
    centres["kind"] = np.array(centres["kind"], dtype=np.int64)
    for epitope in centres["epitopes"]:
        epitope["centres"] = np.array(epitope["centres"], dtype=np.int64)
    centres["epitopes"] = [Epitope(**epitope) for epitope in centres["epitopes"]]
    of_p = {field.name: arrays.pop(field.name) for field in fields(Probabilities) if field.name in arrays}
    limits = facts["limits"][0], facts["limits"][1]
    return Union(Centres(**centres), **arrays), Probabilities(**of_p, selected=facts["selected"], limits=limits)


def _alleles(values: dict[str, Any]) -> Alleles:
    return Alleles(**values | {"places": tuple(values["places"])})
