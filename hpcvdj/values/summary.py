"""What a run says about itself: the summary for users and the attributes of its result."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import reduce
from itertools import zip_longest
from operator import add
from typing import Any

import hpcvdj
from hpcvdj.kernels.backends import Backend
from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.makers import Makers
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Reference
from hpcvdj.repertoires.tally import Tally
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.folder import Identity
from hpcvdj.runs.run import Run
from hpcvdj.storage.inputs import file_digest
from hpcvdj.values.plan import Plan
from hpcvdj.values.task import Task

STAGES = ("read", "prepare", "kernel", "reduce", "save", "write", "total")
"""The keys of `Summary.seconds`: kernel and reduce are the maximum over ranks, save is the time of checkpoints, and
write is the sum over the threads that write slices."""


@dataclass(frozen=True, kw_only=True)
class Summary(Tally):
    """The outcome of a run and the time that it took; complete on root.

    quantity             the computed quantity
    sums                 sum of each of its columns over all sequences; for pathways exact Python integers
    tables, repertoires  number of tables that were counted together, and of their repertoires; 0 for one table
    seconds              seconds of each of `STAGES`
    makers               who makes the junctions; None without probabilities
    """

    pairs: int
    method: str
    hardware: str
    ranks: int
    quantity: Quantity
    sums: list[Any]
    tables: int = 0
    repertoires: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    makers: Makers | None = None


def summary_of(
    task: Task, facts: SliceFacts, makers: Makers | None, config: Plan, backend: Backend, seconds: Sequence[float]
) -> Summary:
    """Return the summary of a run that is done.

    config   the settled plan
    seconds  seconds of each of `STAGES` but the last
    """
    inputs = task.sliced.inputs
    return Summary(
        **{own.name: getattr(facts, own.name) for own in fields(Tally) if own.name != "max_n"},
        max_n=int(getattr(config, "max_n", 0)),
        pairs=len(facts.pairs),
        method=config.method,
        hardware=backend.describe(),
        ranks=task.run.ranks,
        quantity=task.output.quantity,
        sums=facts.sums,
        makers=makers,
        tables=len(inputs.tables) * inputs.together,
        repertoires=len(inputs.repertoires),
        seconds=dict(zip(STAGES, seconds, strict=False)),
    )


def total_of(summaries: Sequence[Summary]) -> Summary:
    """Return the summary of all tables together.  V-J pairs are not added up, because tables share them."""
    if len(summaries) == 1:
        return summaries[0]
    first, makers = summaries[0], [summary.makers for summary in summaries if summary.makers is not None]
    return replace(
        first,
        **Tally.added(summaries),
        pairs=0,
        sums=[sum(sums) for sums in zip_longest(*(summary.sums for summary in summaries), fillvalue=0)],
        tables=len(summaries),
        repertoires=len(summaries),
        seconds={stage: sum(summary.seconds[stage] for summary in summaries) for stage in STAGES},
        makers=reduce(add, makers) if makers else None,
    )


def attributes_of(inputs: Inputs, reference: Reference, config: Plan, run: Run) -> dict[str, Any]:
    """Return what results record of a run before it reads a row."""
    recorded = {
        "config": {
            **config.recorded(),
            **{f"{name}_asked": value for name, value in config.recorded().items() if name == "max_n"},
            "calls": asdict(inputs.reading.calls),
            "strict": inputs.reading.strict,
            "opening": inputs.reading.opening.recorded(),
            "alphabet": inputs.reading.alphabet.definitions() if inputs.reading.alphabet else {},
        },
        "repertoire_id": "" if inputs.together else inputs.tables[0].repertoire_id,
        "junctions_path": str(inputs.path.resolve()),
        "junctions_sha256": inputs.digest,
        "sequence_field": inputs.reading.sequence_field,
        **reference.facts(),
    }
    return {**run.provenance(), **recorded, "identity": _identity(inputs, config, recorded)}


def _identity(inputs: Inputs, config: Plan, recorded: dict[str, Any]) -> Identity:
    """Return what two runs must have in common.  Ranks, threads, blocks, slices and backend may differ."""
    names = ("sequence_field", "opening", *config.identity)
    facts = {**recorded["config"], **recorded}
    tables = [["the table", recorded["junctions_sha256"]]]
    if inputs.together:
        tables = [[table.path.name, table.sha256] for table in inputs.tables]
    numbers = {name: facts[name] for name in names if name in facts}
    # A run that is strict does not go on with slices in which rows were excluded.
    numbers["strict"] = inputs.reading.strict
    return {"hpcvdj": hpcvdj.__version__, "tables": tables, "together": inputs.together, **numbers}


def with_digests(inputs: Inputs) -> Inputs:
    """Return the inputs with the SHA-256 of their tables.  Raise InputError if a table cannot be read."""
    for table in inputs.tables:
        table.open()
    tables = tuple(
        replace(table, sha256=table.sha256 or file_digest(table.path, table.state)) for table in inputs.tables
    )
    return replace(inputs, tables=tables)
