"""What individuals have in common: `hpcvdj.sharing`, `hpcvdj.contamination` and `hpcvdj.associate`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcvdj.api.individuals import answered, given_tables
from hpcvdj.api.parameters import InOneProcess, OfTables, taking
from hpcvdj.association.associate import Association
from hpcvdj.association.expansion import Expansion
from hpcvdj.association.question import question_of
from hpcvdj.association.settings import AssociationSettings, Donors
from hpcvdj.chance.settings import Checks
from hpcvdj.cohorts.contamination import Contamination
from hpcvdj.cohorts.contamination_question import ContaminationQuestion
from hpcvdj.cohorts.settings import ContaminationSettings, Individuals, Naming, SharingSettings
from hpcvdj.cohorts.sharing import Sharing
from hpcvdj.cohorts.sharing_question import SharingQuestion
from hpcvdj.errors import InputError
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.table import Table


class _Sharing(InOneProcess, Checks, SharingSettings, Naming, OfTables):
    """The arguments of `sharing`."""


@taking(_Sharing)
def sharing(tables: Any, model: Model | str | Path, **options: Any) -> Sharing:
    """Find the sequences that individuals share, and those shared by more than chance explains, on this machine.

    tables  the paths of tables, each of one individual, or a folder of them; a dict with the table in memory of each
            individual; or one table in memory whose rows name their individuals
    model   {model}
    {options}

    Returns a Sharing: its `table` (pyarrow) has a row for each shared sequence, the smallest p-value first, with the
    columns that docs/sharing.md lists; `observed`, `expected`, `low` and `high` are the numbers of sequences in 0, 1, …
    individuals, `shared` and `expected_shared` those of pairs; `q`, `aucs` and `hits`.

    Warns (HpcvdjWarning) of excluded rows, of a fitted q of 1, and of pairs that share improbable junctions.  Raises
    InputError for fewer than two individuals, for two that are the same sample, and if no q explains the sharing.
    """
    question = SharingQuestion(Naming.of(options), SharingSettings.of(options))
    return answered(question, _tables(tables, question.naming), model, Checks.of(options))


class _Contamination(InOneProcess, Checks, ContaminationSettings, Naming, OfTables):
    """The arguments of `contamination`."""


@taking(_Contamination)
def contamination(tables: Any, model: Model | str | Path, **options: Any) -> Contamination:
    """Find samples that contaminated each other, by the improbable junctions that they share, on this machine.

    tables  the paths of tables, each of one individual, or a folder of them; a dict with the table in memory of each
            individual; or one table in memory whose rows name their individuals
    model   {model}
    {options}

    Returns a Contamination: its `table` (pyarrow) has a row for each two individuals, with the columns that
    docs/contamination.md lists; `pairs.standing_out`, `rate`, `carry_over`, and `copies`: the rows that the command
    leaves out with --write-clean.

    Warns (HpcvdjWarning) of excluded rows.  Raises InputError for an individual with too few improbable junctions, or
    with too many that the model cannot make, and for two that are the same sample.
    """
    question = ContaminationQuestion(Naming.of(options), ContaminationSettings.of(options))
    return answered(question, _tables(tables, question.naming), model, Checks.of(options))


class _Association(InOneProcess, Checks, AssociationSettings, Donors, OfTables):
    """The arguments of `associate`."""


@taking(_Association)
def associate(tables: Any, model: Model | str | Path, **options: Any) -> Association | Expansion:
    """Find what goes with a disease, an HLA allele or a number, given how deep donors are; or what expanded.

    tables  the paths of tables, each of one donor, or a folder of them; a dict with the table in memory of each donor;
            or one table in memory whose rows name their donors
    model   {model}
    {options}

    Returns an Association: its `table` (pyarrow) has a row for each test with a small p-value, with the columns that
    docs/associate.md lists; `donors` has the scores, and `auc` says how well they tell cases from controls; `hits`.
    With `time`, returns an Expansion: its `table`, `pairs`, `noise` and `hits`.

    Warns (HpcvdjWarning) of excluded rows, and of pairs that share improbable junctions.  Raises InputError if all
    cases are of one batch, for columns that the metadata lack, and for two individuals that are the same sample.
    """
    question: Any = question_of(Donors.of(options), AssociationSettings.of(options))
    answer: Association | Expansion = answered(question, _tables(tables, question.naming), model, Checks.of(options))
    return answer


def _tables(tables: Any, naming: Individuals) -> list[Table]:
    if isinstance(tables, Mapping) and naming.individual is not None:
        raise InputError(f"individual={naming.individual!r}: the keys of a dict name its individuals; leave it out")
    return given_tables(tables, naming.opening())
