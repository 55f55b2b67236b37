"""Which junctions anyone would make, and which hardly anybody would.

An individual with n productive recombinations has a junction with probability 1 - exp(-n p), where p is its probability
in one productive recombination.  `hpcvdj sharing` makes the same assumption.  Here n is the number of productive
junctions of the table, so the question is about individuals who were sequenced as deeply.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANYONE = 0.5
"""Anyone would make a junction if at least this share of all individuals has it."""

HARDLY = 1e-6
"""Hardly anybody makes a junction if a smaller share has it: one of 1,000 others does with a chance below 0.001."""


@dataclass(frozen=True)
class Makers:
    """How many junctions anyone would make, and how many hardly anybody would.

    recombinations  the number n of each individual: productive junctions with a value
    anyone          how many of these anyone would make, by the column of the probability
    hardly_anybody  how many hardly anybody would make, including those of probability 0
    """

    recombinations: int
    anyone: dict[str, int]
    hardly_anybody: dict[str, int]

    @staticmethod
    def of(names: Sequence[str], parts: Iterable[NDArray[np.float64]]) -> "Makers":
        """Count productive junctions, which come in parts.

        names  names of the columns
        parts  float64 [names, junctions]: the probability of each junction among productive recombinations, or NaN,
               which counts as neither.  The parts are iterated twice
        """
        number = sum(part.shape[1] for part in parts)
        # A table without such junctions counts as one of n = 1: there is nothing to count.
        most, least = (-math.log1p(-share) / max(1, number) for share in (ANYONE, HARDLY))
        anyone, hardly = np.zeros((2, len(names)), dtype=np.int64)
        for part in parts:
            anyone += (part >= most).sum(axis=1)
            hardly += (part < least).sum(axis=1)
        return Makers(
            number, dict(zip(names, anyone.tolist(), strict=True)), dict(zip(names, hardly.tolist(), strict=True))
        )

    def __add__(self, other: "Makers") -> "Makers":
        """Add the counts of two tables with the same columns; each table keeps its n."""
        anyone, hardly = (
            {name: number + getattr(other, key)[name] for name, number in getattr(self, key).items()}
            for key in ("anyone", "hardly_anybody")
        )
        return Makers(self.recombinations + other.recombinations, anyone, hardly)

    def recorded(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return vars(self).copy()

    def summary(self) -> dict[str, str]:
        """Return what `hpcvdj pgen` prints: a text by keyword; nothing without a productive junction."""
        if not self.recombinations:
            return {}
        anyone, hardly = (
            ", ".join(f"{name} {number:,}" for name, number in numbers.items())
            for numbers in (self.anyone, self.hardly_anybody)
        )
        return {
            "anyone": f"{anyone} of {self.recombinations:,} productive junctions: at least half of all individuals "
            "sequenced as deeply have them",
            "hardly": f"{hardly}: fewer than one in a million such individuals has them",
        }
