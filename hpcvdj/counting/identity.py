"""Which run a result or a checkpoint is of: what is recorded, and what two runs must have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpcvdj.counting.checkpoint import TABLES
from hpcvdj.counting.config import Config, Inputs
from hpcvdj.errors import CompleteError, InputError
from hpcvdj.ranks.world import World
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.many import Table, difference, listed, repertoire_name
from hpcvdj.results.file import Result

IDENTITY = (
    "junctions_sha256",
    "sequence_field",
    "germline_sha256",
    "max_p",
    "d_alleles",
    "method",
    "max_n",
    "d_forms",
    "calls",
)
"""What a run has in common with one that goes on with its counters; ranks, threads, blocks and backend may differ."""


def identity_of(attributes: dict[str, Any], tables: Sequence[Table] = ()) -> dict[str, Any]:
    """The `IDENTITY` of a run; of tables that are counted together each one's, to tell which is another."""
    facts = {**attributes["config"], **attributes}
    identity = {name: facts[name] for name in IDENTITY}
    if tables:
        del identity["junctions_sha256"]
        identity[TABLES] = listed(tables)
    return identity


def already_done(target: Path, identity: dict[str, Any]) -> None:
    """CompleteError if `target` is the result of such a run; InputError, as without `resume`, if it is not."""
    with Result(target) as result:
        theirs = {**json.loads(result.provenance["config"]), **result.provenance}
        names = [name for name in identity if name != TABLES and str(theirs.get(name)) != str(identity[name])]
        tables = [[table.path.name, table.sha256] for table in result.tables] if TABLES in identity else []
    other = difference(tables, identity.get(TABLES, []))
    if names or other:
        what = "; ".join([f"its {', '.join(names)} differ"] * bool(names) + [other] * bool(other))
        raise InputError(f"{target}: exists and holds another run ({what}); give another name, or --overwrite")
    raise CompleteError(f"{target}: is complete already; nothing to resume")


def facts_of_rank(hardware: str, software: str) -> dict[str, str]:
    from hpcvdj.results.provenance import rank_facts

    return rank_facts(hardware, software)


def run_attributes(
    world: World, inputs: Inputs, germline: Germline, config: Config, max_n: int, source: dict[str, str]
) -> dict[str, Any]:
    """What a result records of its run; `source` is the table's path, sha256 and field."""
    from hpcvdj.results.provenance import run_facts

    return {
        **run_facts(world),
        "config": {
            **asdict(config),
            "max_n": max_n,
            "max_n_asked": config.max_n,
            "calls": asdict(inputs.calls),
            "strict": inputs.strict,
        },
        "repertoire_id": "" if inputs.tables else repertoire_name(inputs.junctions),
        "junctions_path": source["path"],
        "junctions_sha256": source["sha256"],
        "sequence_field": source["field"],
        "germline_path": germline.name,
        "germline_sha256": germline.digest(),
        "max_p": germline.max_p,
        "d_alleles": germline.d_alleles,
    }
