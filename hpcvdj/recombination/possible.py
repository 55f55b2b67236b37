"""The probabilities of a model without the scenarios that make no junction.

A scenario makes no junction if its V or J allele has no segment, if nothing is left of V or J, or if the deletions of D
exceed its length.  Generation probabilities do not count such scenarios, so they add up to less than 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpcvdj.recombination.models import Array, Model, Template


@dataclass(frozen=True)
class Possible:
    """The scenarios of a model that make a junction; a locus without D genes has a single, empty D.

    choice       float64 [V, D, J]: P(V, D, J, deletions that make a junction)
    v_deletions  float64 [V, k]: as in the model, but 0 if there is no junction
    d_deletions  float64 [D, l, r]
    j_deletions  float64 [J, k]
    probability  P(a recombination makes a junction): the sum of all generation probabilities
    """

    choice: Array
    v_deletions: Array
    d_deletions: Array
    j_deletions: Array
    probability: float

    @staticmethod
    def of(model: Model) -> "Possible":
        """Return the possible scenarios of a model."""

        def possible(deletions: Array, templates: Sequence[Template]) -> Array:
            lengths = np.array([len(template.extended) if template.segment else 0 for template in templates])
            return np.asarray(deletions * (np.arange(deletions.shape[1]) < lengths[:, None]))

        v, j = possible(model.v_deletions, model.v), possible(model.j_deletions, model.j)
        d, choice = np.ones((1, 1, 1)), model.p_vj[:, None]
        if model.has_d:
            left, right = np.indices(model.d_deletions.shape[1:])
            extended = np.array([len(template.extended) for template in model.d])
            d, choice = model.d_deletions * (left + right <= extended[:, None, None]), model.p_choice
        choice = choice * v.sum(axis=1)[:, None, None] * d.sum(axis=(1, 2))[:, None] * j.sum(axis=1)
        inserted = np.prod([insertion.lengths.sum() for insertion in model.insertions])
        return Possible(choice, v, d, j, float(choice.sum() * inserted))
