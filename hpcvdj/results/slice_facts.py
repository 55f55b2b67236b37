"""The facts of a computed slice of the input: its rows, sums and pairs.  The facts of slices add up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import counts_from_json, counts_json
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.tally import Tally, tally_of

MOST_COUNTED = 10_000
"""The most distinct exclusions in the attributes of a result; /excluded has all."""


@dataclass(frozen=True, kw_only=True)
class SliceFacts(Tally):
    """What became of the rows of a slice, or of all slices.

    first_row  number of the first row
    sums       sums of the columns of values; for pathways exact Python integers
    pairs      V and J alleles of the sequences
    """

    first_row: int
    sums: list[Any]
    pairs: list[tuple[str, str]]

    @classmethod
    def of(cls, junctions: Junctions, quantity: Quantity, values: NDArray[Any], first_row: int = 0) -> Self:
        """Return the facts of junctions with their computed values, [sequences, columns]."""
        nonzero = np.zeros(len(junctions), dtype=bool)
        sums = quantity.sums(values, nonzero)
        pairs = [(v.allele, j.allele) for v, j in junctions.repertoire.pairs]
        tally = replace(tally_of(junctions), nonzero=int(nonzero.sum()))
        return cls(**vars(tally), first_row=first_row, sums=sums, pairs=pairs)

    @classmethod
    def total(cls, slices: Sequence["SliceFacts"]) -> Self:
        """Return the sum of the facts of consecutive slices."""
        sums = [sum(column) for column in zip(*(part.sums for part in slices), strict=True)]
        pairs = list(dict.fromkeys(pair for part in slices for pair in part.pairs))
        return cls(**Tally.added(slices), first_row=slices[0].first_row, sums=sums, pairs=pairs)

    def attributes(self) -> dict[str, Any]:
        """Return what a result records of its rows and sums."""
        return {
            "rows_read": self.rows_read,
            "substituted_calls": self.substituted,
            "excluded_counts": counts_json(self.excluded[:MOST_COUNTED]),
            "sums": [str(value) for value in self.sums],
            "nonzero": self.nonzero,
        }

    def recorded(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        texts = {"sums": [str(value) for value in self.sums], "excluded": counts_json(self.excluded)}
        return vars(self) | texts

    @classmethod
    def from_recorded(cls, values: dict[str, Any], quantity: Quantity) -> Self:
        """Return the facts of JSON values, as the inverse of `recorded`."""
        read = {
            "sums": list(map(quantity.number, values["sums"])),
            "excluded": counts_from_json(values["excluded"]),
            "substituted": [(str(call), str(allele), int(rows)) for call, allele, rows in values["substituted"]],
            "pairs": [(str(v), str(j)) for v, j in values["pairs"]],
        }
        return cls(**values | read)
