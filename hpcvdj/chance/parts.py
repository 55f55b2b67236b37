"""Parts of the rows of tables, by gene, with the sample, data row and reads of each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcvdj.chance.p_values import Counts
from hpcvdj.recombination.models import Model
from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.repertoires.genes import by_gene, merged
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.repertoires.read_counts import UNKNOWN


@dataclass(frozen=True)
class Part:
    """A part of the rows.

    repertoire  the junctions, by gene
    sample      integers [rows]: the index of the sample in `Dealt.samples`
    row         int64 [rows]: data row of the input; None if it is not asked for
    reads       integers [rows]; `UNKNOWN` where the input has none; None if no row has any
    """

    repertoire: Repertoire
    sample: NDArray[Any]
    row: Counts | None
    reads: NDArray[Any] | None

    def __len__(self) -> int:
        return len(self.sample)

    def only(self, rows: Counts) -> "Part":
        """Select some rows; `rows` ascend."""
        return self._of(self.repertoire.subset(rows), rows)

    def of_pairs(self, first: int, stop: int) -> "Part":
        """Select the rows of `pairs[first:stop]`, without copying them."""
        every = self.repertoire
        offsets = every.offsets[first : stop + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        words, lengths, pairs = every.words[rows], every.lengths[rows], every.pairs[first:stop]
        return self._of(Repertoire(words, lengths, pairs, offsets - offsets[0], every.letters), rows)

    def _of(self, repertoire: Repertoire, rows: Any) -> "Part":
        row, reads = (None if values is None else values[rows] for values in (self.row, self.reads))
        return Part(repertoire, self.sample[rows], row, reads)

    @staticmethod
    def joined(parts: Sequence["Part"]) -> "Part":
        """Merge the rows of parts, by gene."""
        if len(parts) == 1:
            return parts[0]
        repertoire, order = merged([part.repertoire for part in parts])
        sample, row, reads = (
            None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("sample", "row", "reads")
        )
        assert sample is not None
        return Part(repertoire, sample, row, reads)


def no_rows(inputs: Inputs, *, numbered: bool) -> Part:
    """A part without rows, to be joined with those of the inputs."""
    none = np.empty(0, dtype=np.uint8)
    empty = Repertoire(np.zeros((0, 2), np.uint64), none, [], np.zeros(1, np.int64), inputs.reading.letters)
    return Part(empty, none, none.astype(np.int64) if numbered else None, none if inputs.has_reads else None)


def part_of(junctions: Junctions, model: Model, first_row: int = 0, *, reads: bool) -> Part:
    """The junctions by gene; `sample` is the index in `Junctions.repertoire_ids`, and row `first_row` is number 0."""
    repertoire, order = by_gene(junctions.repertoire, model)
    counts = None
    if reads:
        counts = np.full(len(order), UNKNOWN) if junctions.reads is None else junctions.reads[order]
    return Part(
        repertoire,
        junctions.repertoire_of[order].astype(np.min_scalar_type(len(junctions.repertoire_ids or []))),
        junctions.row[order] - first_row,
        counts if counts is None else counts.astype(np.min_scalar_type(counts.max(initial=0))),
    )
