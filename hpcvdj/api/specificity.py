"""Find clonotypes like receptors of known specificity: `hpcvdj.annotate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcvdj.annotation.question import Annotation, AnnotationQuestion
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings, Match
from hpcvdj.api.individuals import answered, given_tables
from hpcvdj.api.parameters import documented
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.calls import MissingAlleles, Ties
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.databases import Records, database_of, read_database


@documented(DatabaseSettings, AnnotationSettings, ClonotypeChoice, Checks)
def annotate(
    tables: Any,
    database: Any,
    model: Model | str | Path,
    *,
    species: str | None = None,
    exclude_reference: tuple[str, ...] = (),
    database_columns: Mapping[str, str] | None = None,
    match: Match = "vj",
    mismatches: int = 1,
    decoys: tuple[str, ...] = (),
    kappa: float | None = None,
    max_q: float = 0.05,
    seed: int = 0,
    selection: bool = True,
    cache: str | Path | None = None,
    backend: str = AUTO,
    min_reads: int = 1,
    likely_errors: bool = False,
    ties: Ties = "none",
    keep_misfits: bool = False,
    force: bool = False,
    missing_alleles: MissingAlleles = "exclude",
) -> Annotation:
    """Find clonotypes like receptors of known specificity, and say how many chance makes, on this machine.

    tables    the paths of tables, each of one sample, or a folder of them; a dict with the table in memory of each
              sample; or one table in memory
    database  the file of a database of receptors, or a table in memory
    model     {model}
    {options}

    Returns an Annotation: its tables `hits` and `epitopes` (pyarrow) have the sample and the columns that
    docs/annotate.md lists; each of its `samples` has `found`, `expected`, `kappa`, `dispersion` and the check by
    decoys.

    Warns (HpcvdjWarning) of excluded rows, and if decoys fail; then nothing is called.  Raises InputError for a
    database that cannot be read, or that has no usable record.
    """
    records, of, settings, choice, checks = asked_of(locals())
    return answered(AnnotationQuestion(records, of, settings, choice), given_tables(tables), model, checks)


def asked_of(
    values: Mapping[str, Any],
) -> tuple[Records, DatabaseSettings, AnnotationSettings, ClonotypeChoice, Checks]:
    """Return the records of the database and the settings of the arguments of `annotate`, by name."""
    database, columns = values["database"], values["database_columns"]
    is_path = isinstance(database, str | Path)
    records = read_database(Path(database), columns) if is_path else database_of(database, columns)
    settings, choice = AnnotationSettings.of(values), ClonotypeChoice.of(values)
    return records, DatabaseSettings.of(values), settings, choice, Checks.of(values)
