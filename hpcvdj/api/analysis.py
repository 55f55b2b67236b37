"""Do all that hpcvdj can do with a cohort, in a single call: `hpcvdj.analyze`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hpcvdj.analysis.analyze import TABLES, Analysis
from hpcvdj.analysis.analyze import analyze as work
from hpcvdj.analysis.settings import AnalysisSettings, Cohort
from hpcvdj.analysis.steps import Job
from hpcvdj.annotation.settings import DatabaseSettings
from hpcvdj.api.individuals import given_tables
from hpcvdj.api.parameters import documented
from hpcvdj.api.tables import Given, is_column, listed, used_model
from hpcvdj.chance.settings import Checks
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.calls import MissingAlleles, Ties
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.runs.run import Run


@documented(Cohort, AnalysisSettings, DatabaseSettings, Checks)
def analyze(
    tables: Any,
    model: Model | str | Path,
    output: str | Path,
    *,
    individual: str | None = None,
    metadata: Any = None,
    group: str | Mapping[str, str] | None = None,
    subject: str | None = None,
    case: Mapping[str, str] | None = None,
    hla: str | None = None,
    trend: str | None = None,
    strata: Sequence[str] | None = None,
    time: str | None = None,
    database: Any = None,
    decoys: Sequence[str] = (),
    species: str | None = None,
    exclude_reference: Sequence[str] = (),
    database_columns: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    backend: str = AUTO,
    ties: Ties = "none",
    keep_misfits: bool = False,
    force: bool = False,
    missing_alleles: MissingAlleles = "exclude",
    resume: bool = False,
    overwrite: bool = False,
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
    cohort = Cohort.of(locals())
    cohort_tables = given_tables(tables, cohort.opening())
    if any(table.in_memory for table in cohort_tables):
        raise InputError("give tables in memory as a dict, with the table of each individual by its name")
    settings, checks = AnalysisSettings.of(locals()), Checks.of(locals())
    run = Run().to(folder, resume=resume, overwrite=overwrite)
    inputs, database_settings = Inputs(tuple(cohort_tables)), DatabaseSettings.of(locals())
    analysis = work(Job(inputs, used_model(model), cohort, database_settings, settings, checks, folder, run))
    assert analysis is not None
    return analysis


def _kept(tables: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write tables in memory to files of a folder, and return their paths."""
    if not tables:
        raise InputError("an empty dict has no individuals; give the table of each by its name")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.parquet")
        pq.write_table(Given.of(listed(table) if is_column(table) else table).arrow, paths[-1])
    return paths
