"""What is known of a slice of the input once it is computed: its rows, sums and pairs; slices add up to the table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from hpcvdj.kernels.quantities import Quantity
from hpcvdj.recombination.exclusions import Exclusion, added, counts_from_json, counts_json
from hpcvdj.repertoires.junctions import Junctions

MOST_COUNTED = 10_000
"""Different exclusions that a result sums up in its attributes; /excluded has all."""


@dataclass(frozen=True, kw_only=True)
class SliceFacts:
    """What became of the rows of a slice, or of all.

    first_row    the number of the first row
    sums         of the columns of values; of pathways exact Python integers
    nonzero      sequences with a value other than 0
    excluded     the exclusions and their rows, the most frequent first
    substituted  calls that were replaced, by what, and their rows
    pairs        V and J allele of the sequences
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
        """The facts of junctions that are computed."""
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
        """The facts of slices that follow each other, together."""
        substituted: Counter[tuple[str, str]] = Counter()
        for part in slices:
            for call, allele, rows in part.substituted:
                substituted[call, allele] += rows
        return cls(
            first_row=slices[0].first_row,
            rows_read=sum(part.rows_read for part in slices),
            counted=sum(part.counted for part in slices),
            sums=[sum(sums) for sums in zip(*(part.sums for part in slices), strict=True)],
            nonzero=sum(part.nonzero for part in slices),
            excluded=added(part.excluded for part in slices),
            substituted=[(*replaced, rows) for replaced, rows in substituted.items()],
            pairs=list(dict.fromkeys(pair for part in slices for pair in part.pairs)),
        )

    def attributes(self) -> dict[str, Any]:
        """What a result records of its rows and sums."""
        return {
            "rows_read": self.rows_read,
            "substituted_calls": self.substituted,
            "excluded_counts": counts_json(self.excluded[:MOST_COUNTED]),
            "sums": [str(value) for value in self.sums],
            "nonzero": self.nonzero,
        }

    def recorded(self) -> dict[str, Any]:
        """The facts as JSON values."""
        texts = {"sums": [str(value) for value in self.sums], "excluded": counts_json(self.excluded)}
        return vars(self) | texts

    @classmethod
    def from_recorded(cls, values: dict[str, Any], quantity: Quantity) -> Self:
        """The inverse of `recorded`."""
        read = {
            "sums": list(map(quantity.number, values["sums"])),
            "excluded": counts_from_json(values["excluded"]),
            "substituted": [(str(call), str(allele), int(rows)) for call, allele, rows in values["substituted"]],
            "pairs": [(str(v), str(j)) for v, j in values["pairs"]],
        }
        return cls(**values | read)
