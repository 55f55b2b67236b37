"""Questions about tables in memory, asked without a command, and what is logged meanwhile."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from hpcvdj.chance import check
from hpcvdj.chance.question import ask
from hpcvdj.chance.settings import Checks, ClonotypeChoice
from hpcvdj.enrichment.question import EnrichmentQuestion
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.table import table_of
from hpcvdj.runs.run import Run

CHECKS = Checks()


@contextmanager
def warnings_said() -> Iterator[list[str]]:
    """The warnings that hpcvdj logs while the block runs."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("hpcvdj")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def sample_of_table(table, model, reading):
    """The rows of a table that are compared with a model."""
    return Inputs.of_table(table, reading).sample(model, check.SAMPLE)


def enrich_table(table, model, settings, choice=None, control=None, checks=CHECKS):
    """The enrichment of a table, over a control if there is one."""
    others = [table_of(control)] if control is not None else []
    question = EnrichmentQuestion(settings, choice or ClonotypeChoice(), others)
    return ask(question, [table_of(table)], model, checks, Run())
