"""Problems for the kernels of the E step, and what the counts of two kernels may differ by."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from hpcvdj.kernels.inference.errors_cpu import ErrorsKernel
from hpcvdj.kernels.inference.expectation_cpu import ExpectationKernel
from hpcvdj.kernels.inference.method import Expectation, InferenceProblem
from hpcvdj.kernels.kernel import Kernel
from hpcvdj.recombination.models import Insertion, Model
from tests.kernels.pgen.models import Junction, problem_of
from tests.kernels.pgen.problems import junctions, small_model

GIVEN = ("both", "lists", "none")
"""What is known of the genes of a junction: both, a list of up to three of each, or nothing."""


def problem(model: Model, rows: list[Junction], weights: np.ndarray, *, errors: bool = False) -> InferenceProblem:
    """The problem of some junctions, each counted so often; with `errors`, at the model's error rate."""
    own, row_of = problem_of(model, rows)
    row_weights = np.zeros(len(rows), dtype=np.uint32)
    row_weights[row_of] = weights
    return InferenceProblem(own.repertoire, row_weights, model, errors)


def problem_with(
    model: Model, given: str, count: int = 60, longest: int = 64, seed: int = 1, extra: tuple[str, ...] = (), *,
    errors: bool = False,
) -> InferenceProblem:  # fmt: skip
    """Junctions that a model's segments spell, of all genes, and extra ones; a fifth of all is held out."""
    rng = np.random.default_rng(seed)
    rows: list[Junction] = []
    drawn = junctions(model, count, longest, seed)
    for v, j, text in [*drawn, *((*drawn[k % count][:2], text) for k, text in enumerate(extra))]:
        masks = []
        for segment, place in (("V", v), ("J", j)):
            places = model.contributing(segment)
            others = rng.choice(places, 2 if given == "lists" else 0)
            masks.append(None if given == "none" else tuple(sorted({place, *map(int, others)})))
        rows.append((text, *masks))
    return problem(model, rows, rng.integers(0, 5, len(rows)), errors=errors)


def every_length(longest: int, seed: int = 1) -> tuple[str, ...]:
    """Random texts of 0 … longest bases."""
    rng = np.random.default_rng(seed)
    return tuple("".join(rng.choice(list("ACGT"), length)) for length in range(longest + 1))


def long_insertions(has_d: bool, longest: int) -> Model:
    """A small model with insertions of up to so many bases, all of them likely, and an impossible length."""
    model, rng = small_model(7, has_d=has_d), np.random.default_rng(7)

    def longer(own: Insertion, size: int) -> Insertion:
        lengths = rng.random(size + 1) * (np.arange(size + 1) != 3)
        return replace(own, lengths=lengths / lengths.sum())

    sizes = (longest, longest // 2 + 1)
    return replace(model, insertions=tuple(map(longer, model.insertions, sizes)))


def counts_of(kernel: Kernel, own: InferenceProblem, cuts: tuple[int, ...] = ()) -> np.ndarray:
    """All counts, int64 [counts], collected in ranges of rows that end at `cuts`."""
    (unit,) = Expectation().units(own, 0, range(0))
    ends = (0, *cuts, len(own.repertoire))
    return np.sum([kernel(unit, first, last).copy() for first, last in pairwise(ends)], axis=0)[0]


def on_cpu(own: InferenceProblem) -> np.ndarray:
    """The counts of the CPU kernel."""
    return counts_of((ErrorsKernel if own.errors else ExpectationKernel)(own, 1), own)


def largest_differences(own: InferenceProblem, counts: np.ndarray, expected: np.ndarray) -> dict[str, int]:
    """By the name of a part of the counts; the lost rows are to be the same."""
    sizes = own.layout.sizes
    differences = np.split(np.abs(counts - expected), np.cumsum(sizes)[:-1])
    largest = {name: int(part.max(initial=0)) for name, part in zip(sizes._fields, differences, strict=True)}
    assert largest.pop("lost") == 0
    return largest
