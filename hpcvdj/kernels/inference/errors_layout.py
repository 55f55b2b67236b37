"""Where the expected counts of a model with sequencing errors are collected.

A base of a template is misread with probability `Model.error_rate`, as `hpcvdj.recombination.scenarios` defines it.
Every form then fits every junction, so prefix trees save nothing: counts are those of the parameters themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.inference.layout import ORDER_BACK, Expected, Ints, Layout
from hpcvdj.kernels.pgen.tables import NO_INSERTION, Chain, Mask
from hpcvdj.recombination.alphabet import encode
from hpcvdj.recombination.models import Array, Model


@dataclass(frozen=True)
class Texts:
    """Templates in our base codes: uint8 [alleles, longest], and int64 [alleles], how many bases each has."""

    codes: NDArray[np.uint8]
    lengths: Ints

    @staticmethod
    def of(texts: Sequence[str]) -> "Texts":
        """Templates from their bases."""
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        codes = np.zeros((len(texts), int(lengths.max(initial=0))), dtype=np.uint8)
        for row, text in zip(codes, texts, strict=True):
            row[: len(text)] = encode(text)
        return Texts(codes, lengths)


@dataclass(frozen=True)
class Masks:
    """Sets of alleles one after another: int64 [sets + 1], where each begins, and int64, the alleles' places."""

    first: Ints
    places: Ints

    @staticmethod
    def of(masks: Sequence[Mask]) -> "Masks":
        """The sets in their order."""
        first = np.cumsum([0, *map(len, masks)])
        return Masks(first.astype(np.int64), np.array([place for mask in masks for place in mask], dtype=np.int64))

    @property
    def most(self) -> int:
        """The most alleles of a set, at least 1."""
        return int(np.diff(self.first).max(initial=1))


@dataclass(frozen=True)
class Weights:
    """A model's numbers for the kernel.

    The sum over D genes separates V from J.  Without D genes, the sum over J alleles does: each is then a "D gene" of
    no bases that its own J allele alone has.

    v_choice  float64 [D or 1, V]: P(V), for each D gene if they differ
    j_choice  float64 [D, J]
    v, j, d   of deletions
    vd, dj    the insertions
    """

    v_choice: Array
    j_choice: Array
    v: Array
    j: Array
    d: Array
    vd: Chain
    dj: Chain

    @staticmethod
    def of(model: Model) -> "Weights":
        """The numbers of a model."""
        # As the model is read, some are transposed; numba would compile the kernel once more for each layout.
        sides = np.ascontiguousarray(model.v_deletions), np.ascontiguousarray(model.j_deletions)
        vd = Chain.of(model.insertions[0])
        if model.has_d:
            dj = Chain.of(model.insertions[1])
            choices = model.p_v[None], np.ascontiguousarray(model.p_dj)
            return Weights(*choices, *sides, np.ascontiguousarray(model.d_deletions), vd, dj)
        alleles = len(model.j)
        p_v = np.ascontiguousarray(model.p_vj.T)
        return Weights(p_v, np.eye(alleles), *sides, np.ones((alleles, 1, 1)), vd, NO_INSERTION)


@dataclass(frozen=True)
class ErrorsLayout:
    """What does not change while a model is inferred.

    v, d, j      the extended templates, J's from their ends
    v_masks, j_masks   the alleles of each pair of sets
    shapes       of the counts: choices of V and of J, deletions of V, J and D
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
        own = Weights.of(model)
        return ErrorsLayout(
            Texts.of([template.extended for template in model.v]),
            Texts.of([template.extended for template in model.d] if model.has_d else [""] * len(model.j)),
            Texts.of([template.extended[::-1] for template in model.j]),
            Masks.of([v for v, _ in pairs]), Masks.of([j for _, j in pairs]),
            tuple(values.shape for values in (own.v_choice, own.j_choice, own.v, own.j, own.d)),
            (len(own.vd.lengths), len(own.dj.lengths)),
        )  # fmt: skip

    unit = staticmethod(Layout.unit)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many counts there are of: `shapes`, lengths, first bases and pairs of bases of both insertions, misread
        bases, and log-likelihoods and lost rows."""
        return (*(int(np.prod(shape)) for shape in self.shapes), *self.lags, 4, 4, 16, 16, 1, 2, 2)

    def expected(self, counts: NDArray[np.int64], model: Model, rows: int) -> Expected:
        """The expected numbers of events of `model` from the sum of the kernel's counts of so many rows."""
        unit, log_unit = self.unit(rows)
        *parts, logs, lost = np.split(counts, np.cumsum(self.sizes)[:-1])
        *chains, misread = (part / unit for part in parts[5:])
        v_choice, j_choice, v, j, d = (
            (part / unit).reshape(shape) for part, shape in zip(parts, self.shapes, strict=False)
        )
        bases = sum(
            float((counts * _kept(texts, counts.shape[1:])).sum())
            for texts, counts in ((self.v, v), (self.j, j), (self.d, d))
        )
        kept = 2 if model.has_d else 1
        return Expected(
            v_choice[0] if model.has_d else v_choice.T, j_choice if model.has_d else model.p_dj, v, j,
            d if model.has_d else model.d_deletions, tuple(chains[0:2][:kept]),
            tuple(own[ORDER_BACK] for own in chains[2:4][:kept]),
            tuple(own.reshape(4, 4).T[np.ix_(ORDER_BACK, ORDER_BACK)] for own in chains[4:6][:kept]),
            -float(logs[0] / log_unit), int(lost[0]), -float(logs[1] / log_unit), int(lost[1]),
            np.array([misread[0], max(0.0, bases - misread[0])]),
        )  # fmt: skip


def _kept(texts: Texts, shape: tuple[int, ...]) -> Array:
    """The bases that each allele keeps with each deletion, float64 [alleles, *shape]."""
    lost = np.indices(shape).sum(axis=0)
    return np.asarray(np.maximum(texts.lengths.reshape(-1, *[1] * len(shape)) - lost, 0.0))
