"""Ask questions about tables of individuals: files, or tables in memory by the name of each individual."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hpcvdj.api.tables import Given, listed, used_model
from hpcvdj.chance.question import Question, ask
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.folders import tables_in
from hpcvdj.repertoires.formats.format import BY_HEADER, Opening
from hpcvdj.repertoires.readers.memory import is_column
from hpcvdj.repertoires.table import Table, table_of
from hpcvdj.runs.run import Run

A = TypeVar("A")


def answered(question: Question[A], tables: Sequence[Table], model: Model | str | Path, checks: Checks) -> A:
    """Return the answer to a question about tables, on this machine."""
    answer = ask(question, tables, used_model(model), checks, Run())
    assert answer is not None
    return answer


def given_tables(tables: Any, opening: Opening = BY_HEADER) -> list[Table]:
    """Return tables at paths, the tables of a dict by individual, or a single table in memory.

    Raises InputError for a list of tables in memory.
    """
    if isinstance(tables, str | Path):
        return tables_in([Path(tables)], opening)
    if isinstance(tables, Mapping):
        if not tables:
            raise InputError("an empty dict has no individuals; give the table of each by its name")
        by_name = {str(name): listed(table) if is_column(table) else table for name, table in tables.items()}
        return [table_of(Given.of(table).arrow, opening, name) for name, table in by_name.items()]
    if isinstance(tables, Sequence):
        if not all(isinstance(path, str | Path) for path in tables):
            raise InputError("a list has the paths of tables; give tables in memory as a dict, by individual")
        return tables_in(list(map(Path, tables)), opening)
    return [table_of(tables, opening)]
