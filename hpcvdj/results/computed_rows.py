"""Rows of the input with their computed values, for tables and results."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hpcvdj.kernels.quantities import Quantity
from hpcvdj.repertoires.batches import with_columns
from hpcvdj.repertoires.inputs import Inputs
from hpcvdj.repertoires.junctions import Junctions
from hpcvdj.results.lookup import Lookup
from hpcvdj.results.slice_facts import SliceFacts
from hpcvdj.runs.driver import Timings


@dataclass(frozen=True)
class ComputedRows:
    """Rows of the input with their values.

    inputs     the tables that have the rows
    values     [sequences, columns]: the values of the junctions
    batches    the rows as tables have them
    first_row  number of the first row
    """

    inputs: Inputs
    junctions: Junctions
    quantity: Quantity
    values: NDArray[Any]
    timings: Timings
    batches: Iterable[pa.RecordBatch]
    first_row: int = 0

    @cached_property
    def facts(self) -> SliceFacts:
        """What became of the rows."""
        nonzero = np.zeros(len(self.junctions), dtype=bool)
        sums = self.quantity.sums(self.values, nonzero)
        return SliceFacts.of(self.junctions, sums, int(nonzero.sum()), self.first_row)

    def with_values(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as tables have them, with their values."""
        junctions, first, row = self.junctions, self.first_row, 0
        excluded = replace(junctions.excluded, row=junctions.excluded.row - first)
        lookup = Lookup(self.quantity, self.values, junctions.row - first, excluded)
        for batch in self.batches:
            yield with_columns(batch, lookup.columns(row, batch.num_rows))
            row += batch.num_rows
