"""Survey the tables of a run before ranks read junctions: rows, digests and repertoires."""

from collections.abc import Callable
from functools import partial

from hpcvdj.errors import InputError, log
from hpcvdj.repertoires.inputs import Inputs, numbered, survey
from hpcvdj.repertoires.table import Table
from hpcvdj.runs.partition import evenly
from hpcvdj.runs.ranks import starting
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.inputs import digest_ahead

BESIDE_BYTES = 1 << 29
"""Bytes of text that a rank surveys in about the time that root needs to compare a sample of rows with a model."""


def surveyed(inputs: Inputs, run: Run, beside: Callable[[], None] | None = None) -> Inputs:
    """Return the inputs with the rows, digests and repertoires of all tables.

    Ranks share the reading, the largest files first.

    beside  what root does first, while the other ranks read

    Raises InputError on every rank, which names the first table of the list that cannot be read to its end.
    """
    unknown = sum(not table.surveyed for table in inputs.tables)
    if run.is_root and unknown > 1:
        log.info("reading %s tables once for their rows and repertoires", f"{unknown:,}")
    sizes = [0 if table.surveyed else table.bytes for table in inputs.tables]
    shares = evenly(sizes, run.ranks, of_root=BESIDE_BYTES if beside is not None else 0)
    surveys: dict[int, Table | InputError] = {}

    def survey_table(k: int) -> None:
        """Keep the surveyed table, or the error that explains why it cannot be read: the other ranks wait for it."""
        table = inputs.tables[k]
        try:
            surveys[k] = table if table.surveyed else survey(inputs, table, run.raise_if_stopping)
        except InputError as error:
            surveys[k] = error
        except OSError as error:
            surveys[k] = InputError(f"{table.path}: cannot be read ({error.strerror})")

    steps: list[Callable[[], None]] = [beside] if beside is not None and run.is_root else []
    if steps and starting.has_several_threads:
        digest_ahead([table.path for k in shares[run.rank] if not (table := inputs.tables[k]).surveyed])
    steps += [partial(survey_table, k) for k in shares[run.rank]]
    run.each(steps, lambda step: step(), NOTHING_YET)
    every = {k: table for part in run.gather_everywhere(surveys) for k, table in part.items()}

    def together() -> Inputs:
        tables = []
        for k in range(len(every)):
            table = every[k]
            if isinstance(table, InputError):
                raise table
            tables.append(table)
        return numbered(inputs, tables)

    return run.from_root(together)
