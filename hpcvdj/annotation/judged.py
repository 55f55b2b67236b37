"""Which sequences near records are tested: what the model makes wrongly, or cannot make, is not."""

from dataclasses import dataclass

import numpy as np

from hpcvdj.annotation.settings import AnnotationSettings
from hpcvdj.annotation.union import PGEN_AA, Probabilities, Union
from hpcvdj.chance import check
from hpcvdj.chance.model_fit import ModelFit
from hpcvdj.chance.p_values import Bools, Counts
from hpcvdj.recombination.models import Model


@dataclass(frozen=True)
class Judged:
    """The members of a union, and which of them are tested.

    usable  bool [members]: the model can make them, and makes their genes rightly
    model   finds calls that contradict the amino acids; None if such calls are not left out
    """

    union: Union
    p: Probabilities
    usable: Bools
    model: Model | None

    @staticmethod
    def by(fit: ModelFit, union: Union, p: Probabilities, model: Model, settings: AnnotationSettings) -> "Judged":
        """Judge by how the model fits the tables."""
        broken = np.array(
            [not {*v.allele.split(","), *j.allele.split(",")}.isdisjoint(fit.broken) for v, j in union.centres.classes]
        )[union.kind]
        compares = settings.match == "vj" and not fit.keep_misfits
        return Judged(union, p, (p.given > 0) & ~broken, model if compares else None)

    def tested(self, member: Counts) -> tuple[Counts, dict[str, int]]:
        """Which of the members that a sample has are tested, as places in `member`; and why others are not."""
        usable, possible = self.usable, self.p.given > 0
        rows = np.flatnonzero(usable[member])
        not_tested = {
            check.IMPOSSIBLE: int((~possible[member]).sum()),
            check.BROKEN_GENE: int((possible & ~usable)[member].sum()),
        }
        if self.model is None:
            return rows, not_tested
        # A call that contradicts the amino acids makes a sequence improbable.
        hits, p = member[rows], self.p
        side = check.contradicting(self.union.repertoire(hits), self.model, PGEN_AA, p.pgen[hits], p.limits)
        return rows[side == 0], not_tested | check.by_reason(side)
