"""Cohorts from tables: files or in memory."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpcvdj.chance.check import ModelFit, check_model, check_tables, sample_of_table
from hpcvdj.chance.settings import Checks
from hpcvdj.cohorts.cohort import Cohort, cohort_of
from hpcvdj.cohorts.settings import Naming
from hpcvdj.errors import InputError, few, option
from hpcvdj.recombination.calls import Genes
from hpcvdj.recombination.models import Model
from hpcvdj.repertoires.formats import BY_HEADER, Opening
from hpcvdj.repertoires.inputs import Inputs, tables_of
from hpcvdj.repertoires.junctions import REPERTOIRE, read_table
from hpcvdj.repertoires.read_counts import READS
from hpcvdj.repertoires.reading import productive_reading
from hpcvdj.repertoires.sequence_fields import common_fields, fields_of_table
from hpcvdj.repertoires.species import species_warning
from hpcvdj.repertoires.tables import as_arrow, table_columns
from hpcvdj.repertoires.tally import log_exclusions, tally_of
from hpcvdj.runs.inputs import surveyed
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET

log = logging.getLogger(__name__)

NUCLEOTIDES_ONLY = ("junction",)
"""The field of tables that need nucleotides."""

SEVERAL_GENES = 0.05
"""From which share of rows on it is said that calls name several genes."""


def cohort_of_files(
    paths: Sequence[Path], model: Model, naming: Naming, checks: Checks, run: Run, opening: Opening = BY_HEADER,
    genes: Genes | None = None,
) -> tuple[Inputs, Cohort | None, ModelFit]:  # fmt: skip
    """The inputs, root's cohort, and how the model fits the tables; InputError for bad input.

    genes  as of `Reading`, of tables that may have amino acids only; None: they need nucleotides
    """
    own = naming.opening(opening)

    def opened() -> Inputs:
        fields = common_fields(paths, own) if genes is not None else NUCLEOTIDES_ONLY
        return tables_of(paths, productive_reading(fields, own, reads=True, genes=genes or "call"))

    inputs = surveyed(run.from_root(opened), run)

    def named() -> None:
        for table in inputs.tables:
            if naming.individual is not None and table.unnamed:
                raise InputError(
                    f"{table.path}: {table.unnamed:,} rows have no {naming.individual} ({option('individual')}); "
                    "fill it"
                )
        naming.people(inputs.repertoires)

    run.on_root(named)
    fit = run.from_root(lambda: check_tables(checks, [inputs], model, log.warning))

    def made() -> Cohort:
        junctions = inputs.read(model, between=run.raise_if_stopping)
        log_exclusions(
            few([path.name for path in inputs.files]),
            junctions.rows_read,
            junctions.excluded.counts(),
            junctions.substituted,
        )
        other = species_warning(tally_of(junctions), model)
        if other is not None:
            log.warning("%s: %s", few([path.name for path in inputs.files]), other)
        cohort = cohort_of(junctions, model, naming.people(junctions.repertoire_ids or []))
        _say(cohort, log.warning)
        return cohort

    return inputs, run.root_steps(made, NOTHING_YET), fit


def cohort_of_table(
    table: Any,
    model: Model,
    naming: Naming,
    checks: Checks,
    warn: Callable[[str], None],
    genes: Genes | None = None,
) -> tuple[Cohort, ModelFit]:
    """The cohort of a table in memory whose rows name their individuals, and how the model fits it.

    warn   called with each warning
    genes  as of `cohort_of_files`
    """
    opening = naming.opening()
    if REPERTOIRE not in table_columns(as_arrow(table), opening):
        raise InputError(
            f"the table does not name the individuals of its rows; {option('individual', 'COLUMN')} says which "
            "column does"
        )
    fields = fields_of_table(table, opening) if genes is not None else NUCLEOTIDES_ONLY
    reading = productive_reading(fields, opening, reads=True, genes=genes or "call")
    junctions = read_table(table, model, reading, together=True)
    tally = tally_of(junctions)
    for message in filter(None, (tally.substitutions, tally.exclusions, species_warning(tally, model))):
        warn(message)
    cohort = cohort_of(junctions, model, naming.people(junctions.repertoire_ids or []))
    _say(cohort, warn)
    return cohort, check_model(checks, sample_of_table(table, model, replace(reading, reads=False)), model, warn)


def _say(cohort: Cohort, warn: Callable[[str], None]) -> None:
    rows = len(cohort.row)
    if cohort.several_genes > SEVERAL_GENES * rows:
        warn(
            f"{cohort.several_genes:,} of {rows:,} rows name several V or several J genes; they are sequences of their "
            "own, which drawn ones, of one V and one J, never are, so fewer seem to be shared than expected"
        )
    if cohort.has.reads is None:
        log.info("no column %s: the sizes of clones are not known", READS)
