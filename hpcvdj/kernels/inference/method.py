"""The E step as a method: one unit, whose tasks are the junctions, and whose values are counts that add up."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.inference.errors_layout import ErrorsLayout
from hpcvdj.kernels.inference.layout import Layout
from hpcvdj.kernels.kernel import Unit
from hpcvdj.kernels.method import Method, on_each_backend
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire


@dataclass(frozen=True)
class InferenceProblem:
    """Junctions whose events are to be counted.

    repertoire   junctions, with the codons of Cys 104 and Phe/Trp 118, grouped by their sets of V and J alleles
    row_weights  uint32 [junctions]: how often each counts; 0 for one that only has a likelihood
    model        the model to begin with
    errors       bases may be misread, with the model's error rate
    """

    repertoire: Repertoire
    row_weights: NDArray[np.uint32]
    model: Model
    errors: bool = False

    @cached_property
    def layout(self) -> Any:
        """Where counts are collected: a `Layout`, or an `ErrorsLayout`."""
        pairs = [(v.places, j.places) for v, j in self.repertoire.pairs]
        return ErrorsLayout.of(self.model, pairs) if self.errors else Layout.of(self.model, pairs)

    def weighted(self, row_weights: NDArray[np.uint32]) -> "InferenceProblem":
        """The same junctions with other weights."""
        other = replace(self, row_weights=row_weights)
        # Which takes long to make.
        other.__dict__["layout"] = self.layout
        return other

    @cached_property
    def rows(self) -> int:
        """Rows that are counted, as often as each is, or that are held out."""
        return int(np.maximum(self.row_weights, 1).sum(dtype=np.int64))


class Expectation(Method):
    """The expected number of each event of recombination, given the junctions and a model."""

    name = "expectation"
    disjoint = False
    kernels = on_each_backend("hpcvdj.kernels.inference.expectation_{}.ExpectationKernel")

    def units(self, problem: Any, unit_work: int, columns: range) -> Iterator[Unit]:
        """All junctions at once."""
        repertoire: Repertoire = problem.repertoire
        yield Unit(range(len(repertoire.pairs)), range(1), range(sum(problem.layout.sizes)), len(repertoire))


class ExpectationWithErrors(Expectation):
    """The same if bases may be misread."""

    name = "expectation-with-errors"
    kernels = on_each_backend("hpcvdj.kernels.inference.errors_{}.ErrorsKernel")
