"""Clonotypes with more neighbours than chance explains: `hpcvdj.enrich`."""

from functools import partial
from pathlib import Path
from typing import Any

from hpcvdj.api.parameters import unfolding
from hpcvdj.api.tables import Given, used_model
from hpcvdj.border import warn
from hpcvdj.chance.check import Checks
from hpcvdj.enrichment.enrich import Enrichment, Settings
from hpcvdj.enrichment.tables import ClonotypeChoice, enrich_table
from hpcvdj.recombination.models import Model


@unfolding(settings=Settings, choice=ClonotypeChoice, checks=Checks, without=("strict_binding",))
def enrich(
    junctions: Any,
    model: Model | str | Path,
    *,
    control: Any = None,
    settings: partial[Settings],
    choice: partial[ClonotypeChoice],
    checks: partial[Checks],
) -> Enrichment:
    """Find clonotypes with more neighbours than chance explains, on this machine.

    junctions  {junctions}; productive rows of one individual
    model      {model}
    control    junctions of other people: the number of neighbours that they have is taken for chance, not the model's
    {settings}
    {choice}
    {checks}

    Returns an Enrichment: its `table` (pyarrow) has a row for each tested clonotype, the smallest p-value first, with
    the columns that docs/enrich.md lists; `kappa`, `by_length`, `hits` and `clusters`.

    Warns (HpcvdjWarning) of excluded rows, of genes that the model makes wrongly, if there are no read counts to tell
    likely sequencing errors by, and if most junctions have one read: then `read_once` says how many hits min_reads=2
    leaves. Raises InputError if the model cannot make half of the rows (unless `force`), if no clonotype is left, or
    for rows of several repertoires.
    """
    others = Given.of(control).arrow if control is not None else None
    loaded = checks().model(used_model(model))
    return enrich_table(Given.of(junctions).arrow, loaded, settings(), choice(), others, warn, checks())
