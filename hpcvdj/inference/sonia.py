"""Models of SONIA, with the mean of Q over the junctions of each V and J gene, which hpcvdj needs."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from hpcvdj.chance.draws import Chance
from hpcvdj.inference.distinct import SingleGeneJunctions
from hpcvdj.inference.selection import FRESH, averages
from hpcvdj.kernels.backends import AUTO
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.sonia import read_sonia
from hpcvdj.runs.run import Run

log = logging.getLogger(__name__)

MOST_OFF = 0.1
"""The largest difference of the mean of Q from 1 without a warning."""


def sonia_model(folder: Path, backend: str = AUTO) -> Model:
    """Read the recombination model in a folder of SONIA, with its selection factor.

    Z is that of the folder.  The means of Q are computed from productive draws.  Raises InputError for other folders.
    """
    model = read_sonia(folder)
    selection = model.require_selection()
    # Another seed than that of `hpcvdj generate`, so that generated tables are not compared with themselves.
    seed = int(np.random.SeedSequence([0, 2]).generate_state(1, np.uint64)[0])
    drawn = Chance(model, FRESH, seed, backend, strict_binding=False).drawn(Run())
    assert drawn is not None
    mean, means = averages(selection, SingleGeneJunctions.drawn(drawn))
    if abs(mean - 1) > MOST_OFF:
        log.warning(
            "%s: the mean of Q over %s productive draws from its model is %.3g, not 1: Z is not that of this model, "
            "and the sum of all probabilities after selection is this number", folder, f"{FRESH:,}", mean,
        )  # fmt: skip
    facts = {**selection.facts, "fresh": FRESH, "mean_of_q": mean}
    return replace(model, selection=replace(selection, means=means, facts=facts))
