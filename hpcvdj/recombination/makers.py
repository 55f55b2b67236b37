"""Which junctions anyone would make, and which hardly anybody.

An individual with n productive recombinations has a junction with the probability 1 - exp(-n p), where p is that of one
productive recombination: so `hpcvdj sharing` takes it, too.  Here n is the number of the table's own productive
junctions, so the question is about individuals who were sequenced as deeply.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANYONE = 0.5
"""Anyone would make a junction that at least this share of all individuals have."""

HARDLY = 1e-6
"""Hardly anybody makes one that a smaller share have: with a chance below 0.001, one of 1,000 others does."""


@dataclass(frozen=True)
class Makers:
    """How many junctions anyone would make, and how many hardly anybody.

    recombinations  the n of each individual: productive junctions with a value
    anyone          how many of these anyone would make, by the column of the probability
    hardly_anybody  how many hardly anybody makes, those of probability 0 among them
    """

    recombinations: int
    anyone: dict[str, int]
    hardly_anybody: dict[str, int]

    @staticmethod
    def of(names: Sequence[str], parts: Iterable[NDArray[np.float64]]) -> "Makers":
        """Those of productive junctions, in parts.

        names  of the columns
        parts  float64 [names, junctions]: the probability of each junction among productive recombinations; NaN if it
               has none, which is neither.  They are gone through twice
        """
        number = sum(part.shape[1] for part in parts)
        # Of a table without such junctions, nothing is counted.
        most, least = (-math.log1p(-share) / max(1, number) for share in (ANYONE, HARDLY))
        anyone, hardly = np.zeros((2, len(names)), dtype=np.int64)
        for part in parts:
            anyone += (part >= most).sum(axis=1)
            hardly += (part < least).sum(axis=1)
        return Makers(
            number, dict(zip(names, anyone.tolist(), strict=True)), dict(zip(names, hardly.tolist(), strict=True))
        )

    def __add__(self, other: "Makers") -> "Makers":
        """Those of two tables with the same columns, each judged by the number of its own junctions."""
        anyone, hardly = (
            {name: number + getattr(other, key)[name] for name, number in getattr(self, key).items()}
            for key in ("anyone", "hardly_anybody")
        )
        return Makers(self.recombinations + other.recombinations, anyone, hardly)

    def recorded(self) -> dict[str, Any]:
        """As JSON values."""
        return vars(self).copy()

    def summary(self) -> dict[str, str]:
        """What `hpcvdj pgen` prints: a word and what to say of it; nothing without a productive junction."""
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
