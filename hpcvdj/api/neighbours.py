"""Find clonotypes with more neighbours than chance explains: `hpcvdj.enrich`."""

from dataclasses import field
from pathlib import Path
from typing import Any

from hpcvdj.api.individuals import answered, given_tables
from hpcvdj.api.parameters import InOneProcess, taking
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.enrichment.enrich import Enrichment
from hpcvdj.enrichment.question import EnrichmentQuestion, read_once_lines
from hpcvdj.enrichment.settings import EnrichmentSettings
from hpcvdj.errors import log
from hpcvdj.recombination.models import Model


class _Enrichment(InOneProcess, Checks, ClonotypeChoice, EnrichmentSettings):
    """The arguments of `enrich`."""

    junctions: Any
    model: Model | str | Path
    control: Any = field(default=None, kw_only=True)


@taking(_Enrichment)
def enrich(junctions: Any, model: Model | str | Path, *, control: Any, **options: Any) -> Enrichment:
    """Find clonotypes with more neighbours than chance explains, on this machine.

    junctions  {junctions}; productive rows of one individual
    model      {model}
    control    junctions of one or several other people, as `junctions`: expect the number of neighbours that they have,
               not that of the model
    {options}

    Returns an Enrichment: its `table` (pyarrow) has a row for each tested clonotype, the smallest p-value first, with
    the columns that docs/enrich.md lists; `kappa`, `by_length`, `hits` and `clusters`.

    Warns (HpcvdjWarning) of excluded rows, of genes that the model makes wrongly, if there are no read counts to tell
    likely sequencing errors by, and of hits if most junctions have one read: then `read_once` says how many hits
    min_reads=2 leaves. Raises InputError if the model cannot make half of the rows (unless `force`), if no clonotype
    is left, or for rows of several repertoires.
    """
    others = given_tables(control) if control is not None else []
    question = EnrichmentQuestion(EnrichmentSettings.of(options), ClonotypeChoice.of(options), others)
    answer = answered(question, given_tables(junctions), model, Checks.of(options))
    for line in read_once_lines(answer):
        log.warning("%s", line)
    return answer
