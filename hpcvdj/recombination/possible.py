"""The probabilities of a model without the scenarios that make no junction.

A scenario makes no junction if its V or J allele has no segment, if nothing is left of V or J, or if the deletions of D
exceed its length.  Generation probabilities do not count such scenarios, so they add up to less than 1.
"""

from dataclasses import dataclass

import numpy as np

from hpcvdj.recombination.germline import SegmentType
from hpcvdj.recombination.models import Array, Model


def allowed_deletions(model: Model) -> tuple[Array, Array, Array]:
    """Return 1 for each deletion of V, D and J that a junction can have, else 0; float64 [alleles, …]."""
    lengths = [
        np.array([len(t.extended) if t.segment else 0 for t in templates], dtype=np.int64)
        for templates in (model.v, model.d, model.j)
    ]
    widths = model.v_deletions.shape[1], model.j_deletions.shape[1]
    v, j = (np.arange(width) < of[:, None] for width, of in zip(widths, lengths[::2], strict=True))
    left, right = np.indices(model.d_deletions.shape[1:])
    d = left + right <= lengths[1][:, None, None]
    return v.astype(np.float64), d.astype(np.float64), j.astype(np.float64)


def able(model: Model, segment: SegmentType) -> list[int]:
    """Return the indices of the alleles of V, D or J that are chosen and can be part of a junction."""
    allowed = dict(zip("VDJ", allowed_deletions(model), strict=True))[segment]
    deletions = {"V": model.v_deletions, "D": model.d_deletions, "J": model.j_deletions}[segment]
    return [k for k in model.contributing(segment) if (deletions[k] * allowed[k]).any()]


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
        allowed_v, allowed_d, allowed_j = allowed_deletions(model)
        v, j = model.v_deletions * allowed_v, model.j_deletions * allowed_j
        d, choice = np.ones((1, 1, 1)), model.p_vj[:, None]
        if model.has_d:
            d, choice = model.d_deletions * allowed_d, model.p_choice
        choice = choice * v.sum(axis=1)[:, None, None] * d.sum(axis=(1, 2))[:, None] * j.sum(axis=1)
        inserted = np.prod([insertion.lengths.sum() for insertion in model.insertions])
        return Possible(choice, v, d, j, float(choice.sum() * inserted))
