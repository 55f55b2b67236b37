"""The gain in likelihood of held-out junctions under an inferred model, over the model that inference began with."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hpcvdj.inference.parameters import shared_model
from hpcvdj.kernels.backends import Backend
from hpcvdj.probabilities.settings import PgenConfig
from hpcvdj.recombination.igor import FUNCTIONAL
from hpcvdj.recombination.models import Model, Template
from hpcvdj.recombination.possible import Possible
from hpcvdj.recombination.repertoire import PGEN_COLUMNS, PgenProblem, Repertoire
from hpcvdj.runs.run import Run
from hpcvdj.values.compute import count_in_memory

ERRORS = 2.0
"""The number of standard errors by which an inferred model must be worse for a warning."""


@dataclass(frozen=True)
class Gain:
    """The difference in ln P(junction with V and J) of held-out junctions: inferred model minus other model.

    nats, error   the mean over junctions that both models make, and its standard error
    junctions     the number of these junctions
    gained, lost  the numbers of junctions that only the inferred model, or only the other one, makes
    """

    nats: float
    error: float
    junctions: int
    gained: int
    lost: int

    @property
    def is_loss(self) -> bool:
        """Whether the inferred model explains the junctions worse."""
        return self.nats < -ERRORS * self.error and self.gained <= self.lost


def gain_of(held: Repertoire, inferred: Model | None, other: Model, run: Run, backend: Backend) -> Gain | None:
    """Compute the gain of root's inferred model over another model, on root, from junctions that all ranks have.

    inferred  None on the other ranks

    Only junctions of functional V and J genes count, with their probability among such junctions: models differ in how
    often they choose pseudogenes, and tables have either all or none of the rows with pseudogenes.

    Returns None with fewer than two junctions that both models make.
    """
    models = [
        replace(model, v=_functional(model.v), j=_functional(model.j))
        for model in (shared_model(inferred, other, run), other)
    ]
    config = PgenConfig(PGEN_COLUMNS[:1], backend=backend.name)
    values: list[Any] = [
        count_in_memory(PgenProblem(held, model, PGEN_COLUMNS[:1]), config, run, backend) for model in models
    ]
    if values[0] is None or values[1] is None:
        return None
    p_inferred, p_other = (p[:, 0] / Possible.of(model).probability for p, model in zip(values, models, strict=True))
    both = (p_inferred > 0) & (p_other > 0)
    if both.sum() < 2:
        return None
    logs = np.log(p_inferred[both] / p_other[both])
    return Gain(
        float(logs.mean()), float(logs.std(ddof=1) / np.sqrt(len(logs))), len(logs),
        int(((p_inferred > 0) & ~both).sum()), int(((p_other > 0) & ~both).sum()),
    )  # fmt: skip


def _functional(templates: tuple[Template, ...]) -> tuple[Template, ...]:
    """Empty the segments of alleles that are not functional, so that they cannot contribute."""
    return tuple(
        allele if allele.function in FUNCTIONAL else replace(allele, segment="", extended="") for allele in templates
    )
