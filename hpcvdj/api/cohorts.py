"""What individuals share, by chance and by contamination: `hpcvdj.sharing` and `hpcvdj.contamination`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.api.individuals import paths_or_table
from hpcvdj.api.parameters import documented
from hpcvdj.api.tables import used_model
from hpcvdj.chance import DRAWS
from hpcvdj.chance.check import ModelFit
from hpcvdj.chance.settings import Checks
from hpcvdj.cohorts import Unit
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.cohorts.commands import pairs_text
from hpcvdj.cohorts.contamination import Contamination, contaminate
from hpcvdj.cohorts.files import cohort_of_files, cohort_of_table
from hpcvdj.cohorts.settings import ContaminationSettings, Naming, SharingSettings
from hpcvdj.cohorts.sharing import Sharing, share
from hpcvdj.errors import InputError
from hpcvdj.kernels.backends import AUTO
from hpcvdj.public import warn
from hpcvdj.recombination.calls import Genes, Ties
from hpcvdj.recombination.models import Model
from hpcvdj.runs.run import Run


@documented(Naming, SharingSettings, Checks)
def sharing(
    tables: Any,
    model: Model | str | Path,
    *,
    individual: str | None = None,
    metadata: Any = None,
    group: str | None = None,
    subject: str | None = None,
    unit: Unit = "vj-aa",
    min_individuals: int = 2,
    q: float | None = None,
    genes: Genes = "call",
    draws: int = DRAWS,
    seed: int = 0,
    backend: str = AUTO,
    ties: Ties = "none",
    keep_misfits: bool = False,
    force: bool = False,
) -> Sharing:
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
    naming, settings, checks = Naming.of(locals()), SharingSettings.of(locals()), Checks.of(locals())
    loaded = checks.model(used_model(model))
    cohort, fit = cohort_of(tables, loaded, naming, checks, settings.genes)
    found = share(cohort, loaded, settings, Run(), loaded.selection, fit)
    assert found is not None
    if found.refuted:
        warn(f"far more is shared than q = {found.q:g} explains, so p-values are too small: do not believe the hits")
    if found.q_at_bound:
        warn("the fitted q is 1, its largest: no more is shared than recombination makes")
    for line in pairs_text(found.cohort, found.improbable):
        warn(f"{line}; see hpcvdj.contamination")
    return found


@documented(Naming, ContaminationSettings, Checks)
def contamination(
    tables: Any,
    model: Model | str | Path,
    *,
    individual: str | None = None,
    metadata: Any = None,
    group: str | None = None,
    subject: str | None = None,
    max_pgen: float | None = None,
    min_low: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    backend: str = AUTO,
    ties: Ties = "none",
    keep_misfits: bool = False,
    force: bool = False,
) -> Contamination:
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
    naming, settings, checks = Naming.of(locals()), ContaminationSettings.of(locals()), Checks.of(locals())
    loaded = checks.model(used_model(model))
    cohort, fit = cohort_of(tables, loaded, naming, checks)
    found = contaminate(cohort, loaded, settings, Run(), fit)
    assert found is not None
    return found


def cohort_of(
    tables: Any, model: Model, naming: Naming, checks: Checks, genes: Genes | None = None
) -> tuple[Cohort, ModelFit]:
    """The cohort of tables, and how a model fits them; `genes` as of `cohort_of_files`."""
    if isinstance(tables, Mapping) and naming.individual is not None:
        raise InputError(f"individual={naming.individual!r}: the keys of a dict name its individuals; leave it out")
    given = paths_or_table(tables)
    if isinstance(given, pa.Table):
        return cohort_of_table(given, model, naming, checks, warn, genes)
    _, cohort, fit = cohort_of_files(given, model, naming, checks, Run(), genes=genes)
    assert cohort is not None
    return cohort, fit
