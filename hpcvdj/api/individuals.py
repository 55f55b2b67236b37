"""Questions about tables of individuals: files, or tables in memory by the name of each individual."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hpcvdj.api.tables import Given, is_column, listed, used_model
from hpcvdj.chance.question import Question, ask
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import tables_in
from hpcvdj.repertoires.tables import Table, table_of
from hpcvdj.runs.run import Run

A = TypeVar("A")


def answered(question: Question[A], tables: Sequence[Table], model: Model | str | Path, checks: Checks) -> A:
    """The answer to a question about tables, on this machine."""
    answer = ask(question, tables, used_model(model), checks, Run())
    assert answer is not None
    return answer


def given_tables(given: Any, opening: Opening = BY_HEADER) -> list[Table]:
    """Tables at paths; those of a dict, each of one individual; or one in memory.

    InputError for a list of tables in memory.
    """
    if isinstance(given, str | Path):
        return tables_in([Path(given)], opening)
    if isinstance(given, Mapping):
        if not given:
            raise InputError("an empty dict has no individuals; give the table of each by its name")
        tables = {str(name): listed(table) if is_column(table) else table for name, table in given.items()}
        return [table_of(Given.of(table).arrow, opening, name) for name, table in tables.items()]
    if isinstance(given, Sequence):
        if not all(isinstance(path, str | Path) for path in given):
            raise InputError("a list has the paths of tables; give tables in memory as a dict, by individual")
        return tables_in(list(map(Path, given)), opening)
    return [table_of(given, opening)]
