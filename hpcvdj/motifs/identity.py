"""Which comparison a result or a folder of tiles is of: what two runs must have in common."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpcvdj.errors import InputError
from hpcvdj.motifs.config import MotifConfig
from hpcvdj.motifs.results import MotifResult
from hpcvdj.motifs.scores import Scoring


def identity_of(config: MotifConfig, digest: str, sequence_field: str, marks: Scoring) -> dict[str, Any]:
    """What a run has in common with one that goes on with its tiles; ranks, method and backend may differ."""
    selection = asdict(config.selection) if config.selection else "all pairs"
    return {
        "sequences_sha256": digest,
        "sequence_field": sequence_field,
        "k": config.k,
        "d": config.d,
        "strands": config.strands,
        "distinct": config.distinct,
        "score": marks.kind,
        "weights": list(marks.weights),
        "selection": selection,
    }


def require_same_result(target: Path, identity: dict[str, Any]) -> None:
    with MotifResult(target) as result:
        theirs = result.provenance
    differing = []
    for name, mine in identity.items():
        found = theirs.get(name)
        if isinstance(mine, dict | list) and isinstance(found, str):
            found = json.loads(found)
        if found != mine:
            differing.append(name)
    if differing:
        raise InputError(
            f"{target}: exists and holds another run (its {', '.join(differing)} differ); give another name, or "
            "--overwrite"
        )
