"""What individuals share, by chance and by contamination: `hpcvdj.sharing` and `hpcvdj.contamination`."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpcvdj.api.individuals import paths_or_table
from hpcvdj.api.parameters import unfolding
from hpcvdj.api.tables import used_model
from hpcvdj.border import warn
from hpcvdj.chance.check import Checks, ModelFit
from hpcvdj.cohorts.cohort import Cohort
from hpcvdj.cohorts.commands import pairs_text
from hpcvdj.cohorts.contamination import Contamination, ContaminationSettings, contaminate
from hpcvdj.cohorts.files import Naming, cohort_of_files, cohort_of_table
from hpcvdj.cohorts.shared_table import SharingSettings
from hpcvdj.cohorts.sharing import Sharing, share
from hpcvdj.errors import InputError
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.runs.run import Run


@unfolding(settings=SharingSettings, naming=Naming, checks=Checks, without=("strict_binding",))
def sharing(
    tables: Any,
    model: Model | str | Path,
    *,
    settings: partial[SharingSettings],
    naming: partial[Naming],
    checks: partial[Checks],
) -> Sharing:
    """Find the sequences that individuals share, and those shared by more than chance explains, on this machine.

    tables  the paths of tables, each of one individual, or a folder of them; a dict with the table in memory of each
            individual; or one table in memory whose rows name their individuals
    model   {model}
    {settings}
    {naming}
    {checks}

    Returns a Sharing: its `table` (pyarrow) has a row for each shared sequence, the smallest p-value first, with the
    columns that docs/sharing.md lists; `observed`, `expected`, `low` and `high` are the numbers of sequences in 0, 1, …
    individuals, `shared` and `expected_shared` those of pairs; `q`, `aucs` and `hits`.

    Warns (HpcvdjWarning) of excluded rows, of a fitted q of 1, and of pairs that share improbable junctions.  Raises
    InputError for fewer than two individuals, for two that are the same sample, and if no q explains the sharing.
    """
    loaded = checks().model(used_model(model))
    chosen = settings()
    cohort, fit = cohort_of(tables, loaded, naming(), checks(), chosen.genes)
    found = share(cohort, loaded, chosen, Run(), loaded.selection, fit)
    assert found is not None
    if found.refuted:
        warn(f"far more is shared than q = {found.q:g} explains, so p-values are too small: do not believe the hits")
    if found.q_at_bound:
        warn("the fitted q is 1, its largest: no more is shared than recombination makes")
    for line in pairs_text(found.cohort, found.improbable):
        warn(f"{line}; see hpcvdj.contamination")
    return found


@unfolding(settings=ContaminationSettings, naming=Naming, checks=Checks, without=("strict_binding",))
def contamination(
    tables: Any,
    model: Model | str | Path,
    *,
    settings: partial[ContaminationSettings],
    naming: partial[Naming],
    checks: partial[Checks],
) -> Contamination:
    """Find samples that contaminated each other, by the improbable junctions that they share, on this machine.

    tables  the paths of tables, each of one individual, or a folder of them; a dict with the table in memory of each
            individual; or one table in memory whose rows name their individuals
    model   {model}
    {settings}
    {naming}
    {checks}

    Returns a Contamination: its `table` (pyarrow) has a row for each two individuals, with the columns that
    docs/contamination.md lists; `pairs.standing_out`, `rate`, `carry_over`, and `copies`: the rows that the command's
    --write-clean leaves out.

    Warns (HpcvdjWarning) of excluded rows.  Raises InputError for an individual with too few improbable junctions, or
    with too many that the model cannot make, and for two that are the same sample.
    """
    loaded = checks().model(used_model(model))
    cohort, fit = cohort_of(tables, loaded, naming(), checks())
    found = contaminate(cohort, loaded, settings(), Run(), fit)
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
