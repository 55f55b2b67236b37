"""Find clonotypes like receptors of known specificity: `hpcvdj.annotate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcvdj.annotation.question import Annotation, AnnotationQuestion
from hpcvdj.annotation.settings import AnnotationSettings, DatabaseSettings
from hpcvdj.api.individuals import answered, given_tables
from hpcvdj.api.parameters import InOneProcess, taking
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.databases import Records


class _Annotation(InOneProcess, Checks, ClonotypeChoice, AnnotationSettings, DatabaseSettings):
    """The arguments of `annotate`."""

    tables: Any
    database: Any
    model: Model | str | Path


@taking(_Annotation)
def annotate(tables: Any, database: Any, model: Model | str | Path, **options: Any) -> Annotation:
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
    records, of, settings, choice, checks = asked_of(database, options)
    return answered(AnnotationQuestion(records, of, settings, choice), given_tables(tables), model, checks)


def asked_of(
    database: Any, options: Mapping[str, Any]
) -> tuple[Records, DatabaseSettings, AnnotationSettings, ClonotypeChoice, Checks]:
    """Return the records of the database and the settings of the options of `annotate`, by name."""
    of = DatabaseSettings.of(options)
    settings, choice = AnnotationSettings.of(options), ClonotypeChoice.of(options)
    return of.records(database), of, settings, choice, Checks.of(options)
