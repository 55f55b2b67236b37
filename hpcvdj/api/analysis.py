"""Do all that hpcvdj can do with a cohort, in a single call: `hpcvdj.analyze`."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hpcvdj.analysis.analyze import TABLES, Analysis
from hpcvdj.analysis.analyze import analyze as work
from hpcvdj.analysis.settings import AnalysisSettings, CohortSettings
from hpcvdj.analysis.steps import Job
from hpcvdj.annotation.settings import DatabaseSettings
from hpcvdj.api.individuals import given_tables
from hpcvdj.api.parameters import InOneProcess, OfTables, taking
from hpcvdj.api.tables import Given, listed, used_model
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.readers.memory import is_column
from hpcvdj.runs.run import Run
from hpcvdj.storage.folders import make_folder


class _Analysis(InOneProcess, Checks, DatabaseSettings, AnalysisSettings, CohortSettings, OfTables):
    """The arguments of `analyze`."""

    output: str | Path
    resume: bool = field(default=False, kw_only=True)
    overwrite: bool = field(default=False, kw_only=True)


@taking(_Analysis)
def analyze(
    tables: Any, model: Model | str | Path, output: str | Path, *, resume: bool, overwrite: bool, **options: Any
) -> Analysis:
    """Do all that hpcvdj can do with a cohort, one step after another, and write the page about it, on this machine.

    tables     the paths of tables, each of one individual, or a folder of them; or a dict with the table in memory of
               each individual, which the folder keeps
    model      {model}
    output     the folder to write, with an output of each step, and `analysis.json`, which says what was done
    {options}
    resume     keep what earlier runs did with the same tables and settings
    overwrite  {overwrite}

    Returns an Analysis: `outcomes` says for each step whether it was done, or why not.  For each step that this call
    did, `answers` has what the Python function of that name returns.

    Warns (HpcvdjWarning) as those functions do.  Raises InputError for tables that cannot be read.  A step that its
    data do not allow is refused; the other steps are still done.
    """
    folder = Path(output)
    if isinstance(tables, Mapping):
        tables = _kept(tables, folder / TABLES)
    cohort = CohortSettings.of(options)
    cohort_tables = given_tables(tables, cohort.opening())
    if any(table.in_memory for table in cohort_tables):
        raise InputError("give tables in memory as a dict, with the table of each individual by its name")
    settings, checks = AnalysisSettings.of(options), Checks.of(options)
    run = Run().to(folder, resume=resume, overwrite=overwrite)
    inputs, database_settings = Inputs(tuple(cohort_tables)), DatabaseSettings.of(options)
    analysis = work(Job(inputs, used_model(model), cohort, database_settings, settings, checks, folder, run))
    assert analysis is not None
    return analysis


def _kept(tables: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write tables in memory to files of a folder, and return their paths."""
    if not tables:
        raise InputError("an empty dict has no individuals; give the table of each by its name")
    make_folder(folder)
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.parquet")
        pq.write_table(Given.of(listed(table) if is_column(table) else table).arrow, paths[-1])
    return paths
