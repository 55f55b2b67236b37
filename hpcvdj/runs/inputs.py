"""What ranks find out of the tables of a run before they read junctions: rows, digests, repertoires."""

import logging
from collections.abc import Callable

from hpcvdj.errors import InputError
from hpcvdj.repertoires.inputs import Inputs, numbered, survey
from hpcvdj.repertoires.tables import Table
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET

log = logging.getLogger(__name__)


def surveyed(inputs: Inputs, run: Run) -> Inputs:
    """The inputs with rows, digests and repertoires of all tables; ranks share the reading, the largest files first.

    InputError, on every rank, that names the first table of the list that cannot be read to its end.
    """
    if run.is_root and len(inputs.tables) > 1:
        log.info("reading %s tables once for their rows and repertoires", f"{len(inputs.tables):,}")
    order = sorted(range(len(inputs.tables)), key=lambda k: (-(inputs.tables[k].state or (0, 0))[1], k))
    own: dict[int, Table | InputError] = {}

    def survey_one(k: int) -> None:
        own[k] = _survey(inputs, inputs.tables[k], run.raise_if_stopping)

    run.each(order[run.rank :: run.ranks], survey_one, NOTHING_YET)
    found = {k: table for part in run.gather_everywhere(own) for k, table in part.items()}

    def place() -> Inputs:
        tables = []
        for k in range(len(found)):
            table = found[k]
            if isinstance(table, InputError):
                raise table
            tables.append(table)
        return numbered(inputs, tables)

    return run.from_root(place)


def _survey(inputs: Inputs, table: Table, between: Callable[[], None]) -> Table | InputError:
    """The surveyed table, or why it cannot be read: the other ranks wait to hear of it."""
    try:
        return survey(inputs, table, between)
    except InputError as error:
        return error
    except OSError as error:
        return InputError(f"{table.path}: cannot be read ({error.strerror})")
