"""Many repertoires in one result: every rank reads some of the tables through before anything is counted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hpcvdj.counting.config import Inputs
from hpcvdj.errors import InputError
from hpcvdj.ranks.world import World, root_does
from hpcvdj.repertoires.many import Table, folder_of, placed, survey, tables_of
from hpcvdj.repertoires.repertoire import CallPolicy, SequenceField, columns_of
from hpcvdj.repertoires.tables import file_state

log = logging.getLogger(__name__)


def inputs_together(
    paths: Sequence[Path],
    world: World,
    *,
    sequence_field: SequenceField = "junction",
    calls: CallPolicy | None = None,
    strict: bool = False,
) -> Inputs:
    """The tables at `paths`, a folder standing for those in it, to be counted together.

    Ranks share the reading, the largest files first.  InputError, on every rank, that names the first table of the
    list that cannot be read to its end, or that would be mistaken for another's repertoire.
    """
    columns = columns_of(sequence_field)
    files = world.broadcast(root_does(world, lambda: [(path, file_state(path)) for path in tables_of(paths, columns)]))
    if world.is_root:
        log.info("reading %s table(s) through before counting", f"{len(files):,}")
    order = sorted(range(len(files)), key=lambda place: (-(files[place][1] or (0, 0))[1], place))
    mine = {place: _survey(files[place][0], columns) for place in order[world.rank :: world.size]}
    found = world.gather(mine)

    def put() -> tuple[Table, ...]:
        tables = []
        all_found = {place: one for part in found or [] for place, one in part.items()}
        for place, (_, state) in enumerate(files):
            one = all_found[place]
            if isinstance(one, InputError):
                raise one
            tables.append(replace(one, state=state))
        return placed(tables)

    tables = world.broadcast(root_does(world, put))
    return Inputs(folder_of(tables), sequence_field, calls or CallPolicy(), strict, tables)


def _survey(path: Path, columns: Sequence[str]) -> Table | InputError:
    """The table, or why it cannot be read: other ranks wait to hear of it."""
    try:
        return survey(path, columns)
    except InputError as error:
        return error
    except OSError as error:
        return InputError(f"{path}: cannot be read ({error.strerror})")
