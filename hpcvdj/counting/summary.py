"""What a run says of itself: the summary for people, the attributes of its result, the log."""

import logging
from dataclasses import asdict, dataclass
from typing import Any

from hpcvdj.counting.config import Config
from hpcvdj.recombination.exclusions import Exclusion, by_summary, counts_json
from hpcvdj.recombination.germline import Germline
from hpcvdj.repertoires.inputs import Inputs, repertoire_name
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.run import Run

log = logging.getLogger(__name__)

_MOST_LOGGED = 12

STAGES = ("read", "prepare", "kernel", "reduce", "save", "write", "total")
"""What `Summary.seconds` has: kernel and reduce are the maximum over ranks, save is what checkpoints cost."""


@dataclass(frozen=True)
class Summary:
    """What a run found and how long it took; complete on root.

    excluded      the exclusions and their rows, the most frequent first
    pathways      pathways of each n-length over all sequences, exact Python integers
    with_pathway  sequences with at least one pathway
    tables        tables that were counted together, and their repertoires; 0 for one table
    seconds       of each of `STAGES`
    """

    rows_read: int
    counted: int
    excluded: list[tuple[Exclusion, int]]
    pairs: int
    max_n: int
    method: str
    hardware: str
    ranks: int
    pathways: list[int]
    with_pathway: int
    seconds: dict[str, float]
    tables: int = 0
    repertoires: int = 0


def attributes_of(inputs: Inputs, germline: Germline, config: Config, max_n: int, run: Run) -> dict[str, Any]:
    """What a result records of its run."""
    recorded = {
        "config": {
            **config.recorded(max_n),
            "calls": asdict(inputs.reading.calls),
            "strict": inputs.reading.strict,
        },
        "repertoire_id": "" if inputs.together else repertoire_name(inputs.path),
        "junctions_path": str(inputs.path.resolve()),
        "junctions_sha256": inputs.digest,
        "sequence_field": inputs.reading.sequence_field,
        "germline_path": germline.name,
        "germline_sha256": germline.digest(),
        "max_p": germline.max_p,
        "d_alleles": germline.d_alleles,
    }
    return {**run.provenance(), **recorded, "identity": _identity(inputs, recorded)}


def _identity(inputs: Inputs, recorded: dict[str, Any]) -> Identity:
    """What two runs must have in common; ranks, threads, blocks, slices and backend may differ."""
    names = ("sequence_field", "germline_sha256", "max_p", "d_alleles", "method", "max_n", "d_forms", "calls")
    facts = {**recorded["config"], **recorded}
    if inputs.together:
        tables: Any = [[table.path.name, table.sha256] for table in inputs.tables]
    else:
        tables = [["the table", recorded["junctions_sha256"]]]
    return {"tables": tables, "together": inputs.together, **{name: facts[name] for name in names}}


def facts_of(junctions: Junctions) -> dict[str, Any]:
    """What a result records of its rows."""
    return {
        "rows_read": junctions.rows_read,
        "substituted_calls": junctions.substituted,
        "excluded_counts": counts_json(junctions.excluded.counts()[:MOST_COUNTED]),
    }


MOST_COUNTED = 10_000
"""Different exclusions that a result sums up in its attributes; /excluded has all."""


def log_exclusions(
    rows_read: int, excluded: list[tuple[Exclusion, int]], substituted: list[tuple[str, str, int]]
) -> None:
    """Warn of calls that were replaced and rows that were excluded, by kind, with the option that lets them in."""
    substituted = sorted(substituted, key=lambda item: -item[2])
    for call, allele, rows in substituted[:_MOST_LOGGED]:
        log.warning("call %s is counted as %s in %s rows", call, allele, f"{rows:,}")
    if substituted[_MOST_LOGGED:]:
        more = len(substituted) - _MOST_LOGGED
        log.warning("and %d more calls; the attribute substituted_calls of the result lists all", more)
    if not excluded:
        return
    log.warning("%s of %s rows excluded:", f"{sum(rows for _, rows in excluded):,}", f"{rows_read:,}")
    for summary, rows, group in by_summary(excluded):
        kind = group[0][0].kind
        log.warning("  %8s  %s", f"{rows:,}", summary if len(group) > 1 else group[0][0])
        listed = group if kind.listed and len(group) > 1 else []
        for exclusion, own_rows in listed[:_MOST_LOGGED]:
            log.warning("            %8s  %s", f"{own_rows:,}", exclusion.particulars)
        if listed[_MOST_LOGGED:]:
            rest = sum(own_rows for _, own_rows in listed[_MOST_LOGGED:])
            log.warning("            %8s  and %d others", f"{rest:,}", len(listed) - _MOST_LOGGED)
        if kind.option:
            log.warning("            %s keeps them", kind.option)
    log.warning("the result lists each of them under /excluded")
