"""Whether an inferred model explains junctions that were held out better than the model that inference began with."""

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
"""Standard errors by which the inferred model must be worse to be called so."""


@dataclass(frozen=True)
class Gain:
    """Of junctions that were held out, ln P(junction with V and J) under the inferred model, less that under the other.

    nats, error   the mean over junctions that both models make, and its standard error
    junctions     how many these are
    gained, lost  junctions that only the inferred model makes, and that only the other one makes
    """

    nats: float
    error: float
    junctions: int
    gained: int
    lost: int

    @property
    def is_loss(self) -> bool:
        """Whether the inferred model explains them worse."""
        return self.nats < -ERRORS * self.error and self.gained <= self.lost


def gain_of(held: Repertoire, inferred: Model | None, other: Model, run: Run, backend: Backend) -> Gain | None:
    """The gain of root's inferred model over another one, on root, of junctions that all ranks have.

    inferred  None on the other ranks

    Only junctions of functional V and J count, given that such a junction is made: models differ in how often they
    choose pseudogenes, of which tables have all rows or none.

    None without two junctions that both make.
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
    made, by_other = (p[:, 0] / Possible.of(model).probability for p, model in zip(values, models, strict=True))
    both = (made > 0) & (by_other > 0)
    if both.sum() < 2:
        return None
    logs = np.log(made[both] / by_other[both])
    return Gain(
        float(logs.mean()), float(logs.std(ddof=1) / np.sqrt(len(logs))), len(logs),
        int(((made > 0) & ~(by_other > 0)).sum()), int(((by_other > 0) & ~(made > 0)).sum()),
    )  # fmt: skip


def _functional(templates: tuple[Template, ...]) -> tuple[Template, ...]:
    """The alleles, of which those that are not functional cannot contribute."""
    return tuple(own if own.function in FUNCTIONAL else replace(own, segment="", extended="") for own in templates)
