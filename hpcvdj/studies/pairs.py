"""The number of in vivo sequences of each V–J pair (the paper's Figure 2): a partition over pairs is uneven."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hpcvdj.recombination.repertoire import Repertoire
from hpcvdj.studies.pages import Block, Plot, Study


@dataclass(frozen=True)
class PairRow:
    """A V–J pair and the number of its in vivo sequences."""

    v_call: str
    j_call: str
    sequences: int


def pair_rows(repertoire: Repertoire) -> list[PairRow]:
    """Return all V–J pairs of a repertoire, in the order of the germline table."""
    sizes = np.diff(repertoire.offsets).tolist()
    return [PairRow(v.allele, j.allele, size) for (v, j), size in zip(repertoire.pairs, sizes, strict=True)]


class PairSizes(Study):
    """Sizes of the V–J pairs."""

    name = "pairs"
    title = "In vivo sequences per V-J pair"
    row = PairRow

    def page(self, rows: list[PairRow]) -> Iterator[Block]:
        ranked = sorted(rows, key=lambda row: -row.sequences)
        total = sum(row.sequences for row in rows)
        mean, largest = total / len(rows), ranked[0]
        tenth = sum(row.sequences for row in ranked[: max(1, len(rows) // 10)])
        yield f"""
            {total:,} sequences in {len(rows)} pairs: {mean:.1f} on average, {largest.sequences:,} in the largest
            ({largest.v_call}, {largest.j_call}), {ranked[-1].sequences:,} in the smallest. The largest tenth of the
            pairs has {100 * tenth / total:.1f} % of the sequences. If each processor counted one pair, the slowest
            would work {largest.sequences / mean:.1f} times as long as the mean (the paper, section IV). hpcvdj
            therefore divides n-nucleotide strings or sequences instead.
        """
        sizes = {rank: row.sequences / largest.sequences for rank, row in enumerate(ranked, 1)}
        axes = {"xlabel": "V-J pair, by size", "ylabel": "sequences / largest pair", "ylim": 0}
        yield Plot("pairs", "sequences of each pair, relative to the largest", [({"pairs": sizes}, axes)])
