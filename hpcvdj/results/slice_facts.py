"""The facts of a computed slice of the input: its rows, sums and pairs.  The facts of slices add up."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import Exclusion, added, counts_from_json, counts_json
from hpcvdj.repertoires.junctions import Junctions

MOST_COUNTED = 10_000
"""The most distinct exclusions in the attributes of a result; /excluded has all."""


@dataclass(frozen=True, kw_only=True)
class SliceFacts:
    """What became of the rows of a slice, or of all slices.

    first_row    number of the first row
    sums         sums of the columns of values; for pathways exact Python integers
    nonzero      number of sequences with a value other than 0
    excluded     the exclusions and their numbers of rows, the most frequent first
    substituted  calls that were replaced, their replacements, and their numbers of rows
    pairs        V and J alleles of the sequences
    """

    first_row: int
    rows_read: int
    counted: int
    sums: list[Any]
    nonzero: int
    excluded: list[tuple[Exclusion, int]]
    substituted: list[tuple[str, str, int]]
    pairs: list[tuple[str, str]]

    @classmethod
    def of(cls, junctions: Junctions, sums: list[Any], nonzero: int, first_row: int = 0) -> Self:
        """Return the facts of computed junctions."""
        return cls(
            first_row=first_row,
            rows_read=junctions.rows_read,
            counted=len(junctions),
            sums=sums,
            nonzero=nonzero,
            excluded=junctions.excluded.counts(),
            substituted=junctions.substituted,
            pairs=[(v.allele, j.allele) for v, j in junctions.repertoire.pairs],
        )

    @classmethod
    def total(cls, slices: Sequence["SliceFacts"]) -> Self:
        """Return the sum of the facts of consecutive slices."""
        return cls(
            first_row=slices[0].first_row,
            rows_read=sum(part.rows_read for part in slices),
            counted=sum(part.counted for part in slices),
            sums=[sum(sums) for sums in zip(*(part.sums for part in slices), strict=True)],
            nonzero=sum(part.nonzero for part in slices),
            excluded=added(part.excluded for part in slices),
            substituted=added_calls(part.substituted for part in slices),
            pairs=list(dict.fromkeys(pair for part in slices for pair in part.pairs)),
        )

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


def added_calls(parts: Iterable[Sequence[tuple[str, str, int]]]) -> list[tuple[str, str, int]]:
    """Add up the rows of substituted calls."""
    totals: Counter[tuple[str, str]] = Counter()
    for substituted in parts:
        for call, allele, rows in substituted:
            totals[call, allele] += rows
    return [(*replaced, rows) for replaced, rows in totals.items()]
