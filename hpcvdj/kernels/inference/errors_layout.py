"""Where the expected counts of a model with sequencing errors are collected.

A base of a template is misread with probability `Model.error_rate`, as any other base: the error model of IGoR (Marcou
et al. 2018).  Inserted bases are never misread, as a misread base looks like another insertion.
Every form then fits every junction, so prefix trees save nothing: counts are those of the parameters themselves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.inference.layout import OF_INSERTIONS, Counts, Expected, Ints, common_parts, named_parts, unit_of
from hpcvdj.kernels.pathways.forms import Texts
from hpcvdj.kernels.pgen.tables import Mask, chains
from hpcvdj.recombination.models import Array, Model


class Masks(NamedTuple):
    """Sets of alleles one after another: int64 [sets + 1], where each begins, and int64, the alleles' places."""

    first: Ints
    places: Ints

    @staticmethod
    def of(masks: Sequence[Mask]) -> "Masks":
        """The sets in their order."""
        first = np.cumsum([0, *map(len, masks)])
        return Masks(first.astype(np.int64), np.array([place for mask in masks for place in mask], dtype=np.int64))


class Weights(NamedTuple):
    """A model's choices and deletions for the kernel.

    The sum over D genes separates V from J.  Without D genes, the sum over J alleles does: each is then a "D gene" of
    no bases that its own J allele alone has.

    v_choice  float64 [D or 1, V]: P(V), for each D gene if they differ
    j_choice  float64 [D, J]
    v, j, d   of deletions
    """

    v_choice: Array
    j_choice: Array
    v: Array
    j: Array
    d: Array

    @staticmethod
    def of(model: Model) -> "Weights":
        """The numbers of a model."""
        alleles = len(model.j)
        if model.has_d:
            choices = model.p_v[None], model.p_dj, model.d_deletions
        else:
            choices = model.p_vj.T, np.eye(alleles), np.ones((alleles, 1, 1))
        v_choice, j_choice, d = choices
        # As the model is read, some are transposed; numba would compile the kernel once more for each layout.
        return Weights(*map(np.ascontiguousarray, (v_choice, j_choice, model.v_deletions, model.j_deletions, d)))


@dataclass(frozen=True)
class ErrorsLayout:
    """What does not change while a model is inferred.

    v, d, j      the extended templates, J's from their ends
    v_masks, j_masks   the alleles of each pair of sets
    shapes       of the arrays of `Weights`
    lags         lengths of insertions, after V and before J
    """

    v: Texts
    d: Texts
    j: Texts
    v_masks: Masks
    j_masks: Masks
    shapes: tuple[tuple[int, ...], ...]
    lags: tuple[int, int]

    @staticmethod
    def of(model: Model, pairs: Sequence[tuple[Mask, Mask]]) -> "ErrorsLayout":
        """The layout for pairs of sets of V and J alleles."""
        vd, dj = (len(chain.lengths) for chain in chains(model))
        return ErrorsLayout(
            Texts.of([template.extended for template in model.v]),
            Texts.of([template.extended for template in model.d] if model.has_d else [""] * len(model.j)),
            Texts.of([template.extended[::-1] for template in model.j]),
            Masks.of([v for v, _ in pairs]), Masks.of([j for _, j in pairs]),
            tuple(values.shape for values in Weights.of(model)), (vd, dj),
        )  # fmt: skip

    @property
    def sizes(self) -> Counts:
        """How many counts there are of each."""
        vd, dj = self.lags
        of_weights = {name: math.prod(shape) for name, shape in zip(Weights._fields, self.shapes, strict=True)}
        return Counts(**of_weights, vd_lengths=vd, dj_lengths=dj, misread=1, **OF_INSERTIONS)

    def expected(self, counts: NDArray[np.int64], model: Model, rows: int) -> Expected:
        """The expected numbers of events of `model` from the sum of the kernel's counts of so many rows."""
        unit, _ = unit_of(rows)
        parts = named_parts(counts, self.sizes)
        v_choice, j_choice, v, j, d = (
            (parts[name] / unit).reshape(shape) for name, shape in zip(Weights._fields, self.shapes, strict=True)
        )
        misread = float(parts["misread"][0] / unit)
        bases = sum(
            float((counts * _kept(texts, counts.shape[1:])).sum())
            for texts, counts in ((self.v, v), (self.j, j), (self.d, d))
        )
        return Expected(
            choices=v_choice[0] if model.has_d else v_choice.T, dj=j_choice if model.has_d else model.p_dj, v=v, j=j,
            d=d if model.has_d else model.d_deletions, errors=np.array([misread, max(0.0, bases - misread)]),
            **common_parts(parts, model, rows),
        )  # fmt: skip


def _kept(texts: Texts, shape: tuple[int, ...]) -> Array:
    """The bases that each allele keeps with each deletion, float64 [alleles, *shape]."""
    lost = np.indices(shape).sum(axis=0)
    return np.asarray(np.maximum(texts.lengths.reshape(-1, *[1] * len(shape)) - lost, 0.0))
