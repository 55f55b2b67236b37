"""A table in blocks: each rank has some of its rows, and writes some of its blocks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.repertoires.writers import fill_table, writer_of
from hpcvdj.results.facts import Rows, as_batches
from hpcvdj.runs.run import Run
from hpcvdj.runs.stopping import NOTHING_YET
from hpcvdj.storage.files import atomic_path
from hpcvdj.storage.folders import parts_beside
from hpcvdj.storage.inputs import file_digest

Counts = NDArray[np.int64]

BLOCK_ROWS = 1 << 17
"""The rows of a block.  The number of ranks must not decide it, as it decides where packed tables have members."""


@dataclass(frozen=True)
class TableBlocks:
    """A table of which each rank has some rows.

    places    int64 [rows of this rank]: their places in the table, of which every one is taken
    table_of  returns a table of some rows of this rank, given their indices; it has the same columns on all ranks
    run       the ranks, which call each method together
    """

    places: Counts
    table_of: Callable[[Counts], pa.Table]
    run: Run

    def on_root(self) -> pa.Table | None:
        """Return the whole table on root, None on the other ranks."""
        gathered = self.run.gather(list(self._blocks()))
        if gathered is None:
            return None
        blocks = dict(block for part in gathered for of_round in part for block in of_round)
        return pa.concat_tables([blocks[number] for number in sorted(blocks)])

    def written(self, target: Path, stack: ExitStack) -> Rows:
        """Write the blocks of this rank into a folder beside a target, which ends with the stack.

        Returns, on root, a function that joins the blocks of all ranks to a table at the path that it gets.  Raises
        MachineError, on every rank, if writing fails.
        """
        kind, run = writer_of(target), self.run
        folder = run.from_root(lambda: stack.enter_context(parts_beside(target)))
        digests: dict[Path, str] = {}

        def write(block: tuple[int, pa.Table]) -> None:
            number, table = block
            path = folder / f"{number:06}{kind.of_parts().endings[0]}"
            with atomic_path(path, overwrite=True) as temporary:
                fill_table(temporary, kind.of_parts(), as_batches(table), first=number == 0)
            digests[path] = file_digest(path)

        for of_round in self._blocks():
            run.each(of_round, write, NOTHING_YET)
        parts = dict(sorted(each for part in run.gather(digests) or [] for each in part.items()))
        return lambda path: kind.join(parts, path, lambda: None)

    def _blocks(self) -> Iterator[list[tuple[int, pa.Table]]]:
        """Yield this rank's block of each round, with its number; nothing where other ranks have the last blocks."""
        run, ranks = self.run, self.run.ranks
        blocks = max(1, -(-int(run.sum(np.array([len(self.places)]))[0]) // BLOCK_ROWS))
        order = np.argsort(self.places)
        edges = np.searchsorted(self.places[order], np.arange(blocks + ranks + 1) * BLOCK_ROWS)
        for first in range(0, blocks, ranks):
            of_ranks = [order[a:b] for a, b in pairwise(edges[first : first + ranks + 1])]
            received = run.exchange([(self.places[rows], self.table_of(rows)) for rows in of_ranks])
            places, tables = zip(*received, strict=True)
            table = pa.concat_tables(tables).take(np.argsort(np.concatenate(places)))
            yield [(first + run.rank, table)] if first + run.rank < blocks else []
